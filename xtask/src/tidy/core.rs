//! The core of an endpoint, which passes each event to its parts (convention 20). Logic belongs in
//! the parts, so the number of methods of `Core`, and of the files that contain them, is bounded. A
//! reader of these methods sees all paths that an event can take.

use proc_macro2::{TokenStream, TokenTree};

use super::Finding;
use super::tokens::{braces, is_test};
use super::tree::{File, Tree};

/// The source folder of the crate; `PLACE`: the path of its `Core`, a file and the folder of the
/// same name.
const CRATE: &str = "crates/core/src/";
const PLACE: &str = "crates/core/src/protocol";

/// Most files with methods of `Core`.
const FILES: usize = 4;

/// Most methods of `Core`, including those in builds with planted bugs.
const METHODS: usize = 40;

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let files = tree
        .rust()
        .filter(|file| file.path.starts_with(CRATE) && !is_test(&file.path));
    let counts: Vec<(&File, usize)> = files
        .filter_map(|file| Some((file, methods(file)?)))
        .collect();
    let is_outside = |file: &File| {
        let rest = file.path.strip_prefix(PLACE);
        !rest.is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
    };
    let mut findings = Vec::new();
    for (file, _) in counts.iter().filter(|(file, _)| is_outside(file)) {
        let what = format!("has methods of `Core`; they stand in {PLACE}");
        findings.push(Finding::new(&file.path, 0, what));
    }
    if counts.len() > FILES {
        let what = format!("{} files have methods of `Core`, {FILES} may", counts.len());
        findings.push(Finding::new(PLACE, 0, what));
    }
    let methods: usize = counts.iter().map(|(_, count)| count).sum();
    if methods > METHODS {
        let what = format!("`Core` has {methods} methods, and may have {METHODS}: move logic down");
        findings.push(Finding::new(PLACE, 0, what));
    }
    findings
}

/// The number of methods of `Core` in a file; `None` if the file has no `impl Core`.
fn methods(file: &File) -> Option<usize> {
    let tokens: Vec<TokenTree> = file.text.parse::<TokenStream>().ok()?.into_iter().collect();
    let counts = (0..tokens.len()).filter_map(|at| match &tokens[at..] {
        [first, second, body, ..] if is_word(first, "impl") && is_word(second, "Core") => {
            braces(body)
        }
        _ => None,
    });
    let is_function = |token: &TokenTree| is_word(token, "fn");
    counts
        .map(|body| body.stream().into_iter().filter(is_function).count())
        .reduce(|sum, count| sum + count)
}

fn is_word(token: &TokenTree, word: &str) -> bool {
    matches!(token, TokenTree::Ident(found) if found == word)
}

#[cfg(test)]
mod tests;
