//! The table of files at the head of a crate. A crate without one needs none; but a table that
//! leaves a file out sends its reader past that file.

use super::Finding;
use super::tree::{File, Tree};

/// Files that say enough by their name.
const PLAIN: [&str; 4] = ["book", "check", "error", "tests"];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let roots = tree
        .rust()
        .filter(|file| file.path.ends_with("/src/lib.rs"));
    roots.flat_map(check_root).collect()
}

fn check_root(file: &File) -> Vec<Finding> {
    let is_head = |line: &&str| line.starts_with("//!");
    let head: String = file.text.lines().take_while(is_head).collect();
    if !head.contains("| file |") {
        return Vec::new();
    }
    let is_listed = |name: &str| {
        let folder = format!("{name}/");
        head.split(['`', ' '])
            .any(|word| word.strip_suffix(".rs") == Some(name) || word.starts_with(&folder))
    };
    let lines = file.text.lines().enumerate();
    let modules = lines.filter_map(|(at, line)| Some((at + 1, module(line)?)));
    let missing = modules.filter(|(_, name)| !PLAIN.contains(name) && !is_listed(name));
    missing
        .map(|(line, name)| {
            let what = format!("the table of files leaves out `{name}.rs`");
            Finding::new(&file.path, line, what)
        })
        .collect()
}

/// The module whose file this line adds to the crate.
fn module(line: &str) -> Option<&str> {
    let (before, name) = line.strip_suffix(';')?.rsplit_once("mod ")?;
    let is_declaration = before.is_empty() || before.starts_with("pub");
    is_declaration.then_some(name)
}

#[cfg(test)]
mod tests;
