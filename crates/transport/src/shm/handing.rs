//! Channels within one process: what their two ends give each other, in a table of the process.
//!
//! A channel is trusted if nothing outside of the process can write to it, and nothing else shows
//! that: any process can claim to be this one, have a third one relay what it says, or be forked
//! from it, and a memory file can be opened through `/proc`. So the memory of such a channel has no
//! descriptor and is private, and what goes over the control plane is the channel's name alone. An
//! offer or an answer that names something which is not in the table is refused.
//!
//! Invariants: an entry is taken once; the entry that was not taken goes with the channel that put
//! it in. Called by `setup`.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::memory::SharedMemory;

/// The terms of one end, and what the other needs to use the channel.
#[derive(Debug)]
pub(super) struct Given {
    /// Its sizes and its bit, which the control plane does not carry.
    pub(super) terms: Vec<u8>,
    /// Its doorbell, which it shares with all of its peers.
    pub(super) bell: OwnedFd,
    /// Of the end that made the channel: the memory, and the other end of the wake-up line.
    pub(super) made: Option<(Arc<SharedMemory>, OwnedFd)>,
}

/// Keeps what an end gave until the other end takes it, or the giver is gone.
#[derive(Debug)]
pub(super) struct Held(Name);

/// The name of a channel, and the end that gives.
pub(super) type Name = ([u8; 16], u8);

static TABLE: Mutex<BTreeMap<Name, Given>> = Mutex::new(BTreeMap::new());

/// Lays down what an end gives.
pub(super) fn give(name: Name, given: Given) -> Held {
    table().insert(name, given);
    Held(name)
}

/// Takes what an end gave, if it is in this process.
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
