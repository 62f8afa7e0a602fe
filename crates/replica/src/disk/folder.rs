//! The directory of a replica: a lock, the replica's number with the members of its cluster, and
//! the log.
//!
//! | name | content |
//! |---|---|
//! | `lock` | locked by the process that uses the directory; the kernel unlocks it at its end |
//! | `replica` | number, whether it has restored items, roster of its first start in a cluster |
//! | `replica.new` | the next file `replica`, until it is synced and gets that name |
//! | `log` | the files of `raft-engine` |
//! | `log.mark` | the last write that was acknowledged |
//! | `log.room` | only while the store asks whether the disk has room; a crash may leave it |
//!
//! The file `replica` is "dunlinRp", the version of the format u8, its kind u8, which is 1 if
//! restored items wait for a cluster, six zeros, the number u64, and the bytes of the roster. It is
//! replaced as a whole. A directory that has other files but not this one does not belong to a
//! replica, and is left unchanged. Called by `open`, `thread` and `backup`.

use std::fmt;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dunlin_folder::{make, sync_names};

use super::files::Files;
use super::newer::NewerPart;
use super::store::{Limits, Loss, Store};
use crate::log::first_base;
use crate::node::{Image, Restored, items};
use crate::wire::{Roster, VERSION};
use crate::work::Remains;

const MAGIC: &[u8; 8] = b"dunlinRp";
/// The version of the format.
const FORMAT: u8 = 1;
/// The largest kind, which means that restored items wait for a cluster.
const NEWEST_KIND: u8 = 1;
/// Bytes before the members.
const HEAD: usize = 24;
/// The name of the next file `replica`, until it is synced.
const DRAFT: &str = "replica.new";

/// How a replica begins, according to its directory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Beginning {
    /// It waits for a cluster.
    Idle,
    /// It waits for a new cluster that begins with items in its log.
    Restored,
    /// It began with these members.
    Seat(Roster),
}

/// The content of a directory.
#[derive(Debug)]
pub(super) enum Kept {
    Nothing,
    /// Items that wait for a cluster.
    Items(Restored),
    /// The members with which a replica began, and its log and items.
    Seat(Roster, Image),
}

/// The reason why a directory cannot be used.
#[derive(Debug)]
pub enum DiskError {
    /// Another process uses it.
    InUse(PathBuf),
    /// It holds files, but not those of a replica.
    Foreign(PathBuf),
    /// It holds no replica.
    Empty(PathBuf),
    /// It holds a replica already.
    Taken(PathBuf),
    /// A newer version of this library has written a part of it.
    Newer(PathBuf, NewerPart),
    /// An older version has written its log: the format, and the one that is read.
    Older(PathBuf, u8, u8),
    /// Its content is damaged, or was not written by a replica.
    Broken(PathBuf, String),
    /// The file system refuses.
    Io(PathBuf, io::Error),
}

/// The content of a directory whose log holds `remains`.
fn kept(beginning: Beginning, remains: Option<Remains>) -> Result<Kept, &'static str> {
    let damaged = |_| "its items are damaged";
    match (beginning, remains) {
        (Beginning::Idle, None) => Ok(Kept::Nothing),
        (Beginning::Idle, Some(_)) => Err("a restore into it was interrupted"),
        (Beginning::Restored, None) => Err("its restored items are gone"),
        (Beginning::Restored, Some(it)) => Restored::new(it).map(Kept::Items).map_err(damaged),
        // The process ended before its node had started.
        (Beginning::Seat(roster), None) => Ok(Kept::Seat(roster.clone(), Image::of(roster))),
        (Beginning::Seat(roster), Some(remains)) => {
            let image = Image::resume(roster.clone(), remains).map_err(damaged)?;
            Ok(Kept::Seat(roster, image))
        }
    }
}

/// A part of the file `replica` of a newer version. The bytes have its head.
fn newer_file(bytes: &[u8]) -> Option<NewerPart> {
    let at = |place: usize| bytes.get(place).copied();
    let file = NewerPart::find("the file `replica`", at(MAGIC.len()), FORMAT);
    let kind = || {
        let kind = at(MAGIC.len() + 1);
        NewerPart::find("the kind of the file `replica`", kind, NEWEST_KIND)
    };
    let members = || NewerPart::find("the members in the file `replica`", at(HEAD), VERSION);
    file.or_else(kind).or_else(members)
}

