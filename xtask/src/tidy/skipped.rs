//! The parts of crates that cargo does not test. A manifest says `test = false` or `doctest =
//! false` where cargo would otherwise compile a program without tests, or read a crate whose
//! documentation has no code. A test that is written there later would never run, so this check
//! finds it.

use std::path::Path;

use anyhow::Context;
use serde_json::Value;

use super::Finding;
use super::tree::{File, Tree};

/// Kinds of targets that cargo tests, unless the manifest says otherwise, and whether it also tests
/// the code in their documentation.
const TESTED: [(&str, bool); 3] = [("lib", true), ("proc-macro", true), ("bin", false)];

/// Finds tests that never run; `metadata` is cargo's description of each workspace.
pub(super) fn check(root: &Path, tree: &Tree, metadata: &[Value]) -> anyhow::Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for workspace in metadata {
        let packages = workspace["packages"].as_array();
        for package in packages.context("cargo metadata lists no packages")? {
            for target in package["targets"].as_array().into_iter().flatten() {
                findings.extend(check_target(root, tree, target)?);
            }
        }
    }
    Ok(findings)
}

fn check_target(root: &Path, tree: &Tree, target: &Value) -> anyhow::Result<Vec<Finding>> {
    let Some((_, has_code)) = TESTED.iter().find(|(kind, _)| target["kind"][0] == *kind) else {
        return Ok(Vec::new());
    };
    let source = target["src_path"].as_str();
    let source = Path::new(source.context("a target has no source")?);
    let source = source.strip_prefix(root)?.to_string_lossy();
    let own = || tree.rust().filter(|file| is_part(&source, &file.path));
    let mut findings = Vec::new();
    if target["test"] == false {
        let what = "this test never runs: the manifest says `test = false`";
        findings.extend(own().filter_map(|file| found(file, find_test, what)));
    }
    if *has_code && target["doctest"] == false {
        let what = "this code is never tested: the manifest says `doctest = false`";
        findings.extend(own().filter_map(|file| found(file, find_code, what)));
    }
    Ok(findings)
}

/// Whether a file belongs to the target with this source.
fn is_part(source: &str, path: &str) -> bool {
    let whole = source.strip_suffix("lib.rs");
    let whole = whole.or_else(|| source.strip_suffix("main.rs"));
    match whole {
        Some(folder) => path
            .strip_prefix(folder)
            .is_some_and(|rest| !rest.starts_with("bin/")),
        None => {
            let folder = source.strip_suffix(".rs").unwrap_or(source);
            let rest = path.strip_prefix(folder);
            rest.is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
        }
    }
}

fn found(file: &File, find: fn(&str) -> Option<usize>, what: &str) -> Option<Finding> {
    Some(Finding::new(&file.path, find(&file.text)? + 1, what))
}

/// The line of the first unit test, from 0.
fn find_test(text: &str) -> Option<usize> {
    let mut lines = text.lines().map(str::trim);
    lines.position(|line| line == "#[test]" || line.starts_with("proptest!"))
}

/// The line of the first code in documentation, from 0. Fenced text is not code.
fn find_code(text: &str) -> Option<usize> {
    let mut is_inside = false;
    text.lines().map(str::trim).position(|line| {
        let comment = line
            .strip_prefix("///")
            .or_else(|| line.strip_prefix("//!"));
        let Some(kind) = comment.and_then(|it| it.trim_start().strip_prefix("```")) else {
            return line.contains("doc = include_str!");
        };
        is_inside = !is_inside;
        is_inside && kind != "text"
    })
}

#[cfg(test)]
mod tests;
