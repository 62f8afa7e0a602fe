//! The disk of a replica: what a node asks of it, and the engine that does it.
//!
//! A node hands its work out in order and goes on at once. Messages that speak of a write wait in
//! the node until the disk reports it as saved, so this trait promises one thing: a write that is
//! reported survives the end of the process and of the machine, with all work before it.
//!
//! A disk that cannot sync has lost data without saying which, so nothing here repeats a sync or
//! goes on after one has failed: the call panics, and the process must end (`thread.rs`). A disk
//! that is full is another case: the write has not been made, is kept, and is tried again.
//!
//! | file | what it owns |
//! |---|---|
//! | `folder.rs` | a directory: its lock, its format, the replica's number and members |
//! | `store.rs` | log and items on TiKV's `raft-engine` |
//! | `state.rs` | the record that says which of the engine's entries count |
//! | `record.rs` | entries as opaque bytes, for the engine |
//! | `files.rs` | the engine's files, which say it when the disk is full |
//! | `thread.rs` | the thread that writes |
//! | `backup.rs` | items in one file, and new clusters that begin with them |
//!
//! All but the first two types need the feature `disk`. Called by `node` and `replica`.

#[cfg(feature = "disk")]
mod backup;
#[cfg(feature = "disk")]
mod files;
#[cfg(feature = "disk")]
mod folder;
#[cfg(feature = "disk")]
mod record;
#[cfg(feature = "disk")]
mod state;
#[cfg(feature = "disk")]
mod store;
#[cfg(feature = "disk")]
mod thread;

use std::fmt::Debug;
use std::io;
use std::task::Waker;

use dunlin_core::Nanos;
use raft::eraftpb::{Entry, HardState};

use crate::wire::Roster;
#[cfg(feature = "disk")]
pub use backup::Backup;
#[cfg(feature = "disk")]
pub use folder::{DiskError, Opened, open};
#[cfg(feature = "disk")]
pub use store::{Full, Limits, Loss, Store};

/// Work of a node for its disk.
#[derive(Clone, PartialEq, Debug)]
pub enum Work {
    /// Entries and promises that messages wait for.
    Write(Write),
    /// Items that let the log drop entries. Nothing waits for them.
    Checkpoint(Items),
}

/// Entries and promises that are saved together.
#[derive(Clone, PartialEq, Debug)]
pub struct Write {
    /// Its number. Later writes have greater ones.
    pub number: u64,
    /// Term, vote and committed index.
    pub promises: HardState,
    /// Entries, which replace those from their first index on.
    pub entries: Vec<Entry>,
    /// Items of a leader, with which the log begins anew before these entries.
    pub items: Option<Items>,
}

/// The items after an entry, and the place after which the log goes on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Items {
    /// The last entry that the items contain.
    pub applied: u64,
    /// Index and term of the entry before the first that the log keeps; not after `applied`.
    pub base: (u64, u64),
    /// The bytes of the items.
    pub image: Vec<u8>,
}

/// Log, promises and items that a disk has kept.
#[derive(Clone, PartialEq, Debug)]
pub struct Remains {
    /// Term, vote and a committed index.
    pub promises: HardState,
    /// Index and term of the entry before the first.
    pub base: (u64, u64),
    /// The entries after it.
    pub entries: Vec<Entry>,
    /// The last entry that the items contain, and their bytes; `None`: the cluster's first items.
    pub items: Option<(u64, Vec<u8>)>,
}

/// Progress of a disk.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Saved {
    /// The number of the last write that is saved with all before it.
    pub number: u64,
    /// Checkpoints that have been saved, or were dropped for later items.
    pub checkpoints: u64,
    /// The disk is full. The work is kept and tried again.
    pub is_full: bool,
}

/// A disk.
pub trait Disk: Debug {
    /// Saves the members with which the replica begins before it returns. Nothing else was
    /// submitted.
    ///
    /// # Errors
    /// They are not saved.
    fn take_seat(&mut self, roster: &Roster) -> io::Result<()>;

    /// Takes work, and returns at once.
    fn submit(&mut self, work: Work, now: Nanos);

    /// The progress.
    ///
    /// # Panics
    /// If the disk has failed, or the engine on it. The process must end then, because it is not
    /// known what the disk has kept.
    fn saved(&mut self, now: Nanos) -> Saved;

    /// Whether [`Self::saved`] has news since its last call.
    fn has_news(&self, now: Nanos) -> bool;

    /// When there will be news, if the disk knows it. Otherwise it wakes the replica.
    fn next_news(&self) -> Nanos {
        Nanos::MAX
    }

    /// Takes the waker of the thread that runs the replica.
    fn wake_with(&mut self, waker: Waker);
}

#[cfg(all(test, feature = "disk"))]
mod tests;
