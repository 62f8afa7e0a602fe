//! The conventions of `STYLE.md` that a program can check. Each check is a pure function from the
//! source tree to findings, so that its tests can show it a bad example.

mod book;
mod graph;
mod layout;
mod links;
mod manifests;
mod paths;
mod rules;
mod tokens;
mod tree;

use std::fmt;
use std::path::Path;

use tree::Tree;

use crate::workspaces;

/// One violation.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Finding {
    /// Path from the root of the workspace.
    path: String,
    /// Line from 1; 0 if the whole file is meant.
    line: usize,
    /// What is wrong.
    what: String,
}

impl Finding {
    fn new(path: &str, line: usize, what: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            line,
            what: what.into(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path, self.what),
            line => write!(f, "{}:{line}: {}", self.path, self.what),
        }
    }
}

/// Prints every finding; true if there is none.
pub(crate) fn run(root: &Path) -> anyhow::Result<bool> {
    let tree = Tree::read(root)?;
    let folders = workspaces::FOLDERS.iter();
    let metadata = folders.map(|folder| workspaces::metadata(root, folder));
    let metadata = metadata.collect::<anyhow::Result<Vec<_>>>()?;
    let mut findings = Vec::new();
    findings.extend(layout::check(&tree));
    findings.extend(tokens::check(&tree));
    findings.extend(graph::check(&metadata)?);
    findings.extend(graph::check_forbid_unsafe(&tree));
    findings.extend(manifests::check(&tree));
    findings.extend(rules::check(&tree));
    findings.extend(links::check(&tree));
    findings.extend(book::check(&tree));
    findings.extend(paths::check(&tree));
    findings.sort();
    for finding in &findings {
        println!("{finding}");
    }
    match findings.len() {
        0 => println!("tidy: {} files, nothing found", tree.files.len()),
        n => println!("tidy: {n} findings in {} files", tree.files.len()),
    }
    Ok(findings.is_empty())
}
