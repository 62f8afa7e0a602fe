//! Published vulnerabilities: the database of RustSec, a repository with a folder for each package
//! and a page for each vulnerability. A page begins with a block of TOML. Called by `deny`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};
use semver::{Version, VersionReq};

use super::Package;
use crate::workspaces;

const DATABASE: &str = "https://github.com/rustsec/advisory-db";

/// The block of a page.
#[derive(PartialEq, Eq, Default, Debug)]
struct Advisory {
    id: String,
    /// Versions without the fault, as cargo writes requirements.
    safe: Vec<String>,
    /// The page was taken back, or only notes something.
    is_harmless: bool,
}

/// Fetches the database; its folder, or `None` if it cannot be fetched.
pub(super) fn fetch(root: &Path) -> anyhow::Result<Option<PathBuf>> {
    let folder = workspaces::target_folder(root)?.join("advisories");
    if folder.exists() {
        fs::remove_dir_all(&folder).context("cannot remove an earlier database")?;
    }
    let status = Command::new("git")
        .args(["clone", "--quiet", "--depth=1", DATABASE])
        .arg(&folder)
        .status()
        .context("cannot start git")?;
    Ok(status.success().then_some(folder))
}

/// The packages with a published vulnerability, and those that are no longer maintained.
pub(super) fn faults(database: &Path, packages: &[Package]) -> anyhow::Result<Vec<String>> {
    let pages = database.join("crates");
    ensure!(pages.exists(), "the database has no folder `crates`");
    let mut faults = Vec::new();
    for package in packages.iter().filter(|it| it.source.is_some()) {
        let Package { name, version, .. } = package;
        for page in fs::read_dir(pages.join(name)).into_iter().flatten() {
            let path = page?.path();
            let page = fs::read_to_string(&path)?;
            let wrong = || format!("cannot understand {}", path.display());
            let advisory = Advisory::parse(&page).with_context(wrong)?;
            if advisory.concerns(version).with_context(wrong)? {
                faults.push(format!("{name} {version}: {DATABASE} has {}", advisory.id));
            }
        }
    }
    Ok(faults)
}

impl Advisory {
    fn parse(page: &str) -> anyhow::Result<Self> {
        let block = page.split_once("```toml").context("it has no block")?.1;
        let block = block.split_once("```").context("its block has no end")?.0;
        let mut advisory = Self::default();
        let mut lines = block.lines().map(str::trim);
        while let Some(line) = lines.next() {
            let Some((key, value)) = line.split_once('=') else {
                continue;
            };
            let mut value = value.trim().to_owned();
            while value.starts_with('[') && !value.ends_with(']') {
                value += lines.next().context("a list has no end")?;
            }
            let text = value.trim_matches('"');
            match key.trim() {
                "id" => text.clone_into(&mut advisory.id),
                "withdrawn" => advisory.is_harmless = true,
                "informational" => advisory.is_harmless |= text == "notice",
                "patched" | "unaffected" => {
                    let list: Vec<String> = serde_json::from_str(&value.replace(",]", "]"))?;
                    advisory.safe.extend(list);
                }
                _ => {}
            }
        }
        ensure!(!advisory.id.is_empty(), "it has no id");
        Ok(advisory)
    }

    /// Whether a version has the fault.
    fn concerns(&self, version: &str) -> anyhow::Result<bool> {
        let version = Version::parse(version)?;
        let mut is_safe = self.is_harmless;
        for requirement in &self.safe {
            is_safe |= VersionReq::parse(requirement)?.matches(&version);
        }
        Ok(!is_safe)
    }
}

#[cfg(test)]
mod tests;
