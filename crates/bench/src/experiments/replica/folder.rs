//! Directories for the files of a measurement, which are deleted after it.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A directory that is deleted when it is dropped.
#[derive(Debug)]
pub(super) struct Folder(PathBuf);

impl Folder {
    /// Makes a directory below another one. Its name begins with `dunlin` and this word.
    ///
    /// # Errors
    /// The system refuses.
    pub(super) fn new(below: &Path, word: &str) -> std::io::Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("dunlin-{word}-{}-{count}", std::process::id());
        let folder = Self(below.join(name));
        std::fs::create_dir(&folder.0)?;
        Ok(folder)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
