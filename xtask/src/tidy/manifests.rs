//! The manifests of all workspaces agree. Each workspace has its own lints, profiles, edition and
//! versions of libraries, so changing only one manifest would give the workspaces different rules.

use std::collections::BTreeMap;

use super::Finding;
use super::tree::Tree;
use crate::workspaces::FOLDERS;

/// The sections of a manifest: for each heading, the lines that are not comments.
type Sections<'a> = BTreeMap<&'a str, Vec<&'a str>>;

/// Sections in which workspaces differ: the members, and the folders of crates.
const OWN: [&str; 2] = ["[workspace]", "[workspace.dependencies]"];

/// Sections whose headings begin like this may also differ. The look-ups of `gopt` are measured
/// only in a build with one codegen unit, Dunlin also in a user's build.
const MAY_DIFFER: [&str; 2] = ["[profile.release", "[profile.lto"];

/// A section for one package. Cargo warns if the workspace does not have the package.
const OF_PACKAGE: &str = "[profile.dev.package.";

/// The section for all foreign packages.
const OF_OTHERS: &str = "[profile.dev.package.\"*\"]";

const DEPENDENCIES: &str = "[workspace.dependencies]";

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let path = |folder: &str| {
        format!("{folder}/Cargo.toml")
            .trim_start_matches('/')
            .to_owned()
    };
    let Some(first) = tree.get(&path(FOLDERS[0])) else {
        return vec![Finding::new("Cargo.toml", 0, "there is no workspace")];
    };
    let first = sections(&first.text);
    let mut findings = Vec::new();
    for path in FOLDERS[1..].iter().map(|folder| path(folder)) {
        match tree.get(&path) {
            Some(file) => {
                let other = sections(&file.text);
                let found = differences(&first, &other).into_iter();
                findings.extend(found.map(|what| Finding::new(&path, 0, what)));
            }
            None => findings.push(Finding::new(&path, 0, "there is no workspace")),
        }
    }
    findings
}

fn differences(first: &Sections<'_>, other: &Sections<'_>) -> Vec<String> {
    let mut headings: Vec<&str> = first.keys().chain(other.keys()).copied().collect();
    headings.sort_unstable();
    headings.dedup();
    headings.retain(|heading| !OWN.contains(heading));
    headings.retain(|heading| !MAY_DIFFER.iter().any(|begin| heading.starts_with(begin)));
    headings.retain(|heading| *heading == OF_OTHERS || !heading.starts_with(OF_PACKAGE));
    headings.retain(|heading| first.get(heading) != other.get(heading));
    let mut found: Vec<String> = headings
        .iter()
        .map(|heading| format!("{heading} is not as in the root's Cargo.toml"))
        .collect();
    let libraries = libraries(first);
    let differs = |(name, line): &(&str, &str)| {
        let same = libraries.iter().find(|(other, _)| other == name);
        same.is_some_and(|(_, other)| other != line)
    };
    let differing = self::libraries(other).into_iter().filter(differs);
    found.extend(differing.map(|(name, _)| format!("`{name}` is not as in the root's Cargo.toml")));
    found
}

/// Names and lines of the foreign libraries that a workspace uses.
fn libraries<'a>(sections: &Sections<'a>) -> Vec<(&'a str, &'a str)> {
    let lines = sections.get(DEPENDENCIES).into_iter().flatten();
    let lines = lines.filter(|line| !line.contains("path ="));
    lines
        .filter_map(|line| Some((line.split_once('=')?.0.trim(), *line)))
        .collect()
}

fn sections(text: &str) -> Sections<'_> {
    let mut sections = Sections::new();
    let mut heading = "";
    for line in text.lines().map(str::trim) {
        if line.starts_with('[') {
            heading = line;
        }
        if !line.is_empty() && !line.starts_with('#') {
            sections.entry(heading).or_default().push(line);
        }
    }
    sections
}

#[cfg(test)]
mod tests;
