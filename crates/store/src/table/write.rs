//! Writes an item: decides whether the write happens, and what it writes.

use std::fmt;

use crate::config::MAX_VALUE;
use crate::item::{Header, Seconds, Version, mark};
use crate::mutant::Mutant;
use crate::table::body::{Found, Table};
use crate::table::key::Key;
use crate::table::pending::Writing;

/// Cache lines that a write sweeps when it finds no memory, before it retries.
const RESCUE: u64 = 256;

/// The most cache lines that one write sweeps, which takes about 200 to 800 us. It needs more than
/// `RESCUE` only if the sweep finds nothing expired in the parts that it visits, because items
/// there were deleted or got later expiries; the next write continues where this one has ended.
pub(super) const MOST_RESCUE: u64 = 8192;

/// How often a write that finds no memory retries. A long value may need the pages of several
/// abandoned writes.
const MOST_RETRIES: usize = 32;

/// The condition for a write, and its effect on an existing value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verb {
    /// Always writes, and replaces the value.
    Set,
    /// Writes only if there is no item.
    Add,
    /// Replaces the value; fails if there is no item.
    Replace,
    /// Puts the bytes after the value of the item; fails if there is no item. The item keeps flags
    /// and expiry.
    Append,
    /// Puts the bytes before the value of the item; fails if there is no item. The item keeps flags
    /// and expiry.
    Prepend,
}

/// A write.
///
/// ```
/// use dunlin_store::{Seconds, Verb, Version, Write};
/// let write = Write { flags: 7, expiry: Some(Seconds(60)), ..Write::set(b"value") };
/// let only_if_unchanged = Write { if_version: Some(Version(12)), ..write };
/// assert_eq!(only_if_unchanged.verb, Verb::Set);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Write<'a> {
    /// The condition for the write, and its effect on an existing value.
    pub verb: Verb,
    /// The value, of up to [`MAX_VALUE`] bytes.
    pub value: &'a [u8],
    /// Flags, which the table only keeps.
    pub flags: u32,
    /// When the item expires; `None`: never. Second 0 counts as second 1.
    pub expiry: Option<Seconds>,
    /// If given, the write happens only if the item has this version: compare-and-set.
    pub if_version: Option<Version>,
    /// With this, a write whose `if_version` is older than the item's version still happens, and
    /// marks the item as stale.
    pub stale_if_older: bool,
    /// The version that the item gets; `None`: the table's next one.
    pub version: Option<Version>,
}

/// The reason why a write did not happen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WriteError {
    /// The verb is [`Verb::Add`], and there is an item.
    Present,
    /// There is no item, and the write requires one.
    Absent,
    /// The item has another version.
    VersionDiffers,
    /// The value would be longer than [`MAX_VALUE`] or, in a cache, than a quarter of the memory.
    TooLong,
    /// All memory is used. This never happens in cache mode.
    NoMemory,
}

/// The reason why nothing was deleted or changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DeleteError {
    /// There is no item.
    Absent,
    /// The item has another version.
    VersionDiffers,
}

impl Verb {
    /// Whether the write adds bytes to the value of an item.
    #[must_use]
    pub const fn joins(self) -> bool {
        matches!(self, Self::Append | Self::Prepend)
    }
}

impl<'a> Write<'a> {
    /// A write that sets a value, without flags or expiry.
    #[must_use]
    pub const fn set(value: &'a [u8]) -> Self {
        Self {
            verb: Verb::Set,
            value,
            flags: 0,
            expiry: None,
            if_version: None,
            stale_if_older: false,
            version: None,
        }
    }
}

impl Table {
    /// Writes an item and returns its version.
    ///
    /// # Errors
    /// [`WriteError`]; the item is unchanged.
    #[inline]
    pub fn write(
        &mut self,
        key: &Key<'_>,
        write: &Write<'_>,
        now: Seconds,
    ) -> Result<Version, WriteError> {
        match self.rewrite(key, write, now) {
            Some(version) => Ok(version),
            None => self.write_otherwise(key, write, now),
        }
    }

    #[inline(never)]
    fn write_otherwise(
        &mut self,
        key: &Key<'_>,
        write: &Write<'_>,
        now: Seconds,
    ) -> Result<Version, WriteError> {
        let (full, own) = (WriteError::NoMemory, Writing::default());
        self.retry(full, own, now, |table| table.try_write(key, write, now))
    }

