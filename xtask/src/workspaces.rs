//! The workspaces of this repository. Each is complete without the others; xtask serves all of
//! them.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};
use serde_json::Value;

/// The folder of each workspace, relative to the root of the repository; the root itself is first.
pub(crate) const FOLDERS: [&str; 2] = ["", "gopt"];

/// The folder of the workspace that a file belongs to.
pub(crate) fn of(path: &str) -> &'static str {
    let is_inside = |folder: &&&str| {
        let rest = path.strip_prefix(**folder);
        folder.is_empty() || rest.is_some_and(|rest| rest.starts_with('/'))
    };
    let deepest = FOLDERS.iter().filter(is_inside).max_by_key(|it| it.len());
    deepest.copied().unwrap_or_default()
}

/// Cargo's description of one workspace, without indirect dependencies.
pub(crate) fn metadata(root: &Path, folder: &str) -> anyhow::Result<Value> {
    let out = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .current_dir(root.join(folder))
        .output()
        .context("cannot start cargo metadata")?;
    ensure!(
        out.status.success(),
        "cargo metadata: {}",
        String::from_utf8_lossy(&out.stderr)
    );
    serde_json::from_slice(&out.stdout).context("cargo metadata printed no JSON")
}

/// The folder into which the root's workspace builds.
pub(crate) fn target_folder(root: &Path) -> anyhow::Result<PathBuf> {
    let metadata = metadata(root, "")?;
    let folder = metadata["target_directory"].as_str();
    Ok(folder
        .context("cargo metadata names no target directory")?
        .into())
}

#[cfg(test)]
mod tests;
