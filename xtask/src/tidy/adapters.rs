//! The adapters of handshakes, in the nexus and in the simulator, stay thin
//! (`docs/decisions/one-handshake.md`): an adapter is short, and names no type by which it could
//! decide the course of a handshake. Both sides run the same code only as long as this holds.

use proc_macro2::{TokenStream, TokenTree};

use super::Finding;
use super::tokens::{braces, is_test};
use super::tree::{File, Tree};

/// The trait that an adapter implements, and the crate that owns all stages.
const TRAIT: &str = "Peering";
const OWNER: &str = "crates/control/";

/// The crates that have an adapter.
const USERS: [&str; 2] = ["crates/nexus/", "crates/sim/"];

/// An adapter's file must be shorter than this many lines.
const LINES: usize = 100;

/// The types of `control` that carry a handshake from stage to stage.
const DECIDING: [&str; 6] = [
    "Stage",
    "Step",
    "Event",
    "Completion",
    "Answer",
    "WrongStage",
];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let adapters: Vec<(&File, TokenStream)> = tree
        .rust()
        .filter(|file| !file.path.starts_with(OWNER) && !is_test(&file.path))
        .filter_map(|file| Some((file, file.text.parse().ok()?)))
        .filter(|(_, stream)| is_adapter(stream))
        .collect();
    let mut findings: Vec<Finding> = adapters
        .iter()
        .flat_map(|(file, stream)| check_adapter(file, stream))
        .collect();
    let has_one = |user: &&str| {
        adapters
            .iter()
            .any(|(file, _)| file.path.starts_with(*user))
    };
    findings.extend(USERS.iter().filter(|user| !has_one(user)).map(|user| {
        let what = format!("no file implements `{TRAIT}`, so this check finds no adapter");
        Finding::new(user, 0, what)
    }));
    findings
}

fn check_adapter(file: &File, stream: &TokenStream) -> Vec<Finding> {
    let mut findings = Vec::new();
    let lines = file.text.lines().count();
    if lines >= LINES {
        let what = format!("has {lines} lines; an adapter of handshakes has fewer than {LINES}");
        findings.push(Finding::new(&file.path, 0, what));
    }
    let mut named = Vec::new();
    collect_named(stream.clone(), &mut named);
    findings.extend(named.into_iter().map(|(line, name)| {
        let what = format!("names `{name}`: `Handshake` decides about stages, no adapter does");
        Finding::new(&file.path, line, what)
    }));
    findings
}

/// Whether a file has an `impl … Peering … { … }`.
fn is_adapter(stream: &TokenStream) -> bool {
    let tokens: Vec<TokenTree> = stream.clone().into_iter().collect();
    (0..tokens.len()).any(|at| {
        let is_impl = is_word(&tokens[at], "impl");
        let mut head = tokens[at..].iter().take_while(|it| braces(it).is_none());
        is_impl && head.any(|token| is_word(token, TRAIT))
    })
}

/// Adds each use of a type in [`DECIDING`], with its line.
fn collect_named(stream: TokenStream, named: &mut Vec<(usize, &'static str)>) {
    for token in stream {
        if let TokenTree::Group(group) = &token {
            collect_named(group.stream(), named);
        }
        let name = DECIDING.into_iter().find(|name| is_word(&token, name));
        named.extend(name.map(|name| (token.span().start().line, name)));
    }
}

fn is_word(token: &TokenTree, word: &str) -> bool {
    matches!(token, TokenTree::Ident(found) if found == word)
}

#[cfg(test)]
mod tests;