    /// Runs `attempt`. While it fails with `full`, for lack of memory, frees some and runs it
    /// again. This frees memory of expired and flushed items, and of writes, except `own`, whose
    /// callers may have vanished. Each attempt must look its item up, because items move when
    /// others are removed.
    pub(super) fn retry<T, E: PartialEq>(
        &mut self,
        full: E,
        own: Writing,
        now: Seconds,
        mut attempt: impl FnMut(&mut Self) -> Result<T, E>,
    ) -> Result<T, E> {
        let mut result = attempt(self);
        let mut lines = MOST_RESCUE;
        for number in 0..MOST_RETRIES {
            let is_full = result.as_ref().err() == Some(&full);
            if !is_full || !self.rescue(number, own, &mut lines, now) {
                break;
            }
            result = attempt(self);
        }
        result
    }

    /// Frees memory, and returns false if there is none to free. If the first sweep does not free
    /// enough, abandoned writes come before further sweeps: otherwise, a few items that expire
    /// would let these writes keep their pages forever.
    fn rescue(&mut self, number: usize, own: Writing, lines: &mut u64, now: Seconds) -> bool {
        (number > 0 && self.give_up_idle(own, now))
            || self.sweep_for_memory(lines, now)
            || self.give_up_idle(own, now)
    }

    /// Sweeps until an item is removed, but at most about `lines` cache lines. False: none was
    /// removed; if lines are left, no item has expired.
    fn sweep_for_memory(&mut self, lines: &mut u64, now: Seconds) -> bool {
        while *lines > 0 {
            let swept = self.sweep(RESCUE.min(*lines), now);
            *lines = lines.saturating_sub(swept.lines);
            if swept.removed > 0 {
                return true;
            }
            if swept.lines == 0 {
                return false;
            }
        }
        false
    }

    pub(super) fn try_write(
        &mut self,
        key: &Key<'_>,
        write: &Write<'_>,
        now: Seconds,
    ) -> Result<Version, WriteError> {
        if write.value.len() > MAX_VALUE {
            return Err(WriteError::TooLong);
        }
        let found = self.find(key, now);
        let marks = match judge(found.as_ref(), write) {
            Err(WriteError::VersionDiffers) if self.has(Mutant::LostCompare) => 0,
            judged => judged?,
        };
        let header = Header {
            version: 0,
            expiry: expiry_word(write.expiry),
            last_access: now.0,
            flags: write.flags,
            key_len: u8::try_from(key.bytes().len()).expect("a key has at most 250 bytes"),
            value_len: 0,
            marks,
            is_wide: false,
        };
        let version = match write.verb.joins() {
            true => self.join(key, write, header, now)?,
            false => self.put(key, found, header, (write.value, write.version), now)?,
        };
        self.stats.writes += 1;
        Ok(version)
    }

    /// Deletes an item, if it has the given version. With `None`, deletes any version.
    ///
    /// # Errors
    /// [`DeleteError`]; the item, if there is one, is unchanged.
    pub fn delete(
        &mut self,
        key: &Key<'_>,
        if_version: Option<Version>,
        now: Seconds,
    ) -> Result<(), DeleteError> {
        let found = self.find_version(key, if_version, now)?;
        self.remove(key.hash(), &found, None);
        Ok(())
    }

    /// Marks an item as stale, if it has the given version. With `None`, marks any version. The
    /// item gets a new version, and another client may claim it.
    ///
    /// # Errors
    /// [`DeleteError`]; the item, if there is one, is unchanged.
    pub fn invalidate(
        &mut self,
        key: &Key<'_>,
        if_version: Option<Version>,
        now: Seconds,
    ) -> Result<Version, DeleteError> {
        let found = self.find_version(key, if_version, now)?;
        let version = self.take_version();
        let header = Header {
            version,
            marks: found.header.marks & !mark::CLAIMED | mark::STALE,
            ..found.header
        };
        self.change(&found, header);
        Ok(Version(version))
    }

    /// Claims the right to write a new value of an item. True for the first call after the item was
    /// written or invalidated; false for later calls, and if there is no item.
    pub fn claim(&mut self, key: &Key<'_>, now: Seconds) -> bool {
        let unclaimed = |found: &Found| found.header.marks & mark::CLAIMED == 0;
        let Some(found) = self.find(key, now).filter(unclaimed) else {
            return false;
        };
        let marks = found.header.marks | mark::CLAIMED;
        let header = Header {
            marks,
            ..found.header
        };
        self.change(&found, header);
        true
    }