/// Finds items of a newer version. The engine has verified their checksums.
fn newer_items(remains: Option<&Remains>) -> Option<NewerPart> {
    let (_, image) = remains?.items.as_ref()?;
    NewerPart::find("the items of the log", items::version(image), VERSION)
}

/// A locked directory.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    id: u64,
    /// The kernel releases the lock when the file is closed.
    _lock: File,
}

impl Folder {
    /// Locks a directory. If `fresh` is `None`, the directory must already hold a replica.
    pub(super) fn open(path: &Path, fresh: Option<u64>) -> Result<(Self, Beginning), DiskError> {
        let io = |error| DiskError::Io(path.to_owned(), error);
        let is_old = || path.join("replica").exists();
        if !is_old() && fresh.is_none() {
            return Err(DiskError::Empty(path.to_owned()));
        }
        make(path).map_err(io)?;
        if !is_old() && !is_unused(path).map_err(io)? {
            return Err(DiskError::Foreign(path.to_owned()));
        }
        let mut options = OpenOptions::new();
        let lock = options.create(true).truncate(false).write(true);
        let lock = lock.open(path.join("lock")).map_err(io)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(DiskError::InUse(path.to_owned())),
            Err(TryLockError::Error(error)) => return Err(io(error)),
        }
        let mut folder = Self {
            path: path.to_owned(),
            id: fresh.unwrap_or(0),
            _lock: lock,
        };
        // Check again, as another process may have made a replica here before we had the lock.
        let beginning = match is_old() {
            true => folder.read()?,
            false => {
                folder.write(&Beginning::Idle).map_err(io)?;
                Beginning::Idle
            }
        };
        Ok((folder, beginning))
    }

    /// Opens the log and reads its content.
    pub(super) fn open_log(&self, beginning: Beginning) -> Result<(Store<Files>, Kept), DiskError> {
        let log = self.path.join("log");
        let broken = |why: String| DiskError::Broken(self.path.clone(), why);
        if beginning != Beginning::Idle && !log.is_dir() {
            let why = "its log is gone, and with it promises that the cluster relies on";
            return Err(broken(why.to_owned()));
        }
        // The log of a replica without a seat is empty until a bootstrap or a restore.
        let first = match &beginning {
            Beginning::Seat(roster) => first_base(roster),
            Beginning::Idle | Beginning::Restored => (1, 1),
        };
        let opened = Store::open(&log, Arc::new(Files), Limits::DEFAULT, first);
        let (store, remains) = opened.map_err(|loss| match loss {
            Loss::Unreadable(error) => DiskError::Io(log.clone(), error),
            Loss::Incomplete(why) => broken(why),
            Loss::Newer(newer) => DiskError::Newer(self.path.clone(), newer),
            Loss::Older(format, known) => DiskError::Older(self.path.clone(), format, known),
        })?;
        // The engine syncs its files, but not the directory entry of the first one.
        let synced = sync_names(&log).and_then(|()| sync_names(&self.path));
        synced.map_err(|error| DiskError::Io(self.path.clone(), error))?;
        if let Some(newer) = newer_items(remains.as_ref()) {
            return Err(DiskError::Newer(self.path.clone(), newer));
        }
        let kept = kept(beginning, remains).map_err(|why| broken(why.to_owned()))?;
        Ok((store, kept))
    }

    pub(super) const fn id(&self) -> u64 {
        self.id
    }

    fn read(&mut self) -> Result<Beginning, DiskError> {
        let path = self.path.join("replica");
        let bytes = fs::read(&path).map_err(|error| DiskError::Io(path.clone(), error))?;
        let broken = |why: &str| DiskError::Broken(path.clone(), why.to_owned());
        if bytes.len() < HEAD || !bytes.starts_with(MAGIC) {
            return Err(broken("it is not a file of a replica"));
        }
        if let Some(newer) = newer_file(&bytes) {
            return Err(DiskError::Newer(self.path.clone(), newer));
        }
        if bytes[MAGIC.len()] != FORMAT {
            return Err(broken("its format is damaged"));
        }
        let (head, rest) = bytes.split_at(HEAD);
        let id = head.last_chunk().map_or(0, |id| u64::from_le_bytes(*id));
        let beginning = match (rest.is_empty(), bytes[MAGIC.len() + 1]) {
            (true, 0) => Beginning::Idle,
            (true, _) => Beginning::Restored,
            (false, _) => {
                let roster = Roster::decode(rest);
                Beginning::Seat(roster.map_err(|_| broken("its members are damaged"))?)
            }
        };
        let is_stranger = matches!(&beginning, Beginning::Seat(roster) if roster.get(id).is_none());
        if id == 0 || is_stranger {
            return Err(broken("its number is not one of its members'"));
        }
        self.id = id;
        Ok(beginning)
    }

    /// Saves the members. If the call returns an error, nothing was synced, so it can be repeated.
    ///
    /// # Panics
    /// If the disk cannot sync them, because it is then unknown which bytes it has kept.
    pub(super) fn take_seat(&self, roster: &Roster) -> io::Result<()> {
        let draft = self.draft(&Beginning::Seat(roster.clone()))?;
        let published = self.publish(&draft);
        published.unwrap_or_else(|error| {
            panic!(
                "the disk of this replica does not sync its members, and what it has kept is not \
                 known, so the process ends: {error}"
            )
        });
        Ok(())
    }

    /// Records that the log has restored items.
    pub(super) fn note_restore(&self) -> io::Result<()> {
        self.write(&Beginning::Restored)
    }

    fn write(&self, beginning: &Beginning) -> io::Result<()> {
        self.publish(&self.draft(beginning)?)
    }

    /// Writes the next file `replica`, without syncing it.
    fn draft(&self, beginning: &Beginning) -> io::Result<File> {
        let is_restored = u8::from(*beginning == Beginning::Restored);
        let members = match beginning {
            Beginning::Seat(roster) => roster.to_bytes(),
            Beginning::Idle | Beginning::Restored => Vec::new(),
        };
        let head = [
            &MAGIC[..],
            &[FORMAT, is_restored, 0, 0, 0, 0, 0, 0],
            &self.id.to_le_bytes(),
        ];
        let mut file = File::create(self.path.join(DRAFT))?;
        file.write_all(&head.concat())?;
        file.write_all(&members)?;
        Ok(file)
    }

    /// Syncs the next file `replica`, and puts it in place of the earlier one.
    fn publish(&self, draft: &File) -> io::Result<()> {
        draft.sync_all()?;
        fs::rename(self.path.join(DRAFT), self.path.join("replica"))?;
        sync_names(&self.path)
    }
}

