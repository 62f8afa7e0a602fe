//! No file names a path of the machine on which it was written, because other machines do not have
//! that path.

use super::Finding;
use super::tree::Tree;

/// The first components of absolute paths that get into files by accident. They stand here without
/// their slashes, because this file must pass its own check.
const ACCIDENTS: [&str; 4] = ["work", "tmp", "root", "home"];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in &tree.files {
        for (number, line) in file.text.lines().enumerate() {
            for part in ACCIDENTS
                .into_iter()
                .filter(|part| has_absolute(line, part))
            {
                let what = format!("names the absolute path `/{part}`");
                findings.push(Finding::new(&file.path, number + 1, what));
            }
        }
    }
    findings
}

/// True if a path in the line begins with `/part`.
fn has_absolute(line: &str, part: &str) -> bool {
    line.match_indices(part).any(|(at, _)| {
        let Some(before) = line[..at].strip_suffix('/') else {
            return false;
        };
        let continues = |c: char| c.is_alphanumeric() || "._-/}*~)>$".contains(c);
        let is_inside_path = before.ends_with(continues);
        let is_longer_name = line[at + part.len()..]
            .starts_with(|c: char| c.is_alphanumeric() || c == '_' || c == '-');
        !is_inside_path && !is_longer_name
    })
}

#[cfg(test)]
mod tests;
