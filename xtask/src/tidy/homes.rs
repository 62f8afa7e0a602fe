//! System calls have homes: outside of tests, `libc` functions are called only in the files that
//! `docs/decisions/system-calls.md` lists, and each listed file exists.

use super::Finding;
use super::tree::{File, Tree};

const PAGE: &str = "docs/decisions/system-calls.md";

/// Crates that only tests use.
const FOR_TESTS: [&str; 1] = ["crates/testkit/"];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let Some(page) = tree.get(PAGE) else {
        return vec![Finding::new(PAGE, 0, "lists the homes of system calls")];
    };
    let homes: Vec<Home> = homes(&page.text).collect();
    let mut findings = Vec::new();
    for Home { line, stem, .. } in &homes {
        let is_there = |path: &String| tree.paths.contains(path);
        if ![stem.clone(), format!("{stem}.rs")].iter().any(is_there) {
            findings.push(Finding::new(PAGE, *line, "there is no such file"));
        }
    }
    let is_home = |path: &str| {
        homes.iter().filter(|home| home.has_libc).any(|home| {
            let rest = path.strip_prefix(home.stem.as_str());
            rest.is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
        })
    };
    for file in tree
        .rust()
        .filter(|file| is_of_program(&file.path) && !is_home(&file.path))
    {
        let what = format!("calls the system, and is not a home in {PAGE}");
        findings.extend(calls(file).map(|line| Finding::new(&file.path, line, &*what)));
    }
    findings
}

/// A row of the page's table.
struct Home {
    line: usize,
    /// The path in the first column, without `.rs`.
    stem: String,
    /// Whether it calls `libc`; if not, `rustix`.
    has_libc: bool,
}

fn homes(page: &str) -> impl Iterator<Item = Home> {
    page.lines().enumerate().filter_map(|(at, row)| {
        let (name, rest) = row.strip_prefix("| `")?.split_once('`')?;
        let folder = match name.starts_with("gopt/") {
            true => "",
            false => "crates/",
        };
        let name = name.strip_suffix(".rs").unwrap_or(name);
        Some(Home {
            line: at + 1,
            stem: format!("{folder}{name}"),
            has_libc: rest.trim_end().ends_with("| `libc` |"),
        })
    })
}

/// True if the file is part of a program, not only of tests or examples.
fn is_of_program(path: &str) -> bool {
    let is_of_tests = path.ends_with("tests.rs") || path.contains("/tests/");
    path.contains("crates/")
        && path.contains("/src/")
        && !is_of_tests
        && !FOR_TESTS.iter().any(|it| path.starts_with(it))
}

/// The lines, from 1, that call a function of `libc`.
fn calls(file: &File) -> impl Iterator<Item = usize> {
    let is_call = |line: &str| {
        line.match_indices("libc::").any(|(at, name)| {
            let rest = line[at + name.len()..].trim_start_matches(|c: char| {
                c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'
            });
            rest.starts_with('(')
        })
    };
    file.text
        .lines()
        .enumerate()
        .filter(move |(_, line)| !line.trim_start().starts_with("//") && is_call(line))
        .map(|(at, _)| at + 1)
}

#[cfg(test)]
mod tests;