/// Whether a directory has only files that an interrupted start leaves.
fn is_unused(path: &Path) -> io::Result<bool> {
    for entry in fs::read_dir(path)? {
        let name = entry?.file_name();
        if name != "lock" && name != DRAFT {
            return Ok(false);
        }
    }
    Ok(true)
}

impl fmt::Display for DiskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InUse(path) => write!(
                f,
                "{} is in use by a running process; two replicas need two directories",
                path.display()
            ),
            Self::Foreign(path) => write!(
                f,
                "{} holds files, but not those of a replica; name an empty directory, or one that \
                 does not exist",
                path.display()
            ),
            Self::Empty(path) => write!(f, "{} holds no replica", path.display()),
            Self::Taken(path) => write!(
                f,
                "{} holds a replica already; restore into an empty directory",
                path.display()
            ),
            Self::Newer(path, newer) => write!(
                f,
                "{} holds {newer}; use the newer program, which can go on with it",
                path.display()
            ),
            Self::Older(path, format, known) => write!(
                f,
                "{} holds a log of format {format}, and this program reads format {known}; back it \
                 up with the program that has written it (`dunlin replica backup`), and restore \
                 the backup with this one",
                path.display()
            ),
            Self::Broken(path, why) => write!(
                f,
                "{} cannot be used: {why}. A replica without its whole log must not start. Move \
                 the directory away; `dunlin replica leave` takes the replica out of its cluster, \
                 and `dunlin replica join` lets a process with an empty directory take its place",
                path.display()
            ),
            Self::Io(path, error) => write!(f, "{}: {error}", path.display()),
        }
    }
}

impl std::error::Error for DiskError {}
