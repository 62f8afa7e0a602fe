//! One name, one thing (convention 3): in the whole tree, each listed name belongs to one type. A
//! second type needs a more exact name.

use std::collections::BTreeMap;

use super::Finding;
use super::tree::Tree;

/// Names that have stood for several things.
const NAMES: [&str; 7] = [
    "Arrival",
    "EndpointUid",
    "Entry",
    "Incoming",
    "Place",
    "Rpc",
    "Ticket",
];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut first: BTreeMap<&str, String> = BTreeMap::new();
    for file in tree.rust() {
        for (at, line) in file.text.lines().enumerate() {
            let Some(name) = defined(line).or_else(|| renamed(line)) else {
                continue;
            };
            let here = format!("{}:{}", file.path, at + 1);
            if let Some(there) = first.get(name) {
                let what = format!("`{name}` is the name of another type, in {there}");
                findings.push(Finding::new(&file.path, at + 1, what));
            } else {
                first.insert(name, here);
            }
        }
    }
    findings
}

/// The listed name that a line gives to a type. An indented `type` belongs to a trait, which has
/// chosen the name.
fn defined(line: &str) -> Option<&'static str> {
    let item = line.trim_start();
    let item = item.strip_prefix("pub").unwrap_or(item);
    let item = match item.starts_with('(') {
        true => item.split_once(')')?.1,
        false => item,
    };
    let (keyword, rest) = item.trim_start().split_once(' ')?;
    match keyword {
        "struct" | "enum" | "trait" | "union" => listed(rest),
        "type" if !line.starts_with(' ') => listed(rest),
        _ => None,
    }
}

/// The listed name that an import gives to a type of another name. Lines with strings do not count.
fn renamed(line: &str) -> Option<&'static str> {
    if line.contains('"') {
        return None;
    }
    let code = line.split("//").next().unwrap_or_default();
    code.split(" as ").skip(1).find_map(listed)
}

/// The listed name with which a text begins.
fn listed(text: &str) -> Option<&'static str> {
    let end = text.find(|c: char| !(c.is_alphanumeric() || c == '_'));
    let word = &text[..end.unwrap_or(text.len())];
    NAMES.into_iter().find(|name| *name == word)
}

#[cfg(test)]
mod tests;