    /// Changes when an item expires. It keeps its version.
    ///
    /// # Errors
    /// [`WriteError::Absent`], or an error of [`Self::widen`]. After a [`Self::widen`] without
    /// error, this does not fail.
    pub fn touch(
        &mut self,
        key: &Key<'_>,
        expiry: Option<Seconds>,
        now: Seconds,
    ) -> Result<(), WriteError> {
        if expiry.is_some() {
            self.widen(key, now)?;
        }
        let found = self.find(key, now).ok_or(WriteError::Absent)?;
        let header = Header {
            expiry: expiry_word(expiry),
            last_access: now.0,
            ..found.header
        };
        self.change(&found, header);
        self.note_expiry(key, &header);
        Ok(())
    }

    /// Makes room for an item's expiry. An item with neither expiry nor flags has no room for them,
    /// and moves. Callers that must answer before a [`Self::touch`] call this first, to be sure
    /// that it will succeed.
    ///
    /// # Errors
    /// [`WriteError::Absent`]; [`WriteError::NoMemory`] and [`WriteError::TooLong`] as for a write;
    /// the item is unchanged.
    pub fn widen(&mut self, key: &Key<'_>, now: Seconds) -> Result<(), WriteError> {
        let (full, own) = (WriteError::NoMemory, Writing::default());
        self.retry(full, own, now, |table| table.try_widen(key, now))
    }

    fn try_widen(&mut self, key: &Key<'_>, now: Seconds) -> Result<(), WriteError> {
        let found = self.find(key, now).ok_or(WriteError::Absent)?;
        if found.header.is_wide {
            return Ok(());
        }
        let mut value = std::mem::take(&mut self.joined);
        value.clear();
        self.item(&found).value().append_to(&mut value);
        let header = Header {
            is_wide: true,
            ..found.header
        };
        let version = Some(Version(header.version));
        let moved = self.put(key, Some(found), header, (&value, version), now);
        self.joined = value;
        moved.map(|_| ())
    }

    /// Gives an item the version that the caller has chosen. False if there is no item.
    pub fn renumber(&mut self, key: &Key<'_>, version: Version, now: Seconds) -> bool {
        let Some(found) = self.find(key, now) else {
            return false;
        };
        let header = Header {
            version: version.0,
            ..found.header
        };
        self.change(&found, header);
        true
    }

    /// Finds an item, if it has the given version. With `None`, finds any version.
    fn find_version(
        &mut self,
        key: &Key<'_>,
        if_version: Option<Version>,
        now: Seconds,
    ) -> Result<Found, DeleteError> {
        let found = self.find(key, now).ok_or(DeleteError::Absent)?;
        if if_version.is_some_and(|version| version.0 != found.header.version) {
            return Err(DeleteError::VersionDiffers);
        }
        Ok(found)
    }

    /// Replaces an item's header, except for its lengths and its width.
    pub(super) fn change(&mut self, found: &Found, header: Header) {
        debug_assert!(header.is_wide || !header.needs_width());
        let entry = found.entry.expiring(header.expiry != 0);
        if entry != found.entry {
            self.index.set_entry(&mut self.memory, found.slot, entry);
        }
        header.write(&mut self.memory, found.entry.place());
    }
}

/// Decides whether a write happens, and which marks the item then has.
pub(super) fn judge(found: Option<&Found>, write: &Write<'_>) -> Result<u8, WriteError> {
    let is_conditional = write.if_version.is_some();
    let needs_item = is_conditional || !matches!(write.verb, Verb::Set | Verb::Add);
    match found {
        None if needs_item => return Err(WriteError::Absent),
        None => return Ok(0),
        Some(_) if write.verb == Verb::Add => return Err(WriteError::Present),
        Some(_) => {}
    }
    let (Some(found), Some(version)) = (found, write.if_version) else {
        return Ok(0);
    };
    if version.0 == found.header.version {
        return Ok(0);
    }
    if write.stale_if_older && version.0 < found.header.version {
        return Ok(mark::STALE);
    }
    Err(WriteError::VersionDiffers)
}

/// The word that stores an expiry.
pub(super) fn expiry_word(expiry: Option<Seconds>) -> u32 {
    expiry.map_or(0, |at| at.0.max(1))
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Present => "there is an item with this key",
            Self::Absent => "there is no item with this key",
            Self::VersionDiffers => "the item has another version",
            Self::TooLong => "the value is too long",
            Self::NoMemory => "all memory is used",
        })
    }
}

impl std::error::Error for WriteError {}

impl fmt::Display for DeleteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Absent => "there is no item with this key",
            Self::VersionDiffers => "the item has another version",
        })
    }
}

impl std::error::Error for DeleteError {}
