//! Channels within one process. Their two ends exchange their terms through a table of the process.
//!
//! A channel is trusted only if no other process can write to it. A peer's statement that it is in
//! this process proves nothing: any process can state that, relay another's messages, or be a fork
//! of this one. Any process of the same user can also open a memory file through `/proc`. So the
//! memory of a trusted channel is private and has no descriptor, and only the channel's name goes
//! over the control plane. An offer or an answer with a name that is not in the table is refused.
//!
//! Invariants: an entry is taken once; an entry that is never taken is removed with the channel
//! that made it. Called by `setup`.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::memory::SharedMemory;

/// The terms of one end, and everything that the other end needs to use the channel.
#[derive(Debug)]
pub(super) struct Given {
    /// The end's sizes, and the bit that the other end sets in its doorbell. The control plane does
    /// not carry them.
    pub(super) terms: Vec<u8>,
    /// The end's doorbell, which all of its peers share.
    pub(super) bell: OwnedFd,
    /// If this end made the channel: the memory, and the other end of the wake-up line.
    pub(super) made: Option<(Arc<SharedMemory>, OwnedFd)>,
}

/// Keeps the terms of an end until the other end takes them, or this end is gone.
#[derive(Debug)]
pub(super) struct Held(Name);

/// The name of a channel, and the role of the end that gives its terms.
pub(super) type Name = ([u8; 16], u8);

static TABLE: Mutex<BTreeMap<Name, Given>> = Mutex::new(BTreeMap::new());

/// Puts the terms of an end into the table.
pub(super) fn give(name: Name, given: Given) -> Held {
    table().insert(name, given);
    Held(name)
}

/// Takes the terms of an end, if it is in this process.
pub(super) fn take(name: Name) -> Option<Given> {
    table().remove(&name)
}

impl Drop for Held {
    fn drop(&mut self) {
        take(self.0);
    }
}

fn table() -> MutexGuard<'static, BTreeMap<Name, Given>> {
    TABLE.lock().unwrap_or_else(PoisonError::into_inner)
}
