//! A node's work for its disk, and the disk as a trait.
//!
//! A node hands its work out in order and goes on at once. Messages that depend on a write wait in
//! the node until the disk reports it as saved. So this trait promises one thing: a write that is
//! reported as saved, and all work before it, survives a crash of the process or the machine.
//!
//! If a sync fails, the disk has lost data without saying which. So no sync is repeated, and
//! nothing goes on after a failed one: the call panics, and the process must end. A full disk is a
//! different case: the write has not been made, so it is kept and tried again. Called by `node` and
//! `replica`.

use std::fmt::Debug;
use std::io;
use std::task::Waker;

use dunlin_core::Nanos;
use raft::eraftpb::{Entry, HardState};

use crate::wire::Roster;

/// Work of a node for its disk.
#[derive(Clone, PartialEq, Debug)]
pub enum Work {
    /// Entries and promises for which messages wait.
    Write(LogWrite),
    /// Items that allow the log to drop entries. Nothing waits for them.
    Checkpoint(Items),
}

/// Entries and promises that are saved together.
#[derive(Clone, PartialEq, Debug)]
pub struct LogWrite {
    /// Its number. Later writes have greater ones.
    pub number: u64,
    /// Term, vote and committed index.
    pub promises: HardState,
    /// Entries, which replace existing entries from the first new index on.
    pub entries: Vec<Entry>,
    /// Items of a leader's snapshot, with which the log starts over before these entries.
    pub items: Option<Items>,
}

/// The items after an entry, and the place after which the log begins.
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
    /// The last entry that the items contain, and their bytes; `None`: it has no items.
    pub items: Option<(u64, Vec<u8>)>,
}

/// Progress of a disk.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Saved {
    /// The number of the last write that is saved together with all before it.
    pub number: u64,
    /// Checkpoints that were saved, replaced by later ones, or abandoned.
    pub checkpoints: u64,
    /// Whether the disk is full. The work is kept and tried again.
    pub is_full: bool,
}

/// Counters of a disk since it was opened.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct DiskFigures {
    /// Syncs with entries or promises. Those with parts of checkpoints alone do not count.
    pub syncs: u64,
    /// The total time of these syncs, including the writes before them.
    pub time: Nanos,
    /// The longest of these times.
    pub longest: Nanos,
}

/// A disk.
pub trait Disk: Debug {
    /// Saves the members with which the replica begins, before it returns. It is called before any
    /// work was submitted.
    ///
    /// # Errors
    /// The members are not saved, and nothing was synced.
    ///
    /// # Panics
    /// If the disk cannot sync them. The process must then end.
    fn take_seat(&mut self, roster: &Roster) -> io::Result<()>;

    /// Takes work, and returns at once.
    fn submit(&mut self, work: Work, now: Nanos);

    /// The progress.
    ///
    /// # Panics
    /// If the disk or its engine has failed. The process must then end, because it is not known
    /// which data the disk has kept.
    fn saved(&mut self, now: Nanos) -> Saved;

    /// Whether [`Self::saved`] has news since its last call.
    fn has_news(&self, now: Nanos) -> bool;

    /// The time at which there will be news, if the disk knows it. Otherwise the disk wakes the
    /// replica.
    fn next_news(&self) -> Nanos {
        Nanos::MAX
    }

    /// Its counters, if it has any.
    fn figures(&self) -> DiskFigures {
        DiskFigures::default()
    }

    /// Takes the waker of the thread that runs the replica.
    fn wake_with(&mut self, waker: Waker);
}
