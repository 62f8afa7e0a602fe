//! gopt for C: rewrites batched look-up functions so that they hide memory latency (G-Opt §3.2).
//!
//! The input is C in which a `foreach (i, n) { … }` runs a block, a *lane*, for each of `n`
//! independent items, and `g_expensive(address);` marks an access that is likely to miss all
//! caches. In the output a lane does not wait for such an access: it prefetches the address, and
//! the next lane runs. Text in, text out; nothing here reads a file.
//!
//! ```
//! let source = "
//! void find(const struct entry *table, const int *keys, int *values, int n)
//! {
//!     foreach (i, n) {
//!         const struct entry *entry = &table[hash(keys[i])];
//!         g_expensive(entry);
//!         values[i] = entry->key == keys[i] ? entry->value : -1;
//!     }
//! }
//! ";
//! let output = gopt_c::transform(source, 16).expect("nothing in it is refused");
//! assert!(output.text.contains("__builtin_prefetch(gopt_of_entry[gopt_lane])"));
//! ```
//!
//! The passes, in order: `source` (the preprocessor's view), `parse`, then for each function with a
//! `foreach` `names`, `pointed` (places that lanes share through pointers), `flow`, `address`,
//! `lanes` (which variables get an array, which are refused), and `emit` with `declare`. They
//! collect edits, and the output is rendered at the end.

#![forbid(unsafe_code)]

mod address;
mod declare;
mod diagnostic;
mod edit;
mod emit;
mod flow;
mod lanes;
mod names;
mod parse;
mod pointed;
mod source;

use tree_sitter::Node;

pub use diagnostic::{Diagnostic, Severity};

/// The definitions with which the input compiles to the same program without this tool.
pub const HEADER: &str = include_str!("../include/gopt.h");

/// Lanes in flight, unless the user gives a number.
pub const DEFAULT_LANES: usize = 16;

/// The most lanes in flight. More would not help: the lanes' state must stay in the first cache
/// levels.
pub const MAX_LANES: usize = 1024;

/// Largest input, in bytes.
pub const MAX_BYTES: usize = 8 << 20;

/// The result for a text that is not refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Output {
    /// The transformed text.
    pub text: String,
    /// The number of `foreach` loops that were transformed.
    pub loops: usize,
    /// Places where the output may not mean what the input means.
    pub warnings: Vec<Diagnostic>,
}

/// Transforms a C file, with `lanes` items of each `foreach` in flight.
///
/// # Errors
/// The reasons why the text is refused, in the order of the text. At least one of them is
/// [`Severity::Refused`].
pub fn transform(text: &str, lanes: usize) -> Result<Output, Vec<Diagnostic>> {
    let refused = |reason: String| vec![Diagnostic::refused(text, 0, reason)];
    if lanes == 0 || lanes > MAX_LANES {
        return Err(refused(format!(
            "the batch must be 1 to {MAX_LANES} lanes, not {lanes}"
        )));
    }
    if text.len() > MAX_BYTES {
        let bytes = text.len();
        return Err(refused(format!(
            "{bytes} bytes; more than {MAX_BYTES} are refused"
        )));
    }
    if text.trim().is_empty() {
        return Err(refused("the file is empty".to_owned()));
    }
    if let Some(at) = text.find('\0') {
        let reason = "a byte of value 0; is this text in UTF-16?";
        return Err(vec![Diagnostic::refused(text, at, reason)]);
    }
    let source = source::Source::read(text).map_err(|fault| vec![fault])?;
    let tree = parse::parse(&source).map_err(|fault| vec![fault])?;
    if source.foreach.is_empty() {
        return Err(refused(
            "no `foreach`: there is nothing to transform".to_owned(),
        ));
    }
    let mut emitter = emit::Emitter::new(&source, lanes);
    let globals = names::globals(&source, tree.root_node());
    let (mut warnings, mut faults) = (Vec::new(), outside(&source, tree.root_node()));
    for function in functions(&source, tree.root_node()) {
        match lanes::plan(&source, &globals, function) {
            Ok(plan) => {
                emitter.function(&plan);
                warnings.extend(plan.warnings);
            }
            Err(found) => faults.extend(found),
        }
    }
    if !faults.is_empty() {
        faults.sort_by_key(|fault| (fault.line, fault.column));
        return Err(faults);
    }
    Ok(Output {
        text: emitter.finish(),
        loops: source.foreach.len(),
        warnings,
    })
}

/// The functions of a file that have a `foreach`.
fn functions<'t>(source: &source::Source<'_>, root: Node<'t>) -> Vec<Node<'t>> {
    let has_foreach = |node: &Node<'_>| {
        let range = node.byte_range();
        source.foreach.iter().any(|at| range.contains(at))
    };
    top_level(root).into_iter().filter(has_foreach).collect()
}

fn top_level(root: Node<'_>) -> Vec<Node<'_>> {
    let is_function = |node: &Node<'_>| node.kind() == "function_definition";
    names::children(root)
        .into_iter()
        .filter(is_function)
        .collect()
}

/// Refuses marks and loops outside of functions that have a `foreach`.
fn outside(source: &source::Source<'_>, root: Node<'_>) -> Vec<Diagnostic> {
    let functions = functions(source, root);
    let is_inside = |at: usize| functions.iter().any(|node| node.byte_range().contains(&at));
    let marks = source.identifiers.iter().filter(|place| {
        source::MARKS.contains(&&source.text[(*place).clone()]) && !is_inside(place.start)
    });
    let marks = marks.map(|place| {
        let reason = "an expensive access outside of a `foreach`";
        Diagnostic::refused(source.text, place.start, reason)
    });
    let loops = source.foreach.iter().filter(|at| !is_inside(**at));
    let loops =
        loops.map(|at| Diagnostic::refused(source.text, *at, "a `foreach` outside of a function"));
    marks.chain(loops).collect()
}
