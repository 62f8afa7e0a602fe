//! A partition: one table and the operations on it, for one thread and endpoint (EREW, as in MICA).
//!
//! The table's clock is the endpoint's clock plus an epoch: 1 s, unless [`Partition::on_clock`]
//! sets another. A partition refuses requests of clients that route by another map, counts
//! requests, and sweeps expired items at a rate of one cache line in 10 us, which takes a hundredth
//! of its thread's time. Called by `service`; nothing here knows endpoints.

use std::time::Duration;

use dunlin_core::{Nanos, Ticket};
use dunlin_store::{
    BATCH, CounterError, Cursor, DeleteError, Item, Key, SLICE, Seconds, Stamp, Table, Value,
    Version, Write, WriteError, Writing,
};

use crate::wire::{
    Figures, Head, HotKeys, Keys, MOST_ANSWER, Map, PUBLISHED, Record, Records, Request, Scanned,
    Status, Store, Whole,
};
use answer::head_of;
use writings::Writings;

mod answer;
mod writings;

pub(crate) use answer::{Reply, copy};

/// Time for each cache line that the sweep touches. Fetching a line from memory takes about a
/// hundredth of it.
const SWEEP_GAP: Nanos = Nanos::from_micros(10);

/// The most lines of one sweep. After an idle time, a burst waits for these, about 25 us, and for
/// the rest of a bucket.
const MOST_SWEPT: u64 = 256;

/// The most buckets in one answer to a scan.
const MOST_SCANNED: usize = 256;

/// A table, and its place among the tables of the server.
///
/// ```
/// use dunlin_kv::{Map, Partition};
/// use dunlin_store::{Config, Mode, Region, Seed, Table};
///
/// let config = Config { mode: Mode::Cache, seed: Seed::new([17, 4]), first_version: 1 };
/// let table = Table::new(Region::new(1 << 20)?, config)?;
/// let map = Map::new(7, Mode::Cache, [0])?;
/// let partition = Partition::new(table, map, 0);
/// assert_eq!(partition.figures().items, 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Partition {
    table: Table,
    map: Map,
    number: u16,
    memory: usize,
    counted: Figures,
    /// Sweeps are paid for up to this time. It is in the future if the last bucket took more than
    /// its share of the thread's time.
    swept: Nanos,
    /// The time by which the table's clock is ahead of the endpoint's.
    epoch: Nanos,
    /// A buffer in which [`Self::run_multi`] builds its answers.
    records: Vec<u8>,
    /// Requests whose values are being written in parts.
    writings: Writings<Ticket>,
    /// A planted bug: requests run even if they have another map.
    #[cfg(feature = "mutants")]
    takes_any_map: bool,
    /// A planted bug: slices are read even if their value has another stamp.
    #[cfg(feature = "mutants")]
    takes_any_stamp: bool,
}

impl Partition {
    /// Makes partition `number` of `map`.
    ///
    /// # Panics
    /// If the map has no such partition.
    #[must_use]
    pub fn new(table: Table, map: Map, number: u16) -> Self {
        assert!(number < map.partitions(), "the map has this partition");
        Self {
            memory: table.region_len(),
            table,
            map,
            number,
            counted: Figures::default(),
            swept: Nanos::ZERO,
            epoch: Nanos::from_secs(1),
            records: Vec::new(),
            writings: Writings::new(),
            #[cfg(feature = "mutants")]
            takes_any_map: false,
            #[cfg(feature = "mutants")]
            takes_any_stamp: false,
        }
    }

    /// Plants the bug that requests with another map run.
    #[cfg(feature = "mutants")]
    pub fn take_any_map(&mut self) {
        self.takes_any_map = true;
    }

    /// Plants the bug that a get reads on after its value was overwritten between two slices.
    #[cfg(feature = "mutants")]
    pub fn take_any_stamp(&mut self) {
        self.takes_any_stamp = true;
    }

    /// The partition's number in the map.
    #[must_use]
    pub const fn number(&self) -> u16 {
        self.number
    }

    /// The map.
    #[must_use]
    pub const fn map(&self) -> &Map {
        &self.map
    }

    /// Sets the table's clock, before the first request: it shows `since_1970` when the endpoint's
    /// clock shows `now`. Front ends of other protocols need this if their clients use calendar
    /// times.
    pub fn on_clock(&mut self, since_1970: Duration, now: Nanos) {
        self.epoch = Nanos::from(since_1970).since(now);
    }

