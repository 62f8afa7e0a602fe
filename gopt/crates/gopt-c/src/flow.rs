//! The orders in which the statements of a function can run, and the variables that are live across
//! a switch: written before it and read after it. Those variables need an array; the others stay as
//! they are.
//!
//! The graph has all paths of the program, and may have more: any loop may end at any round, text
//! between `#if` and `#endif` may be left out, and an assignment that may be skipped counts as
//! skipped. So if in doubt, a variable gets an array.

use std::collections::HashMap;
use std::ops::Range;

use tree_sitter::Node;

use crate::diagnostic::Diagnostic;
use crate::names::{Names, children};
use crate::pointed::Pointed;
use crate::source::{MARKS, Source};

mod expression;
mod live;
mod shared;
mod statement;

pub(crate) use expression::root;
pub(crate) use live::Live;

type Point = usize;

/// An event at one point.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    Nothing,
    Read(usize),
    /// The variable is read only to compute its own new value.
    Update(usize),
    /// The whole variable gets a new value, whatever happened before.
    Write(usize),
    /// The write with this number in [`Flow::shared_writes`]: it goes to a place that lanes share.
    Store(usize),
    /// The lane waits for an address, and other lanes run.
    Switch(usize),
}

/// How a lane leaves its block before reaching its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Jump {
    /// `continue`: the lane takes its next item.
    Next,
    /// `break`: the loop ends with this item.
    Break,
    /// `return`: the function ends with this item.
    Return,
}

/// `g_expensive(address);`
pub(crate) struct Mark<'t> {
    pub(crate) statement: Node<'t>,
    pub(crate) address: Node<'t>,
    pub(crate) lane: usize,
}

/// Points of one `foreach` that other passes need.
#[derive(Clone, Copy)]
pub(crate) struct LanePoints {
    /// The point where a lane takes an item or leaves.
    head: Point,
    /// The beginning of the body, after the index is set.
    begin: Point,
    /// The point after the loop.
    exit: Point,
}

pub(crate) struct Flow<'t> {
    steps: Vec<Step>,
    next: Vec<Vec<Point>>,
    pub(crate) marks: Vec<Mark<'t>>,
    /// The jumps out of lanes: statement, kind, `foreach`.
    pub(crate) jumps: Vec<(Node<'t>, Jump, usize)>,
    pub(crate) lanes: Vec<LanePoints>,
    /// Writes in lanes to variables, and to places behind pointers, that lanes share.
    pub(crate) shared_writes: Vec<SharedWrite>,
    /// True if a lane has a label: then jumps may lead into the middle of its blocks.
    pub(crate) has_label: bool,
}

/// A write in [`Flow::shared_writes`].
#[derive(Clone, Copy)]
pub(crate) struct SharedWrite {
    pub(crate) variable: usize,
    pub(crate) at: usize,
    pub(crate) lane: usize,
    pub(crate) kind: WriteKind,
}

/// How a lane writes to a shared variable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum WriteKind {
    /// A new value for all of it, or for a part that is the same for every item.
    Same,
    /// A new value for a part that an index chooses: items may write different ones.
    Part,
    /// A write to the part that the item's number chooses: every item has its own part.
    Own,
    /// `+=`, `++` and such.
    Update,
}

/// Where `break` and `continue` lead.
#[derive(Clone, Copy)]
enum Target {
    Loop { exit: Point, again: Point },
    Switch { exit: Point },
    Lane { number: usize },
}

struct Builder<'a, 't> {
    source: &'a Source<'a>,
    names: &'a Names<'t>,
    pointed: &'a Pointed,
    flow: Flow<'t>,
    targets: Vec<Target>,
    /// The heads of the enclosing `switch` statements.
    switches: Vec<Point>,
    labels: HashMap<&'a str, (Point, usize)>,
    gotos: Vec<(Point, Node<'t>)>,
    /// Ranges between `#if` and `#endif` in this function.
    optional: Vec<Range<usize>>,
    lane: Option<usize>,
    /// The number of enclosing statement expressions.
    in_expression: usize,
    faults: Vec<Diagnostic>,
}

pub(crate) fn build<'t>(
    source: &Source<'_>,
    names: &Names<'t>,
    pointed: &Pointed,
    function: Node<'t>,
) -> Result<Flow<'t>, Vec<Diagnostic>> {
    let mut builder = Builder {
        source,
        names,
        pointed,
        flow: Flow {
            steps: vec![Step::Nothing],
            next: vec![Vec::new()],
            marks: Vec::new(),
            jumps: Vec::new(),
            lanes: Vec::new(),
            shared_writes: Vec::new(),
            has_label: false,
        },
        targets: Vec::new(),
        switches: Vec::new(),
        labels: HashMap::new(),
        gotos: Vec::new(),
        optional: optional(source, function),
        lane: None,
        in_expression: 0,
        faults: Vec::new(),
    };
    if let Some(body) = function.child_by_field_name("body") {
        builder.statement(body, 0);
    }
    builder.join_gotos();
    match builder.faults.is_empty() {
        true => Ok(builder.flow),
        false => Err(builder.faults),
    }
}

/// The outermost `#if` … `#endif` groups in a function.
fn optional(source: &Source<'_>, function: Node<'_>) -> Vec<Range<usize>> {
    let (mut groups, mut depth, mut begin) = (Vec::new(), 0_usize, 0);
    for directive in &source.directives {
        if !function.byte_range().contains(&directive.range.start) {
            continue;
        }
        match directive.keyword.as_str() {
            "if" => {
                if depth == 0 {
                    begin = directive.range.start;
                }
                depth += 1;
            }
            "endif" => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    groups.push(begin..directive.range.end);
                }
            }
            _ => {}
        }
    }
    groups
}

impl<'a, 't> Builder<'a, 't> {
    fn text(&self, node: Node<'_>) -> &'a str {
        &self.source.text[node.byte_range()]
    }

    fn refuse(&mut self, node: Node<'_>, reason: impl Into<String>) {
        let fault = Diagnostic::refused(self.source.text, node.start_byte(), reason);
        self.faults.push(fault);
    }

    fn is_optional(&self, node: Node<'_>) -> bool {
        let at = node.start_byte();
        self.optional.iter().any(|group| group.contains(&at))
    }

    fn point(&mut self) -> Point {
        self.flow.steps.push(Step::Nothing);
        self.flow.next.push(Vec::new());
        self.flow.steps.len() - 1
    }

    fn edge(&mut self, from: Point, to: Point) {
        self.flow.next[from].push(to);
    }

    fn after(&mut self, from: Point, step: Step) -> Point {
        let point = self.point();
        self.flow.steps[point] = step;
        self.edge(from, point);
        point
    }

    fn join_gotos(&mut self) {
        for (from, statement) in std::mem::take(&mut self.gotos) {
            let Some(label) = statement.child_by_field_name("label") else {
                continue;
            };
            let Some((to, at)) = self.labels.get(self.text(label)).copied() else {
                self.refuse(statement, "this label is not in the function");
                continue;
            };
            let here = self.names.lane_at(statement.start_byte());
            let there = self.names.lane_at(at);
            if here != there {
                let reason = match here {
                    Some(_) => "`goto` out of a lane; the other lanes are still running",
                    None => "`goto` into a lane, which has no item then",
                };
                self.refuse(statement, reason);
            }
            self.edge(from, to);
        }
    }
}
