//! Directories whose names survive a power failure: a name is on the disk only once the directory
//! that contains it is synced.
//!
//! Invariant: of a path that [`make`] has begun to make, at most the name of the deepest existing
//! directory is not synced, wherever the process was killed. So the next call syncs that name, too.
//! Called by the disks of `replica` and `sequencer`.

#![forbid(unsafe_code)]

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::Path;

/// Makes a directory and its missing parents, and syncs their names. If the directory exists
/// already, syncs its name, unless its parent may not be read or cannot be synced.
///
/// # Errors
/// A directory cannot be made, or a name cannot be synced.
///
/// ```
/// # let above = std::env::temp_dir().join(format!("dunlin-folder-{}", std::process::id()));
/// dunlin_folder::make(&above.join("numbers"))?;
/// assert!(above.join("numbers").is_dir());
/// # std::fs::remove_dir_all(above)?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn make(path: &Path) -> io::Result<()> {
    make_with(path, &mut sync_names)
}

/// Syncs the names in a directory. The empty path is the working directory.
///
/// # Errors
/// The directory cannot be opened or synced.
pub fn sync_names(path: &Path) -> io::Result<()> {
    File::open(Path::new(".").join(path))?.sync_all()
}

/// Refusals of a sync that do not matter for a directory that exists already.
const UNSYNCED: [ErrorKind; 3] = [
    ErrorKind::PermissionDenied,
    ErrorKind::InvalidInput,
    ErrorKind::ReadOnlyFilesystem,
];

fn make_with(path: &Path, sync: &mut impl FnMut(&Path) -> io::Result<()>) -> io::Result<()> {
    let Some(parent) = path.parent() else {
        // The root and the working directory have no name to sync.
        return Ok(());
    };
    if path.is_dir() {
        return match sync(parent) {
            // This function has not made the directory: it would have removed it.
            Err(error) if UNSYNCED.contains(&error.kind()) => Ok(()),
            synced => synced,
        };
    }
    make_with(parent, sync)?;
    match fs::create_dir(path) {
        // Another process was faster.
        Err(error) if error.kind() == ErrorKind::AlreadyExists && path.is_dir() => {}
        made => made?,
    }
    sync(parent).inspect_err(|error| {
        // The next start would find the directory, and not mind this error.
        if UNSYNCED.contains(&error.kind()) {
            drop(fs::remove_dir(path));
        }
    })
}

#[cfg(test)]
mod tests;
