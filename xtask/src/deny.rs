//! `cargo xtask deny`: licences and sources of all libraries that the workspaces use, libraries
//! that must not be used, versions that were withdrawn ("yanked"), and, as a step of its own that
//! needs the network, published vulnerabilities. `deny.toml` has the lists. Called by `ci`.
//!
//! Cargo describes the libraries (`cargo metadata`), for both architectures and with all features.

mod advisories;
mod licence;
mod rules;
mod yanked;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, ensure};
use serde_json::Value;

use crate::workspaces::FOLDERS;
use rules::Rules;

/// The architectures on which Dunlin runs.
const ARCHITECTURES: [&str; 2] = ["x86_64", "aarch64"];

/// The exit code of a step that cannot run here.
const CANNOT_RUN: u8 = 77;

/// Checks licences, sources and users of all libraries, or their known vulnerabilities.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Fetches the RustSec database and looks for vulnerabilities instead. Exits with 77 if the
    /// database cannot be fetched.
    #[arg(long)]
    advisories: bool,
}

/// A package that is built: ours, or a library.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Package {
    name: String,
    version: String,
    /// `None` if the package is a folder of this repository.
    source: Option<String>,
    licence: Option<String>,
    /// Dependencies that name no version, and no folder either.
    wildcards: Vec<String>,
    /// Names of the packages that it uses.
    uses: BTreeSet<String>,
}

/// Prints what is wrong; success if nothing is.
pub(crate) fn run(root: &Path, args: &Args) -> anyhow::Result<ExitCode> {
    let packages = packages(root)?;
    let faults = if args.advisories {
        match advisories::fetch(root)? {
            Some(database) => advisories::faults(&database, &packages)?,
            None => {
                eprintln!("the database of advisories cannot be fetched");
                return Ok(CANNOT_RUN.into());
            }
        }
    } else {
        let text = std::fs::read_to_string(root.join("deny.toml"));
        let rules = Rules::parse(&text.context("cannot read deny.toml")?)?;
        let mut faults = faults(&packages, &rules)?;
        faults.extend(yanked::faults(&packages)?);
        faults
    };
    for fault in &faults {
        println!("{fault}");
    }
    println!("{} packages, {} faults", packages.len(), faults.len());
    Ok(match faults.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// The packages that the rules forbid, and why.
fn faults(packages: &[Package], rules: &Rules) -> anyhow::Result<Vec<String>> {
    let mut faults = Vec::new();
    for package in packages {
        let mut fault =
            |text: String| faults.push(format!("{} {}: {text}", package.name, package.version));
        match &package.licence {
            None => fault("it names no licence".to_owned()),
            Some(terms) => {
                let is_allowed = licence::is_allowed(terms, &rules.licences)
                    .with_context(|| format!("{}: licence `{terms}`", package.name))?;
                if !is_allowed {
                    fault(format!("the licence {terms} is not in deny.toml"));
                }
            }
        }
        if let Some(source) = &package.source
            && !rules.sources.contains(source)
        {
            fault(format!("the source {source} is not in deny.toml"));
        }
        for used in &package.uses {
            if let Some(users) = rules.users.get(used)
                && !users.contains(&package.name)
            {
                fault(format!(
                    "it uses {used}, which deny.toml allows to {users:?}"
                ));
            }
        }
        for wildcard in &package.wildcards {
            fault(format!("it takes any version of {wildcard}"));
        }
    }
    Ok(faults)
}

/// All packages of all workspaces.
fn packages(root: &Path) -> anyhow::Result<Vec<Package>> {
    let mut packages = BTreeSet::new();
    for folder in FOLDERS {
        for architecture in ARCHITECTURES {
            let out = Command::new(env!("CARGO"))
                .args([
                    "metadata",
                    "--locked",
                    "--all-features",
                    "--format-version=1",
                ])
                .arg(format!(
                    "--filter-platform={architecture}-unknown-linux-gnu"
                ))
                .current_dir(root.join(folder))
                .output()
                .context("cannot start cargo metadata")?;
            let error = String::from_utf8_lossy(&out.stderr);
            ensure!(out.status.success(), "cargo metadata: {error}");
            packages.extend(read(&serde_json::from_slice(&out.stdout)?)?);
        }
    }
    Ok(packages.into_iter().collect())
}

/// Reads the packages that are built from cargo's description.
fn read(metadata: &Value) -> anyhow::Result<Vec<Package>> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let list = |value: &'_ Value| value.as_array().cloned().unwrap_or_default();
    let all = list(&metadata["packages"]);
    let names: BTreeMap<&str, &str> = all
        .iter()
        .filter_map(|package| Some((package["id"].as_str()?, package["name"].as_str()?)))
        .collect();
    let mut uses = BTreeMap::new();
    for node in list(&metadata["resolve"]["nodes"]) {
        let used = list(&node["dependencies"]);
        let used = used.iter().filter_map(|id| names.get(id.as_str()?));
        let used: BTreeSet<String> = used.map(|name| (*name).to_owned()).collect();
        uses.insert(text(&node["id"]).context("a node has no id")?, used);
    }
    let mut packages = Vec::new();
    for package in &all {
        let id = text(&package["id"]).context("a package has no id")?;
        // Packages for other systems are listed, but not built.
        let Some(uses) = uses.remove(&id) else {
            continue;
        };
        let dependencies = list(&package["dependencies"]);
        let wildcards = dependencies
            .iter()
            .filter(|it| it["req"] == "*" && it["path"].is_null());
        packages.push(Package {
            name: text(&package["name"]).context("a package has no name")?,
            version: text(&package["version"]).context("a package has no version")?,
            source: text(&package["source"]),
            licence: text(&package["license"]),
            wildcards: wildcards.filter_map(|it| text(&it["name"])).collect(),
            uses,
        });
    }
    ensure!(!packages.is_empty(), "cargo metadata lists no packages");
    Ok(packages)
}

#[cfg(test)]
mod tests;
