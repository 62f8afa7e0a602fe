//! Backups: the items of a stopped replica in one file, from which the replicas of a new cluster
//! begin. So a cluster that has lost its majority goes on with what a survivor has.
//!
//! A backup contains all entries of the log, also those that the replica did not know to be
//! committed: an answered write that this replica has is in it. The replicas of the new cluster
//! have other numbers, which follow from the backup and the addresses, so that each machine can
//! restore its own directory alone. No replica of the old cluster can take part in the new one.
//!
//! | bytes | |
//! |---|---|
//! | 8 | "dunlinBk" |
//! | 8 | the version of the format u8, seven zeros |
//! | 8 | the last entry that the items contain |
//! | 8 | a digest of the items |
//! | … | the items, as a snapshot has them |

use std::path::Path;

use dunlin_core::Rng;
use raft::eraftpb::HardState;

use super::folder::{DiskError, Folder};
use crate::machine::Machine;
use crate::node::items;
use crate::wire::cursor::{Cursor, put_words};
use crate::wire::{Malformed, Member, Members, Roster};
use crate::work::{Items, LogWrite};

const MAGIC: &[u8; 8] = b"dunlinBk";
const FORMAT: u8 = 1;
/// The term of a new cluster's first place.
const TERM: u64 = 1;

/// The items of a cluster after an entry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Backup {
    applied: u64,
    digest: u64,
    keys: usize,
    image: Vec<u8>,
}

impl Backup {
    /// Reads the items of a replica that does not run from its directory.
    ///
    /// # Errors
    /// [`DiskError`].
    ///
    /// # Panics
    /// If the engine does while it reads its files.
    pub fn of_directory(path: &Path) -> Result<Self, DiskError> {
        let (folder, roster) = Folder::open(path, None)?;
        let (_, seat) = folder.open_log(roster)?;
        let (_, image) = seat.ok_or_else(|| DiskError::Empty(path.to_owned()))?;
        let machine = image.finish().map_err(|Malformed| {
            let why = "an entry is of another version of dunlin".to_owned();
            DiskError::Broken(path.to_owned(), why)
        })?;
        Ok(Self::of(&machine))
    }

    fn of(machine: &Machine) -> Self {
        Self {
            applied: machine.applied(),
            digest: machine.digest(),
            keys: machine.keys(),
            image: machine.to_image(),
        }
    }

    /// The last entry that it contains.
    #[must_use]
    pub const fn applied(&self) -> u64 {
        self.applied
    }

    /// Keys that have an item in it.
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

    /// Reads a file.
    ///
    /// # Errors
    /// [`Malformed`]: it is not a backup, or of another version, or damaged, or cut off.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut cursor = Cursor(bytes);
        if cursor.bytes(MAGIC.len())? != MAGIC || cursor.u8()? != FORMAT {
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

    /// The replicas of a new cluster at some addresses.
    fn members(&self, addresses: &[String]) -> Result<Members, DiskError> {
        let mix = |mix: u64, byte: u8| Rng::new(mix ^ u64::from(byte)).next_u64();
        let member = |address: &String| Member {
            id: address.bytes().fold(self.digest, mix).max(1),
            address: address.clone(),
        };
        let members = Members::new(addresses.iter().map(member));
        members.map_err(|error| DiskError::Members(error.to_string()))
    }

    /// Makes the directory of one replica of a new cluster, which begins with these items when all
    /// of its replicas have been restored from the same backup with the same addresses.
    ///
    /// # Errors
    /// [`DiskError`]. A directory in which a restore was cut off is refused afterwards.
    ///
    /// # Panics
    /// If the engine does.
    pub fn restore(
        &self,
        path: &Path,
        own: &str,
        addresses: &[String],
    ) -> Result<Members, DiskError> {
        let members = self.members(addresses)?;
        let found = members.iter().find(|member| member.address == own);
        let id = found.map(|member| member.id).ok_or_else(|| {
            DiskError::Members(format!("{own} is not one of the addresses of the cluster"))
        })?;
        if path.join("replica").exists() {
            return Err(DiskError::Taken(path.to_owned()));
        }
        let (folder, _) = Folder::open(path, Some(id))?;
        let (mut store, _) = folder.open_log(None)?;
        let roster = Roster::first(&members);
        let saved = store.save(&[self.first_write(&roster)]);
        let io = |error| DiskError::Io(path.to_owned(), error);
        saved.map_err(|_| io(std::io::ErrorKind::StorageFull.into()))?;
        folder.take_seat(&roster).map_err(io)?;
        Ok(members)
    }

    fn first_write(&self, roster: &Roster) -> LogWrite {
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
                image: items::join(roster, &self.image),
            }),
        }
    }
}
