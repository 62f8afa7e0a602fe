//! A directory of the file system as a [`Disk`].
//!
//! The lock of a file belongs to the process that has opened it, and the kernel releases it when
//! the process ends, for any reason. A new file gets its name by a hard link, which fails if the
//! name exists: of two servers that start together, one wins. Until then it has the name of a
//! draft, which no other process uses: processes of two hosts, or of two containers, may have the
//! same number.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use dunlin_folder::sync_names;

use super::Disk;

/// A directory.
#[derive(Debug)]
pub struct Files {
    folder: PathBuf,
    /// The file of this process's epoch or, before there is one, the file that it has locked.
    own: Option<File>,
}

const PREFIX: &str = "epoch-";

/// The most drafts of one process number that a directory has. A process that is killed while it
/// makes its file leaves one.
const MOST_DRAFTS: u32 = 1000;

/// A draft exists for a moment. The process of one that is as old as this was killed.
const OLD: Duration = Duration::from_secs(3600);

impl Files {
    /// Opens the directory at a path, and makes it if it does not exist. Its name is synced each
    /// time, because a process that was killed may have made the directory without a sync.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn open(folder: &Path) -> io::Result<Self> {
        dunlin_folder::make(folder)?;
        Ok(Self {
            folder: folder.to_owned(),
            own: None,
        })
    }

    fn path(&self, epoch: u32) -> PathBuf {
        self.folder.join(format!("{PREFIX}{epoch:010}"))
    }

    /// Makes an empty file under a name that is new.
    fn draft(&self) -> io::Result<(PathBuf, File)> {
        for number in 0..MOST_DRAFTS {
            let name = format!("draft-{}-{number}", std::process::id());
            let path = self.folder.join(name);
            match File::create_new(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    if is_old(&path) {
                        // The name is free for the next draft.
                        let _ = fs::remove_file(&path);
                    }
                }
                made => return made.map(|file| (path, file)),
            }
        }
        let text = "the directory has too many files whose names begin with draft-";
        Err(io::Error::new(io::ErrorKind::AlreadyExists, text))
    }

    fn file(&self) -> io::Result<&File> {
        self.own.as_ref().ok_or(io::ErrorKind::NotFound.into())
    }
}

fn is_old(path: &Path) -> bool {
    let modified = fs::metadata(path).and_then(|data| data.modified());
    modified.is_ok_and(|at| at.elapsed().is_ok_and(|age| age >= OLD))
}

impl Disk for Files {
    fn epochs(&mut self) -> io::Result<Vec<u32>> {
        let mut epochs = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let name = entry?.file_name();
            let number = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
            epochs.extend(number.and_then(|number| number.parse::<u32>().ok()));
        }
        Ok(epochs)
    }

    fn read(&mut self, epoch: u32) -> io::Result<Vec<u8>> {
        fs::read(self.path(epoch))
    }

    fn lock(&mut self, epoch: u32) -> io::Result<bool> {
        let file = File::open(self.path(epoch))?;
        match file.try_lock() {
            Ok(()) => {
                self.own = Some(file);
                Ok(true)
            }
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    fn make(&mut self, epoch: u32, content: &[u8]) -> io::Result<bool> {
        let (draft, file) = self.draft()?;
        let filled = file.write_all_at(content, 0).and_then(|()| {
            file.sync_all()?;
            file.lock()
        });
        let linked = filled.and_then(|()| fs::hard_link(&draft, self.path(epoch)));
        fs::remove_file(&draft)?;
        match linked {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(false),
            Err(error) => return Err(error),
        }
        sync_names(&self.folder)?;
        self.own = Some(file);
        Ok(true)
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.file()?.write_all_at(bytes, offset)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file()?.sync_data()
    }

    fn remove(&mut self, epoch: u32) -> io::Result<()> {
        fs::remove_file(self.path(epoch))
    }
}

#[cfg(test)]
mod tests;
