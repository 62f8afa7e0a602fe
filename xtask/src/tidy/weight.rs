//! The packages that users compile: for a program that depends on `dunlin`, and for README's first
//! command. Compile time differs from machine to machine and from run to run; the number of
//! packages does not, and a growing number is the first sign that compiling takes longer.
//! `docs/decisions/weight.md` has the times.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};

use super::Finding;

/// Something that users compile.
struct Weight {
    /// The package, without its default features.
    package: &'static str,
    /// The most packages, including itself.
    most: usize,
}

const WEIGHTS: [Weight; 2] = [
    Weight {
        package: "dunlin",
        most: 15,
    },
    // README's first command.
    Weight {
        package: "dunlin-cli",
        most: 52,
    },
];

/// Engines of services. Each belongs to a feature that neither program enables.
const ENGINES: [&str; 5] = ["protobuf", "raft", "raft-engine", "scc", "slog"];

pub(super) fn check(root: &Path) -> anyhow::Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for weight in &WEIGHTS {
        findings.extend(judge(weight, &tree(root, weight.package)?));
    }
    Ok(findings)
}

/// The packages, one per line, as `cargo tree` prints them.
fn tree(root: &Path, package: &str) -> anyhow::Result<String> {
    let out = Command::new(env!("CARGO"))
        .args(["tree", "--locked", "--no-default-features"])
        .args(["--edges", "normal,build", "--prefix", "none"])
        .args(["--package", package])
        .current_dir(root)
        .output()
        .context("cannot start cargo tree")?;
    let error = String::from_utf8_lossy(&out.stderr);
    ensure!(out.status.success(), "cargo tree: {error}");
    String::from_utf8(out.stdout).context("cargo tree printed no text")
}

fn judge(weight: &Weight, tree: &str) -> Vec<Finding> {
    let found = |what| Finding::new("Cargo.toml", 0, what);
    // A line is `name version (notes)`, and a package may occur in several lines.
    let name_and_version = |line: &'_ str| {
        let mut words = line.split(' ').map(str::to_owned);
        Some((words.next()?, words.next()?))
    };
    let packages: BTreeSet<_> = tree.lines().filter_map(name_and_version).collect();
    let names: BTreeSet<&String> = packages.iter().map(|(name, _)| name).collect();
    let mut findings = Vec::new();
    for engine in ENGINES {
        if names.contains(&engine.to_owned()) {
            let package = weight.package;
            findings.push(found(format!(
                "`{package}` compiles `{engine}`: leave it to the features of services"
            )));
        }
    }
    for name in names {
        let versions = packages.iter().filter(|(other, _)| other == name).count();
        if versions > 1 {
            findings.push(found(format!(
                "`{}` compiles {versions} versions of `{name}`",
                weight.package
            )));
        }
    }
    let (count, most) = (packages.len(), weight.most);
    if count > most {
        findings.push(found(format!(
            "`{}` compiles {count} packages, but may compile {most}: move the new ones to a \
             feature (tidy/weight.rs)",
            weight.package
        )));
    }
    if count < most {
        findings.push(found(format!(
            "`{}` compiles {count} packages: lower its limit of {most} in tidy/weight.rs",
            weight.package
        )));
    }
    findings
}

#[cfg(test)]
mod tests;
