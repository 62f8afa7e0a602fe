//! Relative links in Markdown files lead to existing files and headings.

use std::collections::{BTreeMap, BTreeSet};

use super::Finding;
use super::tree::{File, Tree};

/// The anchors of each page's headings.
type Anchors = BTreeMap<String, BTreeSet<String>>;

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let pages = || tree.files.iter().filter(|file| file.path.ends_with(".md"));
    let named = pages().map(|page| (page.path.clone(), anchors(&page.text)));
    let anchors: Anchors = named.collect();
    pages()
        .flat_map(|page| check_page(tree, &anchors, page))
        .collect()
}

/// The link targets in the prose of a page, each with its line number.
pub(super) fn relative(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let targets = |(number, line)| {
        targets(line)
            .into_iter()
            .map(move |target| (number, target))
    };
    prose(text)
        .flat_map(targets)
        .filter(|(_, target)| is_relative(target))
}

/// The path, from the root, to which a link to `target` on the page `page` leads.
pub(super) fn resolve(page: &str, target: &str) -> String {
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.pop().is_none() => return target.to_owned(),
            ".." => {}
            name => parts.push(name),
        }
    }
    parts.join("/")
}

fn check_page(tree: &Tree, anchors: &Anchors, page: &File) -> Vec<Finding> {
    let wrong = |target: &str| {
        let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
        let path = match file {
            "" => page.path.clone(),
            file => resolve(&page.path, file),
        };
        if !tree.paths.contains(&path) {
            return Some(format!("no file `{target}`"));
        }
        // Only pages have headings; in other files the viewer interprets an anchor.
        let has_anchor = anchors.get(&path).is_none_or(|it| it.contains(anchor));
        (!anchor.is_empty() && !has_anchor).then(|| format!("no heading `{target}`"))
    };
    relative(&page.text)
        .filter_map(|(number, target)| Some(Finding::new(&page.path, number, wrong(target)?)))
        .collect()
}

/// The lines that are not code, with their numbers.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_code = false;
    text.lines().zip(1..).filter_map(move |(line, number)| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        (!is_code && !is_fence).then_some((number, line))
    })
}

/// The targets of a line's links: `[text](target)` or `[name]: target`.
fn targets(line: &str) -> Vec<&str> {
    let mut targets: Vec<&str> = line
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split([')', ' ']).next())
        .collect();
    let reference = line
        .trim_start()
        .strip_prefix('[')
        .and_then(|rest| rest.split_once("]: "));
    targets.extend(reference.and_then(|(_, target)| target.split_whitespace().next()));
    targets
}

fn is_relative(target: &str) -> bool {
    !target.contains("://") && !target.starts_with("mailto:")
}

/// The anchors of a page's headings, as forges and mdBook make them: lower-case letters, digits,
/// `_` and `-`, a `-` for each space, and a number after repeated anchors.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let headings = prose(text).filter_map(|(_, line)| {
        let title = line.trim_start_matches('#');
        (title.len() < line.len()).then_some(title.strip_prefix(' ')?)
    });
    for heading in headings {
        let slug: String = heading.trim().chars().filter_map(slug).collect();
        let count = counts.entry(slug.clone()).or_default();
        anchors.insert(match *count {
            0 => slug,
            repeated => format!("{slug}-{repeated}"),
        });
        *count += 1;
    }
    anchors
}

fn slug(c: char) -> Option<char> {
    match c {
        ' ' => Some('-'),
        '_' | '-' => Some(c),
        c if c.is_alphanumeric() => c.to_lowercase().next(),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
