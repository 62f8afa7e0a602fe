//! The items and clients of a replica: the state that the log's entries have made so far.
//!
//! Invariant: the state follows from the entries alone. Nothing here reads a clock, draws a number
//! or depends on the replica, so all replicas that have applied the same entries have the same
//! items, and answer a repeated write alike. The version of an item is the index of the entry that
//! wrote it. The only time is the log's: an entry advances it, never backwards, and also removes
//! items whose lifetime is over. Called by `node`.

mod arrival;
mod clients;
mod frozen;
mod history;
mod image;
mod items;
mod meaning;
mod order;
mod places;
mod ruin;
mod writer;

use crate::wire::{Answer, Events, Malformed, Operation, Page, Request, key_of_put};
pub(crate) use arrival::Arrival;
use clients::{Clients, MAX_CLIENTS};
pub(crate) use frozen::Budget;
use history::{Change, History};
use image::Draft;
pub(crate) use items::AHEAD;
use items::Items;
pub(crate) use ruin::Ruin;
use writer::Writer;

/// The items and clients.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    items: Items,
    clients: Clients,
    /// The log's time in milliseconds.
    time: u64,
    history: History,
    /// The image that is being made.
    draft: Option<Draft>,
    /// The index of the last entry that was applied.
    applied: u64,
    /// The name of the cluster.
    cluster: u64,
    /// A planted bug: repeated writes are applied again.
    #[cfg(feature = "mutants")]
    repeats: bool,
    /// A planted bug: images have no clients.
    #[cfg(feature = "mutants")]
    forgets_clients: bool,
    /// A planted bug: transactions write although a key has another version.
    #[cfg(feature = "mutants")]
    is_careless: bool,
}

impl PartialEq for Machine {
    /// States are equal even if their replicas have remembered different events or are making
    /// images.
    fn eq(&self, other: &Self) -> bool {
        (self.applied, self.time, self.cluster) == (other.applied, other.time, other.cluster)
            && self.items == other.items
            && self.clients == other.clients
    }
}

impl Eq for Machine {}

impl Machine {
    /// The state of a cluster after entry `applied`, without items.
    pub(crate) fn new(applied: u64, cluster: u64) -> Self {
        Self {
            items: Items::new(),
            clients: Clients::new(MAX_CLIENTS),
            time: 0,
            history: History::new(applied),
            draft: None,
            applied,
            cluster,
            #[cfg(feature = "mutants")]
            repeats: false,
            #[cfg(feature = "mutants")]
            forgets_clients: false,
            #[cfg(feature = "mutants")]
            is_careless: false,
        }
    }

    /// Limits the records to this number of clients from now on.
    pub(crate) fn remember(&mut self, clients: usize) {
        self.clients = Clients::new(clients);
    }

    /// Sets the name of the cluster to which the state belongs.
    pub(crate) const fn belong(&mut self, cluster: u64) {
        self.cluster = cluster;
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

    /// Plants the bug that transactions write although a key has another version.
    #[cfg(feature = "mutants")]
    pub(crate) fn compare_nothing(&mut self) {
        self.is_careless = true;
    }

    /// Plants the bug that a watch shows only the last change of each key.
    #[cfg(feature = "mutants")]
    pub(crate) fn show_last_changes(&mut self) {
        self.history.show_last();
    }

    /// The log's time in milliseconds.
    pub(crate) const fn time(&self) -> u64 {
        self.time
    }

    /// The log's time at which the next item expires, if any will.
    pub(crate) fn next_expiry(&self) -> Option<u64> {
        self.items.next_expiry()
    }

    /// Reads a page of items: keys that begin with a prefix and come after `after`.
    pub(crate) fn page(&self, prefix: &[u8], limit: u32, after: &[u8]) -> Page {
        let mut page = Page::new(limit);
        let mut rest = self.items.range(prefix, after);
        while let Some((key, item)) = rest.next()
            && page.add(item.version, key, &item.value)
        {}
        page
    }

    /// Changes of keys with a prefix, by entries from an index on. The error is the first index
    /// from which all changes are known.
    pub(crate) fn events(&self, prefix: &[u8], from: u64) -> Result<Events, u64> {
        let events = self.history.since(prefix, from, self.applied);
        events.ok_or_else(|| self.history.first())
    }

    /// The index of the last entry that was applied.
    pub(crate) const fn applied(&self) -> u64 {
        self.applied
    }

    /// Keys that have an item.
    pub(crate) fn keys(&self) -> usize {
        self.items.len()
    }

    /// The item of a key: version and value.
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

    /// Starts to load the items that these entries put, at most [`AHEAD`]. The caller then applies
    /// the entries.
    pub(crate) fn look_ahead<'a>(&self, entries: impl Iterator<Item = &'a [u8]>) {
        self.items.look_ahead(entries.filter_map(key_of_put));
    }

    /// Applies the next entry, and returns the answer to its client. An empty entry, with which a
    /// leader begins its term, changes nothing.
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
                Operation::Clock(time) => {
                    self.on_time(index, time);
                    Answer::Missing
                }
                // No replica proposes a read.
                _ => self.get(request.key),
            };
        };
        let Some(record) = self.clients.record(name.client) else {
            return Answer::Expired;
        };
        let earlier = record.earlier(name, (entry, request), index);
        #[cfg(feature = "mutants")]
        let earlier = earlier.filter(|_| !self.repeats);
        if let Some(answer) = earlier {
            return answer;
        }
        let mut writer = Writer {
            items: &mut self.items,
            history: &mut self.history,
            time: self.time,
            index,
            #[cfg(feature = "mutants")]
            is_careless: self.is_careless,
        };
        let answer = writer.write(request);
        record.note(name.number, (entry, request), &answer);
        answer
    }

    /// Opens a client. No client of another cluster at the same addresses has the same name, so
    /// writes of such a client are refused. The name is not 0, which stands for no client.
    fn open(&mut self, index: u64) -> u64 {
        let client = index.wrapping_add(self.cluster).max(1);
        self.clients.open(client, index);
        client
    }

    /// Advances the log's time.
    fn on_time(&mut self, index: u64, time: u64) {
        self.time = self.time.max(time);
        while let Some(key) = self.items.expire(self.time) {
            self.history.note(index, &key, Change::Expired);
        }
    }
}

#[cfg(test)]
mod tests;
