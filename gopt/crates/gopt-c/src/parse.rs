//! Parses the text. The parser's errors become refusals with a place. Called by `lib.rs` alone.

mod explain;

use tree_sitter::{Node, Parser, Tree};

use crate::diagnostic::Diagnostic;
use crate::source::Source;

/// Statements and expressions nested deeper than this are refused, because the passes are
/// recursive.
const DEPTH: usize = 400;

/// The message if nothing more is known.
const NO_C: &str = "this is not C; if it is C with its `#` lines, use `--preprocess`";

pub(crate) fn parse(source: &Source<'_>) -> Result<Tree, Diagnostic> {
    let mut parser = Parser::new();
    parser
        .set_language(&tree_sitter_c::LANGUAGE.into())
        .expect("the versions of the grammar and of the parser are fixed together");
    let tree = parser
        .parse(&source.masked, None)
        .expect("a parser without a time limit ends with a tree");
    match first_fault(&tree) {
        None => Ok(tree),
        Some((node, reason)) => {
            let (at, reason) = explain::fault(source, node.byte_range(), reason);
            Err(Diagnostic::refused(source.text, at, reason))
        }
    }
}

/// Finds the first node that is not C, or is nested too deeply. Does not recurse.
fn first_fault(tree: &Tree) -> Option<(Node<'_>, String)> {
    let mut cursor = tree.walk();
    loop {
        let node = cursor.node();
        if node.is_error() {
            return Some((node, NO_C.to_owned()));
        }
        if node.is_missing() {
            return Some((node, format!("`{}` is missing here", node.kind())));
        }
        if usize::try_from(cursor.depth()).expect("a depth fits") > DEPTH {
            return Some((node, format!("this is nested more than {DEPTH} deep")));
        }
        if cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return None;
            }
        }
    }
}