    /// The time of the table's clock when the endpoint's clock shows `now`.
    #[inline]
    #[must_use]
    pub fn time(&self, now: Nanos) -> Seconds {
        let seconds = (self.epoch + now).0 / 1_000_000_000;
        Seconds(u32::try_from(seconds).unwrap_or(u32::MAX))
    }

    /// Lends the table to a front end of another protocol.
    pub fn lend(&mut self) -> &mut Table {
        &mut self.table
    }

    /// The bytes of memory of its table.
    #[must_use]
    pub const fn memory(&self) -> usize {
        self.memory
    }

    /// The figures at this moment.
    #[must_use]
    pub fn figures(&self) -> Figures {
        Figures::of_table(&self.table.stats(), self.memory).plus(self.counted)
    }

    /// The keys that clients have recently read most.
    #[must_use]
    pub fn hot_keys(&self) -> HotKeys {
        let keys = self.table.hot_keys().into_iter();
        HotKeys {
            samples: self.table.hot_samples(),
            keys: keys.map(|(key, samples)| (key.to_vec(), samples)).collect(),
        }
    }

    /// Values of [`COUNTERS`](crate::COUNTERS) and then of [`GAUGES`](crate::GAUGES), for tools
    /// that show the figures of an endpoint.
    #[must_use]
    pub fn published(&self) -> [u64; PUBLISHED] {
        let hottest = self
            .table
            .hot_keys()
            .first()
            .map_or(0, |(_, samples)| *samples);
        let samples = self.table.hot_samples().max(1);
        self.figures().published(hottest * 1_000_000 / samples)
    }

    /// Counts a batch of requests, and sweeps if a sweep is due.
    pub(crate) fn on_batch(&mut self, requests: usize, now: Nanos) {
        self.counted.requests += requests as u64;
        self.counted.batches += 1;
        self.on_time(now);
    }

    /// Sweeps if a sweep is due. Requests do so, too; this is for a thread without requests.
    pub fn on_time(&mut self, now: Nanos) {
        let due = now.since(self.swept).0 / SWEEP_GAP.0;
        if due > 0 {
            let due = due.min(MOST_SWEPT);
            let swept = self.table.sweep(due, self.time(now));
            // A bucket is swept as a whole. The next sweep waits until the excess is paid for.
            self.swept = now + Nanos(swept.lines.saturating_sub(due) * SWEEP_GAP.0);
        }
    }

    pub(crate) fn on_malformed(&mut self) {
        self.counted.malformed += 1;
    }

