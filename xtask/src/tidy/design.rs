//! Citations of the design ("design §8", "design §9, §12"): each names a section of
//! `docs/design.md`, whose headings begin with their numbers (convention 12).

use std::collections::BTreeMap;

use super::Finding;
use super::prose;
use super::tree::{File, Tree};

const DESIGN: &str = "docs/design.md";

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let Some(design) = tree.get(DESIGN) else {
        return vec![Finding::new(
            DESIGN,
            0,
            "the page with the design is missing",
        )];
    };
    let mut findings = Vec::new();
    let mut sections: BTreeMap<&str, usize> = BTreeMap::new();
    for (section, line) in sections_of(&design.text) {
        if let Some(first) = sections.insert(section, line) {
            let what = format!("section {section} is in line {first} already");
            findings.push(Finding::new(DESIGN, line, what));
        }
    }
    for file in &tree.files {
        for (section, line) in citations(file) {
            if !sections.contains_key(section.as_str()) {
                let what = format!("{DESIGN} has no section \"{section}\"");
                findings.push(Finding::new(&file.path, line, what));
            }
        }
    }
    findings
}

/// The number at the beginning of each heading of the second level, with its line.
fn sections_of(text: &str) -> impl Iterator<Item = (&str, usize)> {
    text.lines().zip(1..).filter_map(|(line, number)| {
        let section = line.strip_prefix("## ")?.split(' ').next()?;
        let is_number = section.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then_some((section, number))
    })
}

/// Every section that the prose of the file cites, with the line. A citation may continue on the
/// next line; a citation in backticks is an example and does not count.
fn citations(file: &File) -> Vec<(String, usize)> {
    let lines = prose::lines(file);
    let mut words = lines
        .iter()
        .flat_map(|line| line.text.split_whitespace().map(|word| (word, line.number)))
        .peekable();
    let mut cited = Vec::new();
    while let Some((word, _)) = words.next() {
        if !word.trim_start_matches('(').eq_ignore_ascii_case("design") {
            continue;
        }
        while let Some((section, line)) = words.next_if(|(word, _)| word.starts_with('§')) {
            let section = section.trim_start_matches('§');
            let end = section.find(|c: char| !c.is_alphanumeric());
            cited.push((section[..end.unwrap_or(section.len())].to_owned(), line));
            if !section.ends_with(',') {
                break;
            }
        }
    }
    cited
}

#[cfg(test)]
mod tests;
