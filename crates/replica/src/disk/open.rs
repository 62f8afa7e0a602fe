//! The start of a replica from its directory.

use std::path::Path;

use super::folder::{DiskError, Folder, Kept};
use super::thread::Threaded;
use crate::node::{Image, Restored};
use crate::wire::Roster;
use crate::work::Disk;

/// A replica's directory, locked, and what it holds.
#[derive(Debug)]
pub struct Opened {
    /// The replica's number.
    pub id: u64,
    /// The members with which it began, and its log and items; `None`: it waits for a bootstrap.
    pub seat: Option<(Roster, Image)>,
    /// The items of a restored backup, for [`crate::Replica::begin_with`].
    pub restored: Option<Restored>,
    /// The disk, for [`crate::Replica::with_disk`].
    pub disk: Box<dyn Disk>,
}

/// Opens a directory, makes it if it does not exist, and starts the thread that writes into it. A
/// replica that starts there for the first time gets the number `fresh`.
///
/// # Errors
/// [`DiskError`]. A replica that was already there is unchanged. Otherwise, the directory of a new
/// one may have been begun.
///
/// # Panics
/// If the engine panics while it reads its files, or `fresh` is 0.
pub fn open(path: &Path, fresh: u64) -> Result<Opened, DiskError> {
    assert!(fresh != 0, "no replica has the number 0");
    let (folder, beginning) = Folder::open(path, Some(fresh))?;
    let (store, kept) = folder.open_log(beginning)?;
    let (seat, restored) = match kept {
        Kept::Nothing => (None, None),
        Kept::Items(restored) => (None, Some(restored)),
        Kept::Seat(roster, image) => (Some((roster, image)), None),
    };
    let id = folder.id();
    let disk = Threaded::start(folder, store);
    let disk = disk.map_err(|error| DiskError::Io(path.to_owned(), error))?;
    Ok(Opened {
        id,
        seat,
        restored,
        disk: Box::new(disk),
    })
}
