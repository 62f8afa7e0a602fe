//! The files that the checks read: the text of everything that git tracks or would track.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};

/// Every text file of the workspace.
#[derive(Default, Debug)]
pub(super) struct Tree {
    pub(super) files: Vec<File>,
    /// All paths, including the paths of binary files and folders, for links.
    pub(super) paths: std::collections::BTreeSet<String>,
}

/// One text file.
#[derive(Clone, Debug)]
pub(super) struct File {
    /// Path from the root of the workspace, with `/`.
    pub(super) path: String,
    pub(super) text: String,
}

impl Tree {
    /// Reads the tree under `root`. For files that are not UTF-8 it keeps only the path.
    pub(super) fn read(root: &Path) -> anyhow::Result<Self> {
        let out = Command::new("git")
            .args([
                "ls-files",
                "-z",
                "--cached",
                "--others",
                "--exclude-standard",
            ])
            .current_dir(root)
            .output()
            .context("cannot start git, which knows the files of the workspace")?;
        ensure!(
            out.status.success(),
            "git ls-files: {}",
            String::from_utf8_lossy(&out.stderr)
        );
        let mut tree = Self::default();
        for path in String::from_utf8_lossy(&out.stdout).split_terminator('\0') {
            // A file that git tracks may have been deleted since.
            if let Ok(bytes) = std::fs::read(root.join(path)) {
                tree.add(path, bytes);
            }
        }
        Ok(tree)
    }

    /// The file at `path`.
    pub(super) fn get(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }

    /// The Rust files.
    pub(super) fn rust(&self) -> impl Iterator<Item = &File> {
        self.files.iter().filter(|file| file.path.ends_with(".rs"))
    }

    fn add(&mut self, path: &str, bytes: Vec<u8>) {
        for ancestor in Path::new(path).ancestors() {
            self.paths.insert(ancestor.to_string_lossy().into_owned());
        }
        if let Ok(text) = String::from_utf8(bytes) {
            self.files.push(File {
                path: path.to_owned(),
                text,
            });
        }
    }

    /// A tree for tests.
    #[cfg(test)]
    pub(super) fn of(files: &[(&str, &str)]) -> Self {
        let mut tree = Self::default();
        for (path, text) in files {
            tree.add(path, text.as_bytes().to_vec());
        }
        tree
    }
}
