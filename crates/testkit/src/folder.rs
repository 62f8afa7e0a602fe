//! A folder for the files of a test, which is removed after it.

use std::path::{Path, PathBuf};

/// A folder that is removed, with its files, when this is dropped.
#[derive(Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// Makes a folder. No other test of the process may use this name.
    ///
    /// # Panics
    /// If the system refuses.
    #[must_use]
    pub fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("dunlin-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("the system has a folder for temporary files");
        Self(folder)
    }

    /// The path of a file in this folder.
    #[must_use]
    pub fn join(&self, file: impl AsRef<Path>) -> PathBuf {
        self.0.join(file)
    }

    /// The same as text, for the arguments of a command.
    ///
    /// # Panics
    /// If the path is not UTF-8.
    #[must_use]
    pub fn path(&self, file: &str) -> String {
        let path = self.0.join(file).into_os_string().into_string();
        path.expect("the folder for temporary files has a plain name")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
