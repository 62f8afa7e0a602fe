//! The variables that are live at each point: a backward pass over the graph until nothing changes.

use super::{Flow, Point, Step};

/// A set of variables.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Set(Vec<u64>);

impl Set {
    pub(crate) fn empty(variables: usize) -> Self {
        Self(vec![0; variables.div_ceil(64)])
    }

    pub(crate) fn has(&self, variable: usize) -> bool {
        self.0[variable / 64] >> (variable % 64) & 1 == 1
    }

    /// Returns true if the variable was not in the set yet.
    pub(crate) fn insert(&mut self, variable: usize) -> bool {
        let is_new = !self.has(variable);
        self.0[variable / 64] |= 1 << (variable % 64);
        is_new
    }

    fn remove(&mut self, variable: usize) {
        self.0[variable / 64] &= !(1 << (variable % 64));
    }

    fn unite(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            *mine |= theirs;
        }
    }
}

/// Memory for the sets of one function. A function that needs more is refused: it would have, for
/// instance, a million points and two thousand variables.
const LIMIT_BYTES: usize = 256 << 20;

/// Variables that are live at the beginning of each point.
pub(crate) struct Live {
    sets: Vec<Set>,
    /// For each `foreach`, the variables that are live across some switch of its lanes.
    pub(crate) across: Vec<Set>,
}

impl Live {
    /// `None` if the function is too large.
    pub(crate) fn of(flow: &Flow<'_>, variables: usize) -> Option<Self> {
        let bytes = flow.steps.len() * variables.div_ceil(64) * 8;
        if bytes > LIMIT_BYTES {
            return None;
        }
        let mut sets = vec![Set::empty(variables); flow.steps.len()];
        let mut before: Vec<Vec<Point>> = vec![Vec::new(); flow.steps.len()];
        for (point, next) in flow.next.iter().enumerate() {
            next.iter().for_each(|next| before[*next].push(point));
        }
        let mut waiting: Vec<Point> = (0..flow.steps.len()).collect();
        let mut is_waiting = vec![true; flow.steps.len()];
        while let Some(point) = waiting.pop() {
            is_waiting[point] = false;
            let live = live_before(flow, &sets, point, variables);
            if live == sets[point] {
                continue;
            }
            sets[point] = live;
            for earlier in &before[point] {
                if !std::mem::replace(&mut is_waiting[*earlier], true) {
                    waiting.push(*earlier);
                }
            }
        }
        let mut across = vec![Set::empty(variables); flow.lanes.len()];
        for (point, step) in flow.steps.iter().enumerate() {
            if let Step::Switch(mark) = step {
                across[flow.marks[*mark].lane].unite(&sets[point]);
            }
        }
        Some(Self { sets, across })
    }

    /// Whether an item may read a value that an earlier item, or the code before the loop, left in
    /// the variable.
    pub(crate) fn enters_lane(&self, flow: &Flow<'_>, lane: usize, variable: usize) -> bool {
        self.sets[flow.lanes[lane].begin].has(variable)
    }

    /// Whether the code after the loop may read the variable's value.
    pub(crate) fn leaves_loop(&self, flow: &Flow<'_>, lane: usize, variable: usize) -> bool {
        self.sets[flow.lanes[lane].exit].has(variable)
    }
}

fn live_before(flow: &Flow<'_>, sets: &[Set], point: Point, variables: usize) -> Set {
    let mut live = Set::empty(variables);
    for next in &flow.next[point] {
        live.unite(&sets[*next]);
    }
    match flow.steps[point] {
        Step::Read(variable) | Step::Update(variable) => drop(live.insert(variable)),
        Step::Write(variable) => live.remove(variable),
        Step::Nothing | Step::Store(_) | Step::Switch(_) => {}
    }
    live
}
