//! The items and clients of a replica: what the log's entries have made of them so far.
//!
//! Invariant: the state follows from the entries alone. Nothing here reads a clock, draws a number
//! or depends on the replica, so all replicas that have applied the same entries have the same
//! items, and answer a repeated write alike. The version of an item is the index of the entry that
//! wrote it. Called by `node`.

mod clients;
mod image;

use std::collections::BTreeMap;

use crate::wire::{Answer, Malformed, Name, Operation, Request};
use clients::{Clients, MAX_CLIENTS};

#[derive(Clone, PartialEq, Eq, Debug)]
struct Item {
    version: u64,
    value: Vec<u8>,
}

/// The items and clients.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Machine {
    items: BTreeMap<Vec<u8>, Item>,
    clients: Clients,
    /// The index of the last entry that was applied.
    applied: u64,
    /// The name of the cluster.
    cluster: u64,
    /// Repeated writes are applied again.
    #[cfg(feature = "mutants")]
    repeats: bool,
    /// Images have no clients.
    #[cfg(feature = "mutants")]
    forgets_clients: bool,
}

impl Machine {
    /// The state of a cluster before the entry after `applied`, without items.
    pub(crate) fn new(applied: u64, cluster: u64) -> Self {
        Self {
            items: BTreeMap::new(),
            clients: Clients::new(MAX_CLIENTS),
            applied,
            cluster,
            #[cfg(feature = "mutants")]
            repeats: false,
            #[cfg(feature = "mutants")]
            forgets_clients: false,
        }
    }

    /// Keeps the records of this number of clients from now on.
    pub(crate) fn remember(&mut self, clients: usize) {
        self.clients = Clients::new(clients);
    }

    /// Plants the bug that a repeated write is applied again.
    #[cfg(feature = "mutants")]
    pub(crate) fn repeat(&mut self) {
        self.repeats = true;
    }

    /// Plants the bug that images have no clients.
    #[cfg(feature = "mutants")]
    pub(crate) fn forget_clients(&mut self) {
        self.forgets_clients = true;
    }

    /// The index of the last entry that was applied.
    pub(crate) const fn applied(&self) -> u64 {
        self.applied
    }

    /// Keys that have an item.
    pub(crate) fn keys(&self) -> usize {
        self.items.len()
    }

    /// The item of a key: its version and value.
    pub(crate) fn item(&self, key: &[u8]) -> Option<(u64, &[u8])> {
        let item = self.items.get(key)?;
        Some((item.version, &item.value))
    }

    /// The item of a key, as an answer.
    fn get(&self, key: &[u8]) -> Answer {
        match self.item(key) {
            Some((version, value)) => Answer::Found(version, value.to_vec()),
            None => Answer::Missing,
        }
    }

    /// Applies the next entry, and returns the answer to its client. An entry without bytes, with
    /// which a leader begins its term, changes nothing.
    ///
    /// # Errors
    /// The entry is of another version of the protocol. The state has not changed.
    pub(crate) fn apply(&mut self, index: u64, entry: &[u8]) -> Result<Answer, Malformed> {
        debug_assert_eq!(index, self.applied + 1, "entries are applied in order");
        let answer = match entry.is_empty() {
            true => Answer::Missing,
            false => self.run(index, entry, &Request::decode(entry)?),
        };
        self.applied = index;
        Ok(answer)
    }

    fn run(&mut self, index: u64, entry: &[u8], request: &Request<'_>) -> Answer {
        let Some(name) = request.name else {
            return match request.operation {
                Operation::Open => Answer::Opened(self.open(index)),
                // No replica proposes a get.
                _ => self.get(request.key),
            };
        };
        let earlier = self.clients.earlier(name, entry, index);
        #[cfg(feature = "mutants")]
        let earlier = earlier.filter(|_| !self.repeats);
        if let Some(answer) = earlier {
            return answer;
        }
        let answer = self.write(index, request);
        self.clients.note(name, entry, &answer);
        answer
    }

    /// Opens a client. Its name is that of no client of another cluster at the same addresses, so
    /// that one's writes are refused. It is not 0, which names no client.
    fn open(&mut self, index: u64) -> u64 {
        let client = index.wrapping_add(self.cluster).max(1);
        self.clients.open(client, index);
        client
    }

    fn write(&mut self, index: u64, request: &Request<'_>) -> Answer {
        let found = self.items.get(request.key).map_or(0, |item| item.version);
        match request.operation {
            Operation::Delete => {
                self.items.remove(request.key);
                Answer::Deleted(found)
            }
            Operation::CompareAndSet(version, _) if version != found => Answer::Differs(found),
            Operation::CompareAndSet(_, value) | Operation::Put(value) => {
                let value = value.to_vec();
                let item = Item {
                    version: index,
                    value,
                };
                self.items.insert(request.key.to_vec(), item);
                Answer::Written(index)
            }
            Operation::Get | Operation::Open => Answer::Missing,
        }
    }
}

/// The bytes of a write that say what it does. The number below which its client has all answers
/// may change when the write is repeated.
fn meaning(entry: &[u8]) -> u64 {
    const FIRST: std::ops::Range<usize> = 24..32;
    let (head, tail) = (&entry[..FIRST.start], &entry[FIRST.end..]);
    // It tells a client's mistake from a repeat, and guards against nothing else.
    fnv(head.iter().chain(tail))
}

/// FNV-1a.
fn fnv<'a>(bytes: impl Iterator<Item = &'a u8>) -> u64 {
    let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    bytes.fold(0xcbf2_9ce4_8422_2325, mix)
}

#[cfg(test)]
mod tests;
