//! The numbered rules of `docs/protocol.md` and the code that cites them (convention 12).
//!
//! A rule is defined where its id (`W4`: a capital letter and a number) is the first word of a
//! heading, list item or table row. It is cited by "rule W4", "rules W1 to W12" or "rules S1, S2
//! and S5" in a Rust file under `crates/`. A cited id must be defined exactly once; a defined rule
//! must be cited.

use std::collections::{BTreeMap, BTreeSet};

use super::Finding;
use super::tree::{File, Tree};

const PROTOCOL: &str = "docs/protocol.md";

/// A rule's id: its letter and its number.
type Id = (char, u32);

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let Some(protocol) = tree.get(PROTOCOL) else {
        return vec![Finding::new(
            PROTOCOL,
            0,
            "the page with the rules is missing",
        )];
    };
    let mut findings = Vec::new();
    let mut defined: BTreeMap<Id, usize> = BTreeMap::new();
    for (id, line) in definitions(&protocol.text) {
        if let Some(first) = defined.insert(id, line) {
            let what = format!("rule {} is defined in line {first} already", name(id));
            findings.push(Finding::new(PROTOCOL, line, what));
        }
    }
    let mut cited = BTreeSet::new();
    for file in tree.rust().filter(|file| file.path.starts_with("crates/")) {
        for (id, line) in citations(file) {
            cited.insert(id);
            if !defined.contains_key(&id) {
                let what = format!("rule {} is not in {PROTOCOL}", name(id));
                findings.push(Finding::new(&file.path, line, what));
            }
        }
    }
    for (id, line) in defined.into_iter().filter(|(id, _)| !cited.contains(id)) {
        let what = format!("nothing cites rule {}", name(id));
        findings.push(Finding::new(PROTOCOL, line, what));
    }
    findings
}

fn name((letter, number): Id) -> String {
    format!("{letter}{number}")
}

/// Every id that a line defines, with the line.
fn definitions(text: &str) -> Vec<(Id, usize)> {
    let defined = |(number, line): (usize, &str)| {
        let marked = line.trim_start();
        let word = marked.trim_start_matches(['#', '-', '*', '|', '`', ' ']);
        let is_marked = word.len() < marked.len();
        let end = word
            .find(|c: char| !c.is_ascii_alphanumeric())
            .unwrap_or(word.len());
        Some((id(&word[..end])?, number + 1)).filter(|_| is_marked)
    };
    text.lines().enumerate().filter_map(defined).collect()
}

/// Every id that the file cites, with the line.
fn citations(file: &File) -> Vec<(Id, usize)> {
    let mut words = words(&file.text).peekable();
    let mut cited = Vec::new();
    while let Some((word, _)) = words.next() {
        if !matches!(word, "rule" | "rules" | "Rule" | "Rules") {
            continue;
        }
        let mut range_from = None;
        while let Some(&(word, line)) = words.peek() {
            if let Some(id) = id(word) {
                cited.extend(expand(range_from.take(), id).map(|id| (id, line)));
            } else if word == "to" {
                range_from = cited.last().map(|&(id, _)| id);
            } else if !matches!(word, "," | "and" | "or") {
                break;
            }
            words.next();
        }
    }
    cited
}

/// The ids of a range with the same letter, from the one after `from` to `to`; only `to` if `from`
/// is `None`.
fn expand(from: Option<Id>, to: Id) -> impl Iterator<Item = Id> {
    let first = match from {
        Some((letter, number)) if letter == to.0 && number < to.1 => number + 1,
        _ => to.1,
    };
    (first..=to.1).map(move |number| (to.0, number))
}

/// Words and commas with their lines. A citation may span lines, so comment marks do not count as
/// words.
fn words(text: &str) -> impl Iterator<Item = (&str, usize)> {
    text.lines().enumerate().flat_map(|(number, line)| {
        let line = line.trim_start().trim_start_matches(['/', '!']);
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let mut rest = line;
        std::iter::from_fn(move || {
            rest = rest.trim_start();
            let first = rest.chars().next()?;
            let end = match rest.find(|c: char| !is_part(c)) {
                Some(0) => first.len_utf8(),
                Some(end) => end,
                None => rest.len(),
            };
            let (word, after) = rest.split_at(end);
            rest = after;
            Some((word, number + 1))
        })
    })
}

fn id(word: &str) -> Option<Id> {
    let letter = word.chars().next().filter(char::is_ascii_uppercase)?;
    let number = &word[1..];
    let is_number = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
    is_number
        .then(|| number.parse().ok())
        .flatten()
        .map(|number| (letter, number))
}

#[cfg(test)]
mod tests;
