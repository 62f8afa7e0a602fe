//! Finds the new lines: those whose text was in no file at an earlier revision. A line that was
//! only moved, even into another file, is old.
//!
//! The revision is [`BEGIN`], so that any clone with the whole history finds every line written
//! since then, whatever its branches are. A shallow clone lacks that commit. There, and in a
//! rewritten history, only uncommitted lines are new, and `tidy` prints that. `--since REV` names
//! another revision: the last commit that `REV` and `HEAD` have in common.

use std::collections::HashSet;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};

/// The rules for new lines hold for lines written after this commit.
const BEGIN: &str = "f605fa8fdcce3d27d0f3927b0865cb2590cf01ec";

/// The lines that are old.
#[derive(Debug)]
pub(super) struct Old(HashSet<String>);

impl Old {
    /// Reads the files of the earlier revision. Also returns a note for the user if `since` is
    /// `None` and the clone lacks [`BEGIN`].
    pub(super) fn read(root: &Path, since: Option<&str>) -> anyhow::Result<(Self, Option<String>)> {
        let (revision, note) = match since {
            Some(since) => (common(root, since)?, None),
            None if is_known(root, BEGIN)? => (BEGIN.to_owned(), None),
            None => {
                let note = format!(
                    "this clone lacks the commit {BEGIN:.12}, so words are checked only in lines \
                     that are not committed; `git fetch --unshallow` or --since REV lets tidy \
                     check more lines"
                );
                ("HEAD".to_owned(), Some(note))
            }
        };
        let args = [
            "grep", "-h", "-I", "-e", "", &revision, "--", "*.rs", "*.md",
        ];
        Ok((Self::of(&git(root, &args)?), note))
    }

    /// The lines of this text.
    pub(super) fn of(text: &str) -> Self {
        Self(text.lines().map(|line| line.trim().to_owned()).collect())
    }

    pub(super) fn has(&self, line: &str) -> bool {
        self.0.contains(line.trim())
    }
}

/// The last commit that the revision and `HEAD` have in common.
fn common(root: &Path, revision: &str) -> anyhow::Result<String> {
    let commit = git(root, &["merge-base", revision, "HEAD"])
        .with_context(|| format!("`{revision}` and HEAD have no commit in common here"))?;
    Ok(commit.trim().to_owned())
}

fn is_known(root: &Path, commit: &str) -> anyhow::Result<bool> {
    let commit = format!("{commit}^{{commit}}");
    let status = Command::new("git")
        .args(["rev-parse", "--quiet", "--verify", &commit])
        .current_dir(root)
        .stdout(std::process::Stdio::null())
        .status()
        .context("cannot start git")?;
    Ok(status.success())
}

/// Runs git; returns the text that it prints.
pub(super) fn git(root: &Path, args: &[&str]) -> anyhow::Result<String> {
    let out = Command::new("git")
        .args(args)
        .current_dir(root)
        .output()
        .context("cannot start git, which knows the history of the workspace")?;
    ensure!(
        out.status.success(),
        "git {}: {}",
        args.join(" "),
        String::from_utf8_lossy(&out.stderr).trim()
    );
    Ok(String::from_utf8_lossy(&out.stdout).into_owned())
}

#[cfg(test)]
mod tests;
