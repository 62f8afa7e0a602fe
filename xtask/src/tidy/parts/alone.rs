//! Tests of parts (convention 19): each part has tests in its folder, which build a type of the
//! part. No test there names an endpoint or a world, so a part never needs one to be tested.

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use super::Part;
use crate::tidy::Finding;
use crate::tidy::tokens::is_test;
use crate::tidy::tree::{File, Tree};

/// Names that stand for an endpoint, or for a world with endpoints.
const WORLDS: [&str; 7] = [
    "Core",
    "Endpoint",
    "Network",
    "Pair",
    "Rpc",
    "World",
    "dunlin_testkit",
];

/// The module with the endpoint. Alone, the word is also a name of fields and variables.
const MODULE: &str = "endpoint";

pub(super) fn check(tree: &Tree, parts: &[Part]) -> Vec<Finding> {
    parts
        .iter()
        .flat_map(|part| check_part(tree, part))
        .collect()
}

fn check_part(tree: &Tree, part: &Part) -> Vec<Finding> {
    let folder = part.path.trim_end_matches(".rs");
    let types = types(tree, part);
    let mut findings = Vec::new();
    let mut has_tests = false;
    for file in tree.rust().filter(|file| is_test_below(folder, file)) {
        let words = words(&file.text);
        let worlds = (0..words.len()).filter(|at| names_world(&words, *at));
        findings.extend(worlds.map(|at| {
            let (name, line) = &words[at];
            let what = format!("`{name}` in a test of {folder}, which must stand alone");
            Finding::new(&file.path, *line, what)
        }));
        let has_test = (0..words.len()).any(|at| is_at(&words, at, ["#", "[", "test"]));
        has_tests |= has_test && words.iter().any(|(word, _)| types.contains(word));
    }
    if !has_tests {
        let what = format!("is a part, and no test in {folder} builds one of its types");
        findings.push(Finding::new(part.path, 0, what));
    }
    findings
}

fn is_test_below(folder: &str, file: &File) -> bool {
    let rest = file.path.strip_prefix(folder);
    is_test(&file.path) && rest.is_some_and(|rest| rest.starts_with('/'))
}

/// The visible types of a part that have state.
fn types(tree: &Tree, part: &Part) -> Vec<String> {
    let sources = tree
        .rust()
        .filter(|file| part.has(file) && !is_test(&file.path));
    let names = sources.flat_map(|file| {
        let words = words(&file.text);
        let is_type = |at: &usize| {
            let is_kind = ["struct", "enum"].contains(&words[*at].0.as_str());
            // `pub struct`, `pub(crate) struct`
            let before = at.checked_sub(1).map(|before| words[before].0.as_str());
            is_kind && matches!(before, Some("pub" | ")"))
        };
        let found = (0..words.len()).filter(is_type);
        let names = found.filter_map(|at| Some(words.get(at + 1)?.0.clone()));
        names.collect::<Vec<_>>()
    });
    names
        .filter(|name| !part.values.contains(&name.as_str()))
        .collect()
}

fn names_world(words: &[(String, usize)], at: usize) -> bool {
    let word = words[at].0.as_str();
    let is_segment = || {
        let after = is_at(words, at + 1, [":", ":"]);
        after || at >= 2 && is_at(words, at - 2, [":", ":"])
    };
    WORLDS.contains(&word) || word == MODULE && is_segment()
}

/// Whether these words stand at a place.
fn is_at<const N: usize>(words: &[(String, usize)], at: usize, expected: [&str; N]) -> bool {
    let found = words.get(at..at + N);
    found.is_some_and(|found| found.iter().map(|(word, _)| word).eq(expected))
}

/// The tokens of a Rust file without comments, each with its line.
fn words(text: &str) -> Vec<(String, usize)> {
    let mut words = Vec::new();
    // Another check reports a file that is not Rust.
    if let Ok(stream) = text.parse::<TokenStream>() {
        add(stream, &mut words);
    }
    words
}

fn add(stream: TokenStream, words: &mut Vec<(String, usize)>) {
    for token in stream {
        let line = token.span().start().line;
        let TokenTree::Group(group) = token else {
            words.push((token.to_string(), line));
            continue;
        };
        let (open, close) = match group.delimiter() {
            Delimiter::Parenthesis => ("(", ")"),
            Delimiter::Bracket => ("[", "]"),
            Delimiter::Brace => ("{", "}"),
            Delimiter::None => ("", ""),
        };
        words.push((open.to_owned(), line));
        add(group.stream(), words);
        words.push((close.to_owned(), group.span_close().end().line));
    }
}

#[cfg(test)]
mod tests;
