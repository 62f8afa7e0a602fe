//! The core of an endpoint, which passes each event to its parts (convention 20). Logic belongs in
//! the parts, so the number of methods of `Core`, and of the files that contain them, is bounded. A
//! reader of these methods sees all paths that an event can take. A function elsewhere that borrows
//! a `Core` to change it counts as one of the methods.

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use super::Finding;
use super::tokens::{braces, is_punct, is_test};
use super::tree::{File, Tree};

/// The source folder of the crate; `PLACE`: the path of its `Core`, a file and the folder of the
/// same name.
const CRATE: &str = "crates/core/src/";
const PLACE: &str = "crates/core/src/protocol";

/// The most files with methods of `Core`.
const FILES: usize = 4;

/// The most methods of `Core`, including those in builds with planted bugs, and functions with an
/// argument `&mut Core`.
const METHODS: usize = 40;

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let is_source = |file: &&File| file.path.starts_with(CRATE) && !is_test(&file.path);
    let files: Vec<&File> = tree.rust().filter(is_source).collect();
    let borrowers: usize = files.iter().copied().map(borrowers).sum();
    let counts: Vec<(&File, usize)> = files
        .into_iter()
        .filter_map(|file| Some((file, methods(file)?)))
        .collect();
    let is_outside = |file: &File| {
        let rest = file.path.strip_prefix(PLACE);
        !rest.is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
    };
    let mut findings = Vec::new();
    for (file, _) in counts.iter().filter(|(file, _)| is_outside(file)) {
        let what = format!("has methods of `Core`; they belong in {PLACE}");
        findings.push(Finding::new(&file.path, 0, what));
    }
    if counts.len() > FILES {
        let what = format!(
            "{} files have methods of `Core`; at most {FILES} may",
            counts.len()
        );
        findings.push(Finding::new(PLACE, 0, what));
    }
    let methods: usize = counts.iter().map(|(_, count)| count).sum();
    if methods + borrowers > METHODS {
        let what = format!(
            "`Core` has {methods} methods, and {borrowers} functions take `&mut Core`; together at \
             most {METHODS} may exist: move logic down"
        );
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

/// The number of functions in a file that take a `&mut Core`.
fn borrowers(file: &File) -> usize {
    file.text.parse().map_or(0, borrowers_in)
}

fn borrowers_in(stream: TokenStream) -> usize {
    let tokens: Vec<TokenTree> = stream.into_iter().collect();
    let is_borrower = |at: &usize| {
        let is_arguments = |token: &&TokenTree| {
            matches!(token, TokenTree::Group(group)
                if group.delimiter() == Delimiter::Parenthesis)
        };
        let head = &tokens[*at..];
        is_word(&head[0], "fn")
            && head
                .iter()
                .find(is_arguments)
                .is_some_and(|arguments| lends_core(std::slice::from_ref(arguments)))
    };
    let here = (0..tokens.len()).filter(is_borrower).count();
    let inside = tokens.iter().map(|token| match token {
        TokenTree::Group(group) => borrowers_in(group.stream()),
        _ => 0,
    });
    here + inside.sum::<usize>()
}

/// Whether these tokens contain `&mut Core`, with or without a lifetime and a path.
fn lends_core(tokens: &[TokenTree]) -> bool {
    let is_here = (0..tokens.len()).any(|at| {
        let mut rest = tokens[at..].iter().peekable();
        if !rest.next().is_some_and(|token| is_punct(token, '&')) {
            return false;
        }
        if rest.next_if(|token| is_punct(token, '\'')).is_some() {
            rest.next();
        }
        let is_mutable = rest.next().is_some_and(|token| is_word(token, "mut"));
        let is_path =
            |token: &&TokenTree| matches!(token, TokenTree::Ident(_)) || is_punct(token, ':');
        let name = rest.take_while(is_path).last();
        is_mutable && name.is_some_and(|name| is_word(name, "Core"))
    });
    let is_inside = |token: &TokenTree| match token {
        TokenTree::Group(group) => lends_core(&group.stream().into_iter().collect::<Vec<_>>()),
        _ => false,
    };
    is_here || tokens.iter().any(is_inside)
}

fn is_word(token: &TokenTree, word: &str) -> bool {
    matches!(token, TokenTree::Ident(found) if found == word)
}

#[cfg(test)]
mod tests;
