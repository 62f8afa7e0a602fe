//! The conventions of `STYLE.md` that a program can check. Each check is a pure function from the
//! source tree to findings, so that its tests can give it a bad example.

mod adapters;
mod book;
mod changes;
mod circles;
mod core;
mod design;
mod graph;
mod homes;
mod layout;
mod links;
mod listed;
mod manifests;
mod names;
mod one_thing;
mod parts;
mod paths;
mod phrases;
mod prose;
mod rules;
mod same_code;
mod skipped;
mod tokens;
mod tree;
mod weight;

use std::fmt;
use std::path::Path;

use changes::Old;
use tree::Tree;

use crate::workspaces;

const EXAMPLES: &str = "\
Examples:
  cargo xtask tidy                      all checks, as continuous integration does
  cargo xtask tidy --since main         refused words in all lines that main does not have
  cargo xtask tidy --same-code HEAD~3   nothing but comments changed in the last three commits
  cargo xtask tidy --circles > xtask/circles.txt

Exit codes: 0, nothing found; 1, something found, or a check could not run; 2, wrong arguments.";

/// Checks the conventions that a compiler does not know; lists every violation.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Refuses words in the lines written after the last commit that REV and HEAD have in common.
    /// Without this option, REV is the commit at which these rules begin, or HEAD in a clone that
    /// lacks that commit.
    #[arg(long, value_name = "REV")]
    since: Option<String>,
    /// Checks only that the Rust code, without comments, is the same as in REV.
    #[arg(long, value_name = "REV", conflicts_with_all = ["since", "circles"])]
    same_code: Option<String>,
    /// Prints the circles of files as `xtask/circles.txt` lists them, and checks nothing.
    #[arg(long, conflicts_with = "since")]
    circles: bool,
    /// Prints the findings as one JSON array.
    #[arg(long, conflicts_with = "circles")]
    json: bool,
}

/// One violation.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Finding {
    /// Path from the root of the workspace.
    path: String,
    /// Line, from 1; 0 for the whole file.
    line: usize,
    /// The violation.
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

    fn to_json(&self) -> serde_json::Value {
        serde_json::json!({ "path": self.path, "line": self.line, "what": self.what })
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
pub(crate) fn run(root: &Path, args: &Args) -> anyhow::Result<bool> {
    let tree = Tree::read(root)?;
    if args.circles {
        print!("{}", circles::list(&tree));
        return Ok(true);
    }
    let mut notes = Vec::new();
    let mut findings = match &args.same_code {
        Some(revision) => same_code::check(root, &tree, revision)?,
        None => {
            let (old, note) = Old::read(root, args.since.as_deref())?;
            notes.extend(note);
            notes.push(format!(
                "{} lines of xtask/circles.txt are left",
                circles::count(&tree)
            ));
            conventions(root, &tree, &old)?
        }
    };
    findings.sort();
    if args.json {
        let findings: Vec<_> = findings.iter().map(Finding::to_json).collect();
        println!("{:#}", serde_json::Value::Array(findings));
    } else {
        findings.iter().for_each(|finding| println!("{finding}"));
        notes.iter().for_each(|note| println!("tidy: {note}"));
        match findings.len() {
            0 => println!("tidy: {} files, nothing found", tree.files.len()),
            n => println!("tidy: {n} findings in {} files", tree.files.len()),
        }
    }
    Ok(findings.is_empty())
}

fn conventions(root: &Path, tree: &Tree, old: &Old) -> anyhow::Result<Vec<Finding>> {
    let folders = workspaces::FOLDERS.iter();
    let metadata = folders.map(|folder| workspaces::metadata(root, folder));
    let metadata = metadata.collect::<anyhow::Result<Vec<_>>>()?;
    let mut findings = Vec::new();
    findings.extend(layout::check(tree));
    findings.extend(tokens::check(tree));
    findings.extend(graph::check(&metadata)?);
    findings.extend(graph::check_listed(&metadata)?);
    findings.extend(graph::check_forbid_unsafe(tree));
    findings.extend(homes::check(tree));
    findings.extend(manifests::check(tree));
    findings.extend(skipped::check(root, tree, &metadata)?);
    findings.extend(rules::check(tree));
    findings.extend(design::check(tree));
    findings.extend(links::check(tree));
    findings.extend(listed::check(tree));
    findings.extend(book::check(tree));
    findings.extend(paths::check(tree));
    findings.extend(names::check(tree));
    findings.extend(one_thing::check(tree));
    findings.extend(phrases::check(tree, old));
    findings.extend(parts::check(tree));
    findings.extend(circles::check(tree));
    findings.extend(core::check(tree));
    findings.extend(adapters::check(tree));
    findings.extend(weight::check(root)?);
    Ok(findings)
}
