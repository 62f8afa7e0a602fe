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

use super::channel::{ChannelId, Role};
use super::memory::SharedMemory;
use super::offer::Message;

/// What one end gives the other.
#[derive(Debug)]
pub(super) struct Given {
    /// Its sizes and its bit, which the control plane does not carry.
    pub(super) terms: Message,
    /// Its doorbell, which it shares with all of its peers.
    pub(super) bell: OwnedFd,
    /// Of the end that made the channel: the memory, and the other end of the wake-up line.
    pub(super) made: Option<(Arc<SharedMemory>, OwnedFd)>,
}

/// Keeps what an end gave until the other end takes it, or the giver is gone.
#[derive(Debug)]
pub(super) struct Held(ChannelId, Role);

static TABLE: Mutex<BTreeMap<(ChannelId, Role), Given>> = Mutex::new(BTreeMap::new());

/// Lays down what the end `role` gives.
pub(super) fn give(id: ChannelId, role: Role, given: Given) -> Held {
    table().insert((id, role), given);
    Held(id, role)
}

/// Takes what the end `role` gave, if it is in this process.
pub(super) fn take(id: ChannelId, role: Role) -> Option<Given> {
    table().remove(&(id, role))
}

impl Drop for Held {
    fn drop(&mut self) {
        take(self.0, self.1);
    }
}

fn table() -> MutexGuard<'static, BTreeMap<(ChannelId, Role), Given>> {
    TABLE.lock().unwrap_or_else(PoisonError::into_inner)
}
