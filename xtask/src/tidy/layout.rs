//! The outer form of a Rust file: its name, its first line, its length, and the lengths of its
//! lines (conventions 1 to 3).

use super::Finding;
use super::tree::{File, Tree};

/// A file must be shorter than this many lines.
const FILE_LINES: usize = 500;

/// Most columns of a line.
const COLUMNS: usize = 100;

/// Names that do not describe the content of a file.
const EMPTY_NAMES: [&str; 8] = [
    "utils", "util", "helpers", "helper", "common", "manager", "misc", "stuff",
];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    tree.rust().flat_map(check_file).collect()
}

fn check_file(file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    if !file.text.starts_with("//!") {
        let what = "a file opens with `//!`: what it owns, its invariants, its callers";
        findings.push(Finding::new(&file.path, 1, what));
    }
    let lines = file.text.lines().count();
    if lines >= FILE_LINES {
        let what = format!("{lines} lines; a file has fewer than {FILE_LINES}");
        findings.push(Finding::new(&file.path, 0, what));
    }
    for (number, line) in file.text.lines().enumerate() {
        let columns = line.chars().count();
        if columns > COLUMNS {
            let what = format!("{columns} columns; a line has at most {COLUMNS}");
            findings.push(Finding::new(&file.path, number + 1, what));
        }
    }
    let names = file.path.trim_end_matches(".rs").split('/');
    for name in names.filter(|name| EMPTY_NAMES.contains(name)) {
        let what = format!("`{name}` does not say what the file owns");
        findings.push(Finding::new(&file.path, 0, what));
    }
    findings
}

#[cfg(test)]
mod tests;
