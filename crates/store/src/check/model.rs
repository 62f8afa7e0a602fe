//! The simple model: a map from keys to items, and the rules of each operation in their simplest
//! form.

use std::collections::BTreeMap;

use crate::{ACCESS_SECONDS, CounterError, DeleteError, Delta, Verb, Write, WriteError};

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Thing {
    pub(super) value: Vec<u8>,
    pub(super) flags: u32,
    /// 0: never.
    pub(super) expiry: u32,
    pub(super) version: u64,
    pub(super) last_access: u32,
    pub(super) was_read: bool,
    pub(super) is_stale: bool,
    pub(super) is_claimed: bool,
    /// The number of flushes before the item was written.
    pub(super) flushes: u32,
}

#[derive(Debug)]
pub(super) struct Model {
    things: BTreeMap<Vec<u8>, Thing>,
    now: u32,
    flushes: u32,
    flush_at: Option<u32>,
}

impl Model {
    pub(super) fn new(now: u32) -> Self {
        Self {
            things: BTreeMap::new(),
            now,
            flushes: 0,
            flush_at: None,
        }
    }

    pub(super) fn wait(&mut self, seconds: u32) {
        self.now += seconds;
        self.settle();
    }

    pub(super) fn flush(&mut self, at: u32) {
        self.flush_at = Some(at);
        self.settle();
    }

    fn settle(&mut self) {
        if self.flush_at.is_some_and(|at| at <= self.now) {
            self.flush_at = None;
            self.flushes += 1;
        }
    }

    /// The item, if a client may see it.
    pub(super) fn get(&self, key: &[u8]) -> Option<&Thing> {
        self.things.get(key).filter(|thing| self.is_there(thing))
    }

    fn get_mut(&mut self, key: &[u8]) -> Option<&mut Thing> {
        self.get(key)?;
        self.things.get_mut(key)
    }

    pub(super) fn is_flushed(&self, thing: &Thing) -> bool {
        thing.flushes != self.flushes
    }

    pub(super) fn is_expired(&self, thing: &Thing) -> bool {
        thing.expiry != 0 && thing.expiry <= self.now
    }

    fn is_there(&self, thing: &Thing) -> bool {
        !self.is_flushed(thing) && !self.is_expired(thing)
    }

    /// All items that a client may see.
    pub(super) fn all(&self) -> impl Iterator<Item = (&Vec<u8>, &Thing)> {
        self.things.iter().filter(|(_, thing)| self.is_there(thing))
    }

    /// The item of a key, whether or not a client may still see it.
    pub(super) fn any(&self, key: &[u8]) -> Option<&Thing> {
        self.things.get(key)
    }

    pub(super) fn forget(&mut self, key: &[u8]) {
        self.things.remove(key);
    }

    pub(super) fn read(&mut self, key: &[u8]) {
        let now = self.now;
        if let Some(thing) = self.get_mut(key)
            && (!thing.was_read || now - thing.last_access >= ACCESS_SECONDS)
        {
            thing.last_access = now;
            thing.was_read = true;
        }
    }

    /// Decides whether the write happens, and computes the resulting item, except for its version.
    pub(super) fn judge(&self, key: &[u8], write: &Write<'_>) -> Result<Thing, WriteError> {
        let old = self.get(key);
        let mut thing = Thing {
            value: write.value.to_vec(),
            flags: write.flags,
            expiry: write.expiry.map_or(0, |at| at.0),
            version: 0,
            last_access: self.now,
            was_read: false,
            is_stale: false,
            is_claimed: false,
            flushes: self.flushes,
        };
        match (write.verb, old) {
            (Verb::Add, Some(_)) => return Err(WriteError::Present),
            (Verb::Replace | Verb::Append | Verb::Prepend, None) => return Err(WriteError::Absent),
            _ => {}
        }
        if let Some(version) = write.if_version {
            let old = old.ok_or(WriteError::Absent)?;
            thing.is_stale = write.stale_if_older && version.0 < old.version;
            if version.0 != old.version && !thing.is_stale {
                return Err(WriteError::VersionDiffers);
            }
        }
        if let (Verb::Append | Verb::Prepend, Some(old)) = (write.verb, old) {
            thing.value = match write.verb {
                Verb::Append => [&old.value, write.value].concat(),
                _ => [write.value, &old.value].concat(),
            };
            (thing.flags, thing.expiry) = (old.flags, old.expiry);
        }
        Ok(thing)
    }

    pub(super) fn put(&mut self, key: &[u8], thing: Thing) {
        self.things.insert(key.to_vec(), thing);
    }

    pub(super) fn delete(&mut self, key: &[u8], version: Option<u64>) -> Result<(), DeleteError> {
        self.with_version(key, version)?;
        self.things.remove(key);
        Ok(())
    }

    pub(super) fn touch(&mut self, key: &[u8], expiry: u32) -> bool {
        let now = self.now;
        let Some(thing) = self.get_mut(key) else {
            return false;
        };
        thing.expiry = expiry;
        thing.last_access = now;
        true
    }

    /// The item after an invalidation, except for its version.
    pub(super) fn invalidated(
        &self,
        key: &[u8],
        version: Option<u64>,
    ) -> Result<Thing, DeleteError> {
        let mut thing = self.with_version(key, version)?.clone();
        thing.is_stale = true;
        thing.is_claimed = false;
        Ok(thing)
    }

    pub(super) fn claim(&mut self, key: &[u8]) -> bool {
        let thing = self.get_mut(key).filter(|thing| !thing.is_claimed);
        let is_first = thing.is_some();
        if let Some(thing) = thing {
            thing.is_claimed = true;
        }
        is_first
    }

    /// The new number, and the item after the count, except for its version.
    pub(super) fn counted(&self, key: &[u8], delta: Delta) -> Result<(u64, Thing), CounterError> {
        let mut thing = self.get(key).ok_or(CounterError::Absent)?.clone();
        let text = std::str::from_utf8(&thing.value).map_err(|_| CounterError::NotANumber)?;
        let digits = text.trim_end_matches(|last: char| last.is_ascii_whitespace());
        let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
        let old: u64 = match digits.parse() {
            Ok(number) if is_number => number,
            _ => return Err(CounterError::NotANumber),
        };
        let new = match delta {
            Delta::Up(by) => old.wrapping_add(by),
            Delta::Down(by) => old.saturating_sub(by),
        };
        let len = thing.value.len().min(20);
        thing.value = format!("{new:<len$}").into_bytes();
        thing.last_access = self.now;
        Ok((new, thing))
    }

    fn with_version(&self, key: &[u8], version: Option<u64>) -> Result<&Thing, DeleteError> {
        let thing = self.get(key).ok_or(DeleteError::Absent)?;
        match version {
            Some(version) if version != thing.version => Err(DeleteError::VersionDiffers),
            _ => Ok(thing),
        }
    }
}
