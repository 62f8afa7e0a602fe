//! The book: every page is in its table of contents, no page links out of the book, and every page
//! that shows Rust is named by a Rust file, which is the test that compiles the code. The module
//! `links` checks that the target of each link exists.

use super::Finding;
use super::links::{relative, resolve};
use super::tree::{File, Tree};
use crate::workspaces;

const CONTENTS: &str = "docs/SUMMARY.md";
const README: &str = "README.md";

/// Pages outside the book whose code is also compiled.
const OTHERS: &str = "gopt/";

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let Some(contents) = tree.get(CONTENTS) else {
        return vec![Finding::new(CONTENTS, 0, "the book has no contents")];
    };
    let is_page = |file: &&File| file.path.starts_with("docs/") && file.path.ends_with(".md");
    let pages: Vec<&File> = tree.files.iter().filter(is_page).collect();
    let is_missing = |page: &&&File| {
        let link = format!("]({})", page.path.trim_start_matches("docs/"));
        page.path != CONTENTS && !contents.text.contains(&link)
    };
    let missing = pages.iter().filter(is_missing);
    let missing = missing.map(|page| Finding::new(&page.path, 0, "not in docs/SUMMARY.md"));
    let is_other = |file: &&File| file.path.starts_with(OTHERS) && file.path.ends_with(".md");
    let others = tree.files.iter().filter(is_other);
    let shown = pages.iter().copied().chain(tree.get(README)).chain(others);
    missing
        .chain(pages.iter().flat_map(|page| outward(page)))
        .chain(shown.filter_map(|page| unchecked(tree, page)))
        .collect()
}

/// Finds links that a rendered book cannot follow.
fn outward(page: &File) -> impl Iterator<Item = Finding> {
    relative(&page.text).filter_map(|(line, target)| {
        let path = resolve(&page.path, target.split('#').next()?);
        let leads_out =
            !target.starts_with('#') && (!path.starts_with("docs/") || path == CONTENTS);
        let what = format!("`{target}` is not in the book, where this link is broken");
        leads_out.then(|| Finding::new(&page.path, line, what))
    })
}

/// Finds the first Rust code of a page, if no test names the page.
fn unchecked(tree: &Tree, page: &File) -> Option<Finding> {
    let mut lines = page.text.lines();
    let line = lines.position(|line| line.trim_start().starts_with("```rust"))?;
    let workspace = workspaces::of(&page.path);
    let named = format!(
        "/{}\"",
        page.path[workspace.len()..].trim_start_matches('/')
    );
    let mut own = tree
        .rust()
        .filter(|file| workspaces::of(&file.path) == workspace);
    let is_known = own.any(|file| file.text.contains(&named));
    let what = "no test compiles this: name the page in a module of doctests";
    (!is_known).then(|| Finding::new(&page.path, line + 1, what))
}

#[cfg(test)]
mod tests;
