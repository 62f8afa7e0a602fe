//! Relative links in Markdown files lead to files that exist.

use super::Finding;
use super::tree::{File, Tree};

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let pages = tree.files.iter().filter(|file| file.path.ends_with(".md"));
    pages.flat_map(|page| check_page(tree, page)).collect()
}

fn check_page(tree: &Tree, page: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut is_code = false;
    for (number, line) in page.text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        }
        if is_code {
            continue;
        }
        for target in targets(line)
            .into_iter()
            .filter(|target| is_relative(target))
        {
            let file = target.split('#').next().unwrap_or_default();
            if !tree.paths.contains(&resolve(&page.path, file)) {
                findings.push(Finding::new(
                    &page.path,
                    number + 1,
                    format!("no file `{target}`"),
                ));
            }
        }
    }
    findings
}

/// What a line links to: `[text](target)` or `[name]: target`.
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
    !target.starts_with('#') && !target.contains("://") && !target.starts_with("mailto:")
}

/// The path from the root that `target` means on the page at `page`.
fn resolve(page: &str, target: &str) -> String {
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

#[cfg(test)]
mod tests;
