//! Runs operations on a table and on its model, and finds the first difference.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use super::model::{Model, Thing};
use super::operation::{Condition, Content, Operation, key_bytes};
use super::scan::ScanRun;
use crate::{
    Config, Cursor, Delta, Item, Key, Mode, Reason, Region, SLICE, Seconds, Table, Verb, Version,
    Write, WriteError,
};

/// A difference between table and model, in words.
pub(super) type Difference = String;

/// An item that the table has reported as gone.
type Gone = (Vec<u8>, u64, Reason);

#[derive(Debug)]
pub(super) struct Driver {
    pub(super) table: Table,
    pub(super) model: Model,
    pub(super) now: Seconds,
    gone: Arc<Mutex<Vec<Gone>>>,
    explicit: u64,
    versions: BTreeSet<u64>,
    /// The scan in progress.
    pub(super) scan: Option<ScanRun>,
}

/// Fails, and shows both sides, unless they are the same.
pub(super) fn same<T: PartialEq + std::fmt::Debug>(
    what: &str,
    table: T,
    model: T,
) -> Result<(), Difference> {
    if table == model {
        return Ok(());
    }
    Err(format!(
        "{what}: the table has {table:?}, the model {model:?}"
    ))
}

impl Driver {
    pub(super) fn new(memory: usize, config: Config) -> Self {
        let region = Region::new(memory).expect("it is small");
        let mut table = Table::new(region, config).expect("it is large enough");
        let gone = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&gone);
        table.watch(move |departure| {
            let key = departure.key.to_vec();
            let mut seen = seen.lock().expect("nothing panics with it");
            seen.push((key, departure.version.0, departure.reason));
        });
        Self {
            table,
            model: Model::new(100),
            now: Seconds(100),
            gone,
            explicit: 1 << 60,
            versions: BTreeSet::new(),
            scan: None,
        }
    }

    /// Runs all operations, then compares every item of both sides.
    pub(super) fn run(&mut self, operations: &[Operation]) -> Result<(), Difference> {
        for (number, operation) in operations.iter().enumerate() {
            let done = self.step(operation);
            done.map_err(|difference| format!("{number} {operation:?}: {difference}"))?;
        }
        self.compare_all()?;
        self.table.audit()
    }

    fn step(&mut self, operation: &Operation) -> Result<(), Difference> {
        match operation {
            Operation::Get(key) => self.get(&self.key(&key_bytes(*key))),
            Operation::Write { .. } => self.write(operation),
            Operation::Delete(key, condition) => {
                self.delete(&self.key(&key_bytes(*key)), *condition)
            }
            Operation::Touch(key, lasts) => self.touch(&key_bytes(*key), *lasts),
            Operation::Count(key, up, by) => {
                let delta = if *up {
                    Delta::Up(*by)
                } else {
                    Delta::Down(*by)
                };
                self.count(&key_bytes(*key), delta)
            }
            Operation::Invalidate(key, condition) => self.invalidate(&key_bytes(*key), *condition),
            Operation::Claim(key) => self.claim(&key_bytes(*key)),
            Operation::Flush(delay) => {
                let at = self.now.0 + delay;
                self.table.flush(Seconds(at), self.now);
                self.model.flush(at);
                self.take_gone(None)
            }
            Operation::Sweep(lines) => {
                self.table.sweep(*lines, self.now);
                self.take_gone(None)
            }
            Operation::ScanStep(buckets) => self.scan_step(*buckets),
            Operation::Wait(seconds) => {
                self.now.0 += seconds;
                self.model.wait(*seconds);
                Ok(())
            }
            Operation::Ahead(from) => self.ahead(*from),
            Operation::Slices(key, other) => self.slices(&key_bytes(*key), *other),
            Operation::GetBatch(from, count) => self.get_batch(*from, *count),
            Operation::Parts { .. } => self.write_parts(operation),
        }
    }

    pub(super) fn key<'a>(&self, bytes: &'a [u8]) -> Key<'a> {
        self.table.key(bytes).expect("it has 1 to 250 bytes")
    }

    pub(super) fn get(&mut self, key: &Key<'_>) -> Result<(), Difference> {
        let item = self.table.get(key, self.now).map(|item| thing(&item));
        self.take_gone(None)?;
        same("item", item, self.seen(key.bytes()))?;
        self.model.read(key.bytes());
        Ok(())
    }

    /// Looks ahead at some keys, deletes the items of some, which moves entries of the others, and
    /// writes others. Then gets all these keys, although the look-ahead is out of date.
    fn ahead(&mut self, from: u16) -> Result<(), Difference> {
        let bytes: Vec<Vec<u8>> = (from..from.saturating_add(40)).map(key_bytes).collect();
        let mut keys: Vec<Key<'_>> = bytes.iter().map(|key| self.key(key)).collect();
        self.table.ahead(&mut keys);
        for key in keys.iter().step_by(3) {
            self.delete(key, Condition::None)?;
        }
        for (number, key) in keys.iter().enumerate().skip(1).step_by(3) {
            self.write_alike(key, number)?;
        }
        keys.iter().try_for_each(|key| self.get(key))
    }

    /// Sets a new value for a key, mostly of the same length. Half of these values have flags and
    /// an expiry.
    fn write_alike(&mut self, key: &Key<'_>, number: usize) -> Result<(), Difference> {
        let before = self.model.get(key.bytes()).cloned();
        let len = before.as_ref().map_or(9, |thing| thing.value.len());
        let value = vec![b'a'; len + usize::from(number.is_multiple_of(5))];
        let flags = u32::from(number.is_multiple_of(2));
        let write = Write {
            flags,
            expiry: (flags != 0).then_some(Seconds(self.now.0 + 3)),
            ..Write::set(&value)
        };
        let written = self.table.write(key, &write, self.now);
        self.compare_write(key, &write, written, before)
    }

    fn get_batch(&mut self, from: u16, count: u16) -> Result<(), Difference> {
        let bytes: Vec<Vec<u8>> = (from..from.saturating_add(count)).map(key_bytes).collect();
        let keys: Vec<Key<'_>> = bytes.iter().map(|key| self.key(key)).collect();
        let mut items = Vec::new();
        self.table.get_batch(&keys, self.now, |number, item| {
            items.push((number, item.map(|item| thing(&item))));
        });
        self.take_gone(None)?;
        same("items of a batch", items.len(), keys.len())?;
        for (at, (number, item)) in items.into_iter().enumerate() {
            same("number in a batch", number, at)?;
            same("item of a batch", item, self.seen(&bytes[at]))?;
            self.model.read(&bytes[at]);
        }
        Ok(())
    }

    /// Checks that all slices of a value come from one write, with any writes between the reads.
    fn slices(&mut self, bytes: &[u8], other: u16) -> Result<(), Difference> {
        let mut out = vec![0; SLICE];
        let first = self.table.get(&self.key(bytes), self.now).and_then(|item| {
            let copied = item.value().copy_from(0, &mut out);
            out.truncate(copied);
            item.stamp()
        });
        self.take_gone(None)?;
        let expected = self.model.get(bytes).map(|thing| thing.value.clone());
        self.model.read(bytes);
        self.write(&Operation::Write {
            key: other,
            verb: Verb::Set,
            content: Content::Bytes {
                len: SLICE + 5000,
                from: out.first().map_or(0, |first| first.wrapping_add(1)),
            },
            flags: 0,
            lasts: None,
            condition: Condition::None,
            stale_if_older: false,
            is_explicit: false,
        })?;
        let (Some(stamp), Some(expected)) = (first, expected) else {
            return Ok(());
        };
        let key = self.key(bytes);
        while out.len() < expected.len() {
            let from = out.len();
            out.resize(from + SLICE, 0);
            let slice = &mut out[from..];
            let Some(copied) = self.table.read_slice(&key, stamp, from, slice, self.now) else {
                return Ok(());
            };
            out.truncate(from + copied);
        }
        same("slices", out == expected, true)
    }

    /// The model's item, converted for comparison with the table's.
    pub(super) fn seen(&self, key: &[u8]) -> Option<Thing> {
        let flushes = 0;
        self.model.get(key).map(|thing| Thing {
            flushes,
            ..thing.clone()
        })
    }

    pub(super) fn version(&self, key: &[u8], condition: Condition) -> Option<Version> {
        let current = self.model.get(key).map_or(77, |thing| thing.version);
        match condition {
            Condition::None => None,
            Condition::Current => Some(Version(current)),
            Condition::Older => Some(Version(current.wrapping_sub(1))),
            Condition::Wrong => Some(Version(u64::MAX / 3)),
        }
    }

    pub(super) fn write(&mut self, operation: &Operation) -> Result<(), Difference> {
        let Operation::Write {
            key: number,
            verb,
            content,
            flags,
            lasts,
            condition,
            stale_if_older,
            is_explicit,
        } = operation
        else {
            return Ok(());
        };
        let (bytes, value) = (key_bytes(*number), content.bytes());
        self.explicit += u64::from(*is_explicit);
        let write = Write {
            verb: *verb,
            value: &value,
            flags: *flags,
            expiry: lasts.map(|lasts| Seconds(self.now.0 + lasts)),
            if_version: self.version(&bytes, *condition),
            stale_if_older: *stale_if_older,
            version: is_explicit.then_some(Version(self.explicit)),
        };
        let before = self.model.get(&bytes).cloned();
        let key = self.key(&bytes);
        let written = self.table.write(&key, &write, self.now);
        self.compare_write(&key, &write, written, before)
    }

    /// Compares the result of a write with the model's. `before` is the item that the key had.
    pub(super) fn compare_write(
        &mut self,
        key: &Key<'_>,
        write: &Write<'_>,
        written: Result<Version, WriteError>,
        before: Option<Thing>,
    ) -> Result<(), Difference> {
        let bytes = key.bytes();
        let expected = self.model.judge(bytes, write);
        match (written, expected) {
            (Ok(version), Ok(thing)) => {
                if let Some(asked) = write.version {
                    same("version", version, asked)?;
                }
                self.take_gone(before.as_ref().map(|old| (bytes, old.version)))?;
                let version = self.new_version(version)?;
                self.model.put(bytes, Thing { version, ..thing });
                self.take_new_gone()
            }
            (Err(WriteError::NoMemory), Ok(_)) if self.table.mode() == Mode::Store => {
                self.take_gone(None)
            }
            (Err(WriteError::TooLong), Ok(thing)) if thing.value.len() > 4 * 1024 => {
                self.take_gone(None)
            }
            (written, expected) => {
                self.take_gone(None)?;
                same("write", written.map(|_| ()), expected.map(|_| ()))
            }
        }
    }

    /// Checks that no two writes get the same version.
    fn new_version(&mut self, version: Version) -> Result<u64, Difference> {
        same("a new version", self.versions.insert(version.0), true)?;
        Ok(version.0)
    }

    fn delete(&mut self, key: &Key<'_>, condition: Condition) -> Result<(), Difference> {
        let bytes = key.bytes();
        let version = self.version(bytes, condition);
        let deleted = self.table.delete(key, version, self.now);
        self.take_gone(None)?;
        let expected = self.model.delete(bytes, version.map(|version| version.0));
        same("delete", deleted, expected)
    }

    fn touch(&mut self, bytes: &[u8], lasts: Option<u32>) -> Result<(), Difference> {
        let expiry = lasts.map(|lasts| Seconds(self.now.0 + lasts));
        let before = self.model.get(bytes).cloned();
        let key = self.key(bytes);
        let touched = self.table.touch(&key, expiry, self.now);
        // The item may have moved, and others may have been removed to make room for it.
        self.take_gone(before.as_ref().map(|old| (bytes, old.version)))?;
        if let (Err(WriteError::NoMemory | WriteError::TooLong), Some(old)) = (touched, &before) {
            let is_narrow = old.expiry == 0 && old.flags == 0;
            return same("an item without room for its expiry", is_narrow, true);
        }
        if let (Ok(()), Some(old)) = (touched, before) {
            // If the table removed it during the move, it added it again at once.
            self.model.put(bytes, old);
        }
        let expected = self.model.touch(bytes, expiry.map_or(0, |at| at.0));
        same("touch", touched.is_ok(), expected)
    }

    fn count(&mut self, bytes: &[u8], delta: Delta) -> Result<(), Difference> {
        let before = self.model.get(bytes).cloned();
        let key = self.key(bytes);
        let counted = self.table.count(&key, delta, None, self.now);
        let expected = self.model.counted(bytes, delta);
        match (counted, expected) {
            (Ok((number, version)), Ok((wanted, thing))) => {
                same("number", number, wanted)?;
                self.take_gone(before.as_ref().map(|old| (bytes, old.version)))?;
                let version = self.new_version(version)?;
                // A count is a new write, which resets the marks about reads.
                let thing = Thing { version, ..thing };
                self.model.put(bytes, thing);
                self.take_new_gone()
            }
            (Err(crate::CounterError::NoMemory), Ok(_)) => self.take_gone(None),
            (counted, expected) => {
                self.take_gone(None)?;
                same("count", counted.map(|_| ()), expected.map(|_| ()))
            }
        }
    }

    fn invalidate(&mut self, bytes: &[u8], condition: Condition) -> Result<(), Difference> {
        let version = self.version(bytes, condition);
        let key = self.key(bytes);
        let done = self.table.invalidate(&key, version, self.now);
        self.take_gone(None)?;
        let version = version.map(|version| version.0);
        let expected = self.model.invalidated(bytes, version);
        same(
            "invalidate",
            done.map(|_| ()),
            expected.as_ref().map(|_| ()).map_err(|why| *why),
        )?;
        if let (Ok(version), Ok(thing)) = (done, expected) {
            let version = self.new_version(version)?;
            self.model.put(bytes, Thing { version, ..thing });
        }
        Ok(())
    }

    fn claim(&mut self, bytes: &[u8]) -> Result<(), Difference> {
        let key = self.key(bytes);
        let claimed = self.table.claim(&key, self.now);
        self.take_gone(None)?;
        same("claim", claimed, self.model.claim(bytes))
    }

    /// Checks that each item that has left was allowed to leave. An operation that writes a key
    /// replaces its item; `rewritten` is that key, and the version of the old item.
    pub(super) fn take_gone(&mut self, rewritten: Option<(&[u8], u64)>) -> Result<(), Difference> {
        let gone = std::mem::take(&mut *self.gone.lock().expect("nothing panics with it"));
        for (key, version, reason) in gone {
            let thing = self.model.any(&key);
            let Some(thing) = thing.filter(|thing| thing.version == version) else {
                if rewritten.is_none_or(|(written, _)| written != key.as_slice()) {
                    return Err(format!("{key:?} left as {reason:?}, and was not there"));
                }
                continue;
            };
            let may = match reason {
                Reason::Expired => self.model.is_expired(thing),
                Reason::Flushed => self.model.is_flushed(thing),
                Reason::Evicted | Reason::Crowded => self.table.mode() == Mode::Cache,
            };
            if !may {
                return Err(format!("{key:?} left as {reason:?}: {thing:?}"));
            }
            self.model.forget(&key);
        }
        Ok(())
    }

    /// Checks that no item leaves after a write has happened.
    fn take_new_gone(&mut self) -> Result<(), Difference> {
        let gone = std::mem::take(&mut *self.gone.lock().expect("nothing panics with it"));
        same("departures after a write", gone, Vec::new())
    }

    /// Compares all items, both by their keys and by a scan.
    fn compare_all(&mut self) -> Result<(), Difference> {
        let all: Vec<(Vec<u8>, Thing)> = {
            let all = self.model.all();
            all.map(|(key, _)| (key.clone(), self.seen(key).expect("it is there")))
                .collect()
        };
        for (bytes, expected) in &all {
            let key = self.key(bytes);
            let item = self.table.peek(&key, self.now).map(|item| thing(&item));
            same("at the end", item.as_ref(), Some(expected))
                .map_err(|difference| format!("{bytes:?} {difference}"))?;
        }
        let mut scanned = Vec::new();
        let mut cursor = Some(Cursor::default());
        while let Some(at) = cursor {
            cursor = self.table.scan(at, 3, self.now, |item| {
                scanned.push((item.key().to_vec(), thing(&item)));
            });
        }
        scanned.sort_by(|one, other| one.0.cmp(&other.0));
        same("scan", scanned.len(), all.len())?;
        same("scan", scanned == all, true)
    }
}

/// Converts an item of the table to the model's form.
pub(super) fn thing(item: &Item<'_>) -> Thing {
    Thing {
        value: item.value().to_vec(),
        flags: item.flags(),
        expiry: item.expiry().map_or(0, |at| at.0),
        version: item.version().0,
        last_access: item.last_access().0,
        was_read: item.was_read(),
        is_stale: item.is_stale(),
        is_claimed: item.is_claimed(),
        flushes: 0,
    }
}
