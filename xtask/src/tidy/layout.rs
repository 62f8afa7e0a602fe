//! The outer form of a Rust file: its name, its first line, its length, and the lengths of its
//! lines (conventions 1 to 3). A file of C has a limit for its length, too.

use super::Finding;
use super::tree::{File, Tree};

/// A file must be shorter than this many lines.
const FILE_LINES: usize = 500;

/// The most lines of a file of C: the C code of a crate stays short (`docs/decisions/dpdk.md`).
const C_LINES: usize = 400;

/// The most columns of a line.
const COLUMNS: usize = 100;

/// Names that do not describe the content of a file.
const EMPTY_NAMES: [&str; 8] = [
    "utils", "util", "helpers", "helper", "common", "manager", "misc", "stuff",
];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let of_c = tree.files.iter().filter(|file| file.path.ends_with(".c"));
    let of_c = of_c.filter_map(check_c);
    tree.rust().flat_map(check_file).chain(of_c).collect()
}

fn check_c(file: &File) -> Option<Finding> {
    let lines = file.text.lines().count();
    let what = || format!("{lines} lines; a file of C has at most {C_LINES}");
    (lines > C_LINES).then(|| Finding::new(&file.path, 0, what()))
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
