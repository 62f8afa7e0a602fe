//! Finds places that several lanes write and that a lane reads again after a switch: by then, the
//! value may be another item's. Called by `lanes.rs`.

use std::collections::BTreeMap;

use super::{Flow, Point, Step, WriteKind};

/// The point that a search has reached, and whether it has passed a switch.
type State = (Point, bool);

impl Flow<'_> {
    /// The writes of this `foreach` whose value another item may replace before this item reads it.
    /// Returns indices into [`Flow::shared_writes`].
    pub(crate) fn overwritten(&self, lane: usize) -> Vec<usize> {
        let mut stores: BTreeMap<usize, Vec<Point>> = BTreeMap::new();
        for (point, step) in self.steps.iter().enumerate() {
            let Step::Store(number) = *step else { continue };
            let write = &self.shared_writes[number];
            if write.lane == lane && write.kind != WriteKind::Own {
                stores.entry(write.variable).or_default().push(point);
            }
        }
        let found = stores
            .into_iter()
            .filter_map(|(variable, points)| self.lost(lane, variable, &points));
        found.collect()
    }

    /// The first store to a variable from which, within the same item, a path leads to a switch and
    /// then to a read.
    fn lost(&self, lane: usize, variable: usize, stores: &[Point]) -> Option<usize> {
        for &store in stores {
            let Step::Store(number) = self.steps[store] else {
                continue;
            };
            let is_update = self.shared_writes[number].kind == WriteKind::Update;
            if self.reaches_read(lane, variable, store, is_update) {
                return Some(number);
            }
        }
        None
    }

    /// Whether a path from `store` leads through a switch to a read, within the item and without
    /// another write of the whole variable. An update may use the value that another update has
    /// left.
    fn reaches_read(&self, lane: usize, variable: usize, store: Point, is_update: bool) -> bool {
        let points = self.lanes[lane];
        let mut seen = vec![[false; 2]; self.steps.len()];
        let mut waiting: Vec<State> = Vec::new();
        let follow = |from: Point, switched, waiting: &mut Vec<State>| {
            waiting.extend(self.next[from].iter().map(|next| (*next, switched)));
        };
        // The store itself may be followed by its own `Step::Write`.
        let mut begin = store;
        if let [next] = self.next[store][..]
            && self.steps[next] == Step::Write(variable)
        {
            begin = next;
        }
        follow(begin, false, &mut waiting);
        while let Some((point, switched)) = waiting.pop() {
            let is_outside = point == points.head || point == points.exit;
            if is_outside || std::mem::replace(&mut seen[point][usize::from(switched)], true) {
                continue;
            }
            match self.steps[point] {
                Step::Read(it) if it == variable && switched => return true,
                Step::Update(it) if it == variable && switched && !is_update => return true,
                Step::Write(it) if it == variable => continue,
                _ => {}
            }
            let is_switch = matches!(self.steps[point], Step::Switch(_));
            follow(point, switched || is_switch, &mut waiting);
        }
        false
    }
}
