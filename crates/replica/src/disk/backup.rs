//! Backups: the items of a stopped replica in one file, from which the replicas of a new cluster
//! begin. So a cluster that has lost its majority can continue with the data of a survivor.
//!
//! A backup contains all entries of the log, even those that the replica did not know to be
//! committed, so it has every answered write of this replica's log. Each restored replica has a
//! fresh number, which nothing can restore, and waits for a bootstrap. The bootstrap names all
//! members and takes only replicas with the same items, so no replica of the old cluster, and none
//! that was restored later, can join the new one.
//!
//! | bytes | |
//! |---|---|
//! | 8 | "dunlinBk" |
//! | 8 | the version of the format u8, seven zeros |
//! | 8 | the last entry that the items contain |
//! | 8 | a digest of the items |
//! | … | the items, as a snapshot has them |

use std::fmt;
use std::path::Path;

use raft::eraftpb::HardState;

use super::folder::{DiskError, Folder, Kept};
use super::newer::NewerPart;
use crate::machine::Machine;
use crate::node::items;
use crate::wire::cursor::{Cursor, put_words};
use crate::wire::{Malformed, Roster, VERSION};
use crate::work::{Items, LogWrite};

const MAGIC: &[u8; 8] = b"dunlinBk";
const FORMAT: u8 = 1;
/// The term of the place at which a new cluster begins.
const TERM: u64 = 1;

/// The place of the items in a backup.
const ITEMS: usize = 32;

/// The reason why a file cannot be read as a backup.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BackupError {
    /// It does not begin as a backup does.
    Foreign,
    /// A newer version of this library has written it, or its version is damaged: the digest cannot
    /// tell, because it is one of items that this version understands.
    Newer(NewerPart),
    /// It is damaged, or cut off.
    Damaged,
}

/// The items of a cluster after an entry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Backup {
    applied: u64,
    digest: u64,
    keys: usize,
    image: Vec<u8>,
}

impl Backup {
    /// Reads a stopped replica's items from its directory.
    ///
    /// # Errors
    /// [`DiskError`].
    ///
    /// # Panics
    /// If the engine panics while it reads its files.
    pub fn of_directory(path: &Path) -> Result<Self, DiskError> {
        let (folder, beginning) = Folder::open(path, None)?;
        let (_, kept) = folder.open_log(beginning)?;
        let finished = match kept {
            Kept::Nothing => return Err(DiskError::Empty(path.to_owned())),
            Kept::Items(restored) => Ok(restored.into_machine()),
            Kept::Seat(_, image) => image.finish(),
        };
        let machine = finished.map_err(|Malformed| {
            let why = "an entry is of another version of dunlin".to_owned();
            DiskError::Broken(path.to_owned(), why)
        })?;
        Ok(Self::of(&machine))
    }

    pub(super) fn of(machine: &Machine) -> Self {
        Self {
            applied: machine.applied(),
            digest: machine.digest(),
            keys: machine.keys(),
            image: machine.to_image(),
        }
    }

    /// The last entry that the backup contains.
    #[must_use]
    pub const fn applied(&self) -> u64 {
        self.applied
    }

    /// The number of keys that have an item in the backup.
    #[must_use]
    pub const fn keys(&self) -> usize {
        self.keys
    }

    /// The bytes of the file.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = [&MAGIC[..], &[FORMAT, 0, 0, 0, 0, 0, 0, 0]].concat();
        put_words(&mut bytes, &[self.applied, self.digest]);
        bytes.extend_from_slice(&self.image);
        bytes
    }

    /// Decodes the bytes of a backup file.
    ///
    /// # Errors
    /// [`BackupError`].
    pub fn decode(bytes: &[u8]) -> Result<Self, BackupError> {
        if !bytes.starts_with(MAGIC) {
            return Err(BackupError::Foreign);
        }
        let at = |place: usize| bytes.get(place).copied();
        let format = NewerPart::find("the backup", at(MAGIC.len()), FORMAT);
        let items = || NewerPart::find("the items of the backup", at(ITEMS), VERSION);
        match format.or_else(items) {
            Some(newer) => Err(BackupError::Newer(newer)),
            None => Self::read(bytes).map_err(|Malformed| BackupError::Damaged),
        }
    }

    fn read(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut cursor = Cursor(bytes);
        cursor.bytes(MAGIC.len())?;
        if cursor.u8()? != FORMAT {
            return Err(Malformed);
        }
        cursor.zeros::<7>()?;
        let (applied, digest) = (cursor.u64()?, cursor.u64()?);
        let mut machine = Machine::new(0, 0);
        machine.restore(cursor.0)?;
        let backup = Self::of(&machine);
        match (backup.applied, backup.digest) == (applied, digest) {
            true => Ok(backup),
            false => Err(Malformed),
        }
    }

    /// Makes the directory of a replica that waits for a new cluster, which begins with these items
    /// when a bootstrap has named its members. The replica gets the number `fresh`. A second
    /// restore, after the replica has lost its directory, therefore makes another replica, which is
    /// not bound by promises that the first may have made.
    ///
    /// # Errors
    /// [`DiskError`]. A directory in which a restore was cut off is refused afterwards.
    ///
    /// # Panics
    /// If the engine panics, or `fresh` is 0.
    pub fn restore(&self, path: &Path, fresh: u64) -> Result<(), DiskError> {
        assert!(fresh != 0, "no replica has the number 0");
        if path.join("replica").exists() {
            return Err(DiskError::Taken(path.to_owned()));
        }
        let (folder, beginning) = Folder::open(path, Some(fresh))?;
        let (mut store, _) = folder.open_log(beginning)?;
        let saved = store.save(&[self.first_write(fresh)]);
        let io = |error| DiskError::Io(path.to_owned(), error);
        saved.map_err(|_| io(std::io::ErrorKind::StorageFull.into()))?;
        store.acknowledge();
        folder.note_restore().map_err(io)
    }

    fn first_write(&self, id: u64) -> LogWrite {
        LogWrite {
            number: 1,
            promises: HardState {
                term: TERM,
                commit: self.applied,
                ..HardState::default()
            },
            entries: Vec::new(),
            items: Some(Items {
                applied: self.applied,
                base: (self.applied, TERM),
                image: items::join(&Roster::unknown(id), &self.image),
            }),
        }
    }
}

impl fmt::Display for BackupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Foreign => f.write_str("this is not a file of `dunlin replica backup`"),
            Self::Newer(newer) => write!(
                f,
                "{newer}; use the newer program, or, if none has written it, take another backup, \
                 because this one is damaged"
            ),
            Self::Damaged => f.write_str("the backup is damaged, or cut off; take another one"),
        }
    }
}

impl std::error::Error for BackupError {}