    /// Hashes the key of a request for this table. Its length was checked when it was decoded.
    #[inline]
    pub(crate) fn key<'a>(&self, bytes: &'a [u8]) -> Key<'a> {
        let key = self.table.key(bytes);
        key.expect("a request that was read has a key of an allowed length")
    }

    /// The tag of this server's map.
    #[inline]
    pub(crate) fn tag(&self) -> u32 {
        self.map.tag()
    }

    /// Brings the items of up to [`dunlin_store::BATCH`] keys into the cache.
    #[inline]
    pub(crate) fn ahead(&self, keys: &mut [Key<'_>]) {
        self.table.ahead(keys);
    }

    /// Whether a request with this tag comes from a client that routes by this server's map.
    #[inline]
    fn is_current(&mut self, tag: u32) -> bool {
        let is_current = tag == self.map.tag();
        #[cfg(feature = "mutants")]
        let is_current = is_current || self.takes_any_map;
        if !is_current {
            self.counted.map_changed += 1;
        }
        is_current
    }

    /// Runs an operation at this time of the table's clock, and passes its answer to `see`.
    #[inline]
    pub(crate) fn run<T>(
        &mut self,
        (tag, request): (u32, &Request<'_>),
        key: &Key<'_>,
        now: Seconds,
        see: impl FnOnce(Reply<'_>) -> T,
    ) -> T {
        if let Request::Write(store) = request {
            return see(match self.write((tag, store), key, now) {
                Ok(version) => Reply::Written(version),
                Err(status) => Reply::Refused(status),
            });
        }
        if !self.is_current(tag) {
            return see(Reply::Refused(Status::MapChanged));
        }
        match request {
            Request::Get { .. } => match self.get(key, now) {
                Some((head, value)) => see(Reply::Found(head, value)),
                None => see(Reply::Refused(Status::Missing)),
            },
            Request::Slice { stamp, from, .. } => see(self.slice(key, *stamp, *from, now)),
            other => see(self.change(other, key, now)),
        }
    }

    /// Gets an item: the part of the answer before the value, and the value.
    #[inline(always)]
    pub(crate) fn get(&mut self, key: &Key<'_>, now: Seconds) -> Option<(Head, Value<'_>)> {
        let item = self.table.get(key, now)?;
        let value = item.value();
        Some((head_of(&item, value.len(), now), value))
    }

    /// Reads the slice of a long value that begins at `from`.
    fn slice(&mut self, key: &Key<'_>, stamp: u64, from: u32, now: Seconds) -> Reply<'_> {
        let from = from as usize;
        #[cfg(feature = "mutants")]
        let is_any = self.takes_any_stamp;
        #[cfg(not(feature = "mutants"))]
        let is_any = false;
        let item = self.table.peek(key, now);
        let is_it = |item: &Item<'_>| {
            let is_same = item.stamp() == Some(Stamp::from_number(stamp));
            (is_same || is_any) && from < item.value().len()
        };
        match item.filter(is_it) {
            Some(item) => Reply::Slice(item.value(), from),
            None => Reply::Refused(Status::Gone),
        }
    }

    fn change(&mut self, request: &Request<'_>, key: &Key<'_>, now: Seconds) -> Reply<'static> {
        match request {
            Request::Count {
                delta, if_version, ..
            } => match self.table.count(key, *delta, if_version.map(Version), now) {
                Ok((number, version)) => Reply::Counted(number, version.0),
                Err(error) => Reply::Refused(status_of_count(error)),
            },
            Request::Delete { if_version, .. } => {
                match self.table.delete(key, if_version.map(Version), now) {
                    Ok(()) => Reply::Done,
                    Err(DeleteError::Absent) => Reply::Refused(Status::Missing),
                    Err(DeleteError::VersionDiffers) => Reply::Refused(Status::Differs),
                }
            }
            Request::Touch { lifetime, .. } => {
                match self.table.touch(key, expiry(*lifetime, now), now) {
                    Ok(()) => Reply::Done,
                    Err(error) => Reply::Refused(status_of_write(error)),
                }
            }
            Request::Get { .. } | Request::Slice { .. } | Request::Write(_) => {
                unreachable!("`run` has answered them")
            }
        }
    }

    /// Runs a set whose request has this server's map, and returns the version of its item.
    #[inline(always)]
    pub(crate) fn set(
        &mut self,
        store: &Store<'_>,
        key: &Key<'_>,
        now: Seconds,
    ) -> Result<u64, Status> {
        let written = self.table.write(key, &write_of(store, now), now);
        written.map(|version| version.0).map_err(status_of_write)
    }

    /// Runs a write, and returns the version of its item.
    pub(crate) fn write(
        &mut self,
        (tag, store): (u32, &Store<'_>),
        key: &Key<'_>,
        now: Seconds,
    ) -> Result<u64, Status> {
        if !self.is_current(tag) {
            return Err(Status::MapChanged);
        }
        self.set(store, key, now)
    }

    /// Notes that the handler was called for a request with this ticket. The continuation of a
    /// write is not counted again.
    pub(crate) fn on_call(&mut self, ticket: Ticket) {
        if self.writings.has(&ticket) {
            self.counted.requests -= 1;
            self.counted.batches -= 1;
        }
    }

    /// Does a part of the write whose request has this ticket. `None`: the request must come again
    /// with the same ticket.
    pub(crate) fn write_part(
        &mut self,
        (tag, store): (u32, &Store<'_>),
        key: &Key<'_>,
        ticket: Ticket,
        now: Seconds,
    ) -> Option<Reply<'static>> {
        let mut writing = Writing::default();
        if let Some(begun) = self.writings.take(&ticket) {
            writing = begun;
        } else if !self.is_current(tag) {
            return Some(Reply::Refused(Status::MapChanged));
        }
        let write = write_of(store, now);
        let written = self.table.write_part(key, &write, &mut writing, now);
        if written.is_none() {
            self.writings.keep(ticket, writing, &self.table);
        }
        written.map(reply_to_write)
    }

    /// Runs a request for many keys, and returns the answer: at most [`MOST_ANSWER`] bytes.
    pub(crate) fn run_multi(&mut self, (tag, keys): (u32, &Keys<'_>), now: Nanos) -> &[u8] {
        let mut answer = std::mem::take(&mut self.records);
        if self.is_current(tag) {
            let keys = keys.within(MOST_ANSWER);
            self.fill_records(&keys, self.time(now), &mut answer);
        } else {
            answer.clear();
            answer.resize(Reply::Refused(Status::MapChanged).size(), 0);
            Reply::Refused(Status::MapChanged).write(&mut answer);
        }
        self.records = answer;
        &self.records
    }

    fn fill_records(&mut self, keys: &Keys<'_>, now: Seconds, answer: &mut Vec<u8>) {
        let mut records = Records::begin(answer, keys.limit() as usize);
        let mut rest = keys.iter().peekable();
        while let Some(first) = rest.peek() {
            let (mut hashed, mut count) = ([self.key(first); BATCH], 0);
            for key in rest.by_ref().take(BATCH) {
                hashed[count] = self.key(key);
                count += 1;
            }
            self.table.ahead(&mut hashed[..count]);
            for key in &hashed[..count] {
                let item = self.table.get(key, now);
                if !push(&mut records, item.as_ref(), now) {
                    return records.end();
                }
            }
        }
        records.end();
    }

    /// Runs a request for the whole partition, and returns its answer.
    pub(crate) fn run_whole(&mut self, (tag, whole): (u32, Whole), now: Nanos) -> WholeReply {
        match whole {
            Whole::Figures => WholeReply::Figures(Box::new(self.figures())),
            Whole::Hot => WholeReply::Keys(self.hot_keys().encode()),
            Whole::Flush(_) | Whole::Scan(_) if !self.is_current(tag) => {
                WholeReply::Short(Reply::Refused(Status::MapChanged))
            }
            Whole::Flush(delay) => {
                let now = self.time(now);
                self.table.flush(Seconds(now.0.saturating_add(delay)), now);
                WholeReply::Short(Reply::Done)
            }
            Whole::Scan(place) => WholeReply::Keys(self.scan(place, self.time(now))),
        }
    }

    /// Reads keys from a place on, and returns them with the next place.
    fn scan(&mut self, place: u64, now: Seconds) -> Vec<u8> {
        let (mut keys, mut next) = (Scanned::begin(), Some(Cursor::of_number(place)));
        for _ in 0..MOST_SCANNED {
            let Some(place) = next.filter(|_| !keys.is_long()) else {
                break;
            };
            next = self.table.scan(place, 1, now, |item| keys.push(item.key()));
        }
        keys.end(next.map(Cursor::number))
    }
}

/// The answer to a request for a whole partition.
pub(crate) enum WholeReply {
    Figures(Box<Figures>),
    Keys(Vec<u8>),
    Short(Reply<'static>),
}

/// Appends an item's record. False: it no longer fits.
fn push(records: &mut Records<'_>, item: Option<&Item<'_>>, now: Seconds) -> bool {
    let Some(item) = item else {
        return records.push(&Record::Other(Status::Missing)).is_some();
    };
    let value = item.value();
    let record = Record::Found(head_of(item, value.len(), now));
    if value.len() > SLICE || !records.may_fit(&record) {
        return records.push(&Record::Other(Status::Alone)).is_some();
    }
    let room = records.push(&record);
    room.map(|room| copy(&value, room)).is_some()
}

fn write_of<'a>(store: &Store<'a>, now: Seconds) -> Write<'a> {
    Write {
        verb: store.verb,
        flags: store.flags,
        expiry: expiry(store.lifetime, now),
        if_version: store.if_version.map(Version),
        ..Write::set(store.value)
    }
}

fn reply_to_write(written: Result<Version, WriteError>) -> Reply<'static> {
    match written {
        Ok(version) => Reply::Written(version.0),
        Err(error) => Reply::Refused(status_of_write(error)),
    }
}

/// The time at which an item with this lifetime expires.
fn expiry(lifetime: u32, now: Seconds) -> Option<Seconds> {
    (lifetime != 0).then(|| Seconds(now.0.saturating_add(lifetime)))
}

fn status_of_write(error: WriteError) -> Status {
    match error {
        WriteError::Present => Status::Present,
        WriteError::Absent => Status::Missing,
        WriteError::VersionDiffers => Status::Differs,
        WriteError::TooLong => Status::TooLong,
        WriteError::NoMemory => Status::NoMemory,
    }
}

fn status_of_count(error: CounterError) -> Status {
    match error {
        CounterError::Absent => Status::Missing,
        CounterError::VersionDiffers => Status::Differs,
        CounterError::NotANumber => Status::NotANumber,
        CounterError::NoMemory => Status::NoMemory,
    }
}

#[cfg(test)]
mod tests;
