//! File names in prose (convention 1): each `.rs` and `.md` that a comment or a page names must be
//! in the tree, by its name or by the end of its path.

use std::collections::BTreeSet;

use super::Finding;
use super::prose;
use super::tree::Tree;

const ENDINGS: [&str; 2] = [".rs", ".md"];

/// Names that end like a file name but are not one.
const OTHERS: [&str; 1] = ["docs.rs"];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let known = endings(&tree.paths);
    let mut findings = Vec::new();
    for file in &tree.files {
        for line in prose::lines(file) {
            for name in names(line.text).filter(|name| !known.contains(name)) {
                let what = format!("there is no file `{name}`");
                findings.push(Finding::new(&file.path, line.number, what));
            }
        }
    }
    findings
}

/// Each path, and each suffix of it that begins after a slash.
fn endings(paths: &BTreeSet<String>) -> BTreeSet<&str> {
    let mut endings = BTreeSet::new();
    for path in paths {
        endings.insert(path.as_str());
        endings.extend(path.match_indices('/').map(|(at, _)| &path[at + 1..]));
    }
    endings
}

/// The file names in a line, except those with a wildcard or a variable.
fn names(line: &str) -> impl Iterator<Item = &str> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "_-./*{}<>:".contains(c);
    let words = line.split(move |c| !is_part(c));
    words.filter_map(|word| {
        // A line number may follow the name.
        let name = word.split(':').next().unwrap_or_default();
        let name = name.trim_end_matches('.');
        let name = name.trim_start_matches("../").trim_start_matches("./");
        let is_file = ENDINGS.iter().any(|ending| {
            let stem = name.strip_suffix(ending);
            stem.is_some_and(|stem| !stem.is_empty() && !stem.ends_with('/'))
        });
        let is_pattern = word.contains(['*', '{', '}', '<', '>']) || word.contains("://");
        (is_file && !is_pattern && !OTHERS.contains(&name)).then_some(name)
    })
}

#[cfg(test)]
mod tests;
