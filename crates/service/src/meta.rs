//! Metadata of requests (rule T2): keys with values, from the client to the server, such as traces
//! and tenants. A [`Meta`] is written, a [`Metadata`] read. Both hold the entries as they
//! are sent: length of the key (1 byte), length of the value (2), key, value.
//!
//! `metadata.rs` owns [`Metadata`].
//!
//! Invariant: the entries of either are valid, since [`Meta::add`] and
//! `metadata::split` refuse others.

use std::fmt;
use std::ops::Range;

use crate::metadata::{Metadata, is_key, is_trace};
use crate::short;
use crate::trace::{self, TraceParent};

/// The most entries of a request.
pub const MAX_KEYS: usize = 32;

/// The most bytes of all entries of a request, with 3 for each entry.
pub const MAX_ENTRIES: usize = 1016;

/// The most bytes of a key.
pub const MAX_KEY: usize = 64;

/// The key whose value is a [`TraceParent`], in binary.
pub(crate) const TRACE: &str = "traceparent";

/// Keys with this prefix are Dunlin's own.
const RESERVED: &str = "dunlin.";

/// Bytes of an entry before its key.
pub(crate) const LENGTHS: usize = 3;

/// Bytes that the first entry makes room for: two short entries and a trace.
const ROOM: usize = 96;

/// Bytes of the entry of a trace.
const TRACE_ENTRY: usize = LENGTHS + TRACE.len() + trace::LEN;

/// Metadata for a request. [`Self::add`] keeps room for a [`TraceParent`]: the other entries are at
/// most [`MAX_KEYS`]` - 1`, and have at most [`MAX_ENTRIES`]` - 40` bytes. Metadata that have
/// arrived ([`Metadata::to_owned`]) may lack that room.
///
/// ```
/// use dunlin_service::{Meta, MetaError};
///
/// let mut meta = Meta::default();
/// meta.add("tenant", "a")?;
/// assert_eq!(meta.view().get("tenant"), Some("a"));
/// assert_eq!(meta.add("Tenant", "a"), Err(MetaError::Key));
/// # Ok::<(), MetaError>(())
/// ```
#[derive(Default)]
pub struct Meta {
    /// The entries, and room for more. No byte is written twice when the memory is used again.
    memory: Vec<u8>,
    /// The bytes of the entries.
    len: usize,
    keys: Keys,
}

/// Facts about the keys of entries, so that a further entry is checked without reading them.
#[derive(Clone, Copy, Default)]
struct Keys {
    count: u32,
    has_trace: bool,
    /// The [`mark`] of each key. A key whose mark is not here is new.
    marks: u64,
}

/// A key that an entry may have. The check of a literal takes no instructions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Key<'a>(&'a str);

/// Why metadata cannot be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MetaError {
    /// The key has no characters or more than 64, or one that is not in `a-z 0-9 . _ -`.
    Key,
    /// The key begins with `dunlin.`, which is reserved.
    Reserved,
    /// The request has an entry with this key.
    Twice,
    /// There are too many entries ([`MAX_KEYS`]).
    TooMany,
    /// The entries are too long ([`MAX_ENTRIES`]).
    TooLong,
    /// The value of `traceparent` is not in the form that W3C's Trace Context gives it.
    Trace,
    /// The request type is above 32767, so it has no bit for metadata.
    Type,
}

impl<'a> Key<'a> {
    /// Checks a key.
    ///
    /// # Errors
    /// [`MetaError::Key`] or [`MetaError::Reserved`].
    #[inline(always)]
    pub fn new(key: &'a str) -> Result<Self, MetaError> {
        match (is_key(key.as_bytes()), key.starts_with(RESERVED)) {
            (false, _) => Err(MetaError::Key),
            (true, true) => Err(MetaError::Reserved),
            (true, false) => Ok(Self(key)),
        }
    }

    /// The key's text.
    pub const fn text(&self) -> &'a str {
        self.0
    }
}

impl Meta {
    /// Metadata without an entry.
    pub const fn new() -> Self {
        Self {
            memory: Vec::new(),
            len: 0,
            keys: Keys::NONE,
        }
    }

    /// Metadata with a copy of metadata that have arrived.
    pub(crate) fn of(arrived: Metadata<'_>) -> Self {
        let mut meta = Self::new();
        for (key, _) in arrived.entries() {
            meta.keys.on_key(key);
        }
        meta.memory.extend_from_slice(arrived.bytes());
        meta.len = meta.memory.len();
        meta
    }

    /// Adds an entry. The value of the key `traceparent` is the text of a [`TraceParent`].
    ///
    /// # Errors
    /// See [`MetaError`].
    #[inline(always)]
    pub fn add(&mut self, key: &str, value: &str) -> Result<(), MetaError> {
        self.add_at(Key::new(key)?, value)
    }

    /// Like [`Self::add`], for a key that is checked already. It is inlined, so that work which
    /// depends only on a literal key takes no instructions.
    ///
    /// # Errors
    /// See [`MetaError`].
    #[inline(always)]
    pub fn add_at(&mut self, Key(key): Key<'_>, value: &str) -> Result<(), MetaError> {
        if is_trace(key.as_bytes()) {
            return self.add_text_of_trace(value);
        }
        let (count, room) = match self.keys.has_trace {
            true => (MAX_KEYS, MAX_ENTRIES),
            false => (MAX_KEYS - 1, MAX_ENTRIES - TRACE_ENTRY),
        };
        if self.len + LENGTHS + key.len() + value.len() > room {
            return Err(MetaError::TooLong);
        }
        if self.keys.may_have(key.as_bytes()) && self.has(key) {
            return Err(MetaError::Twice);
        }
        if self.keys.count() >= count {
            return Err(MetaError::TooMany);
        }
        self.put(key, value.as_bytes());
        Ok(())
    }

    /// Whether there is an entry with this key.
    #[cold]
    fn has(&self, key: &str) -> bool {
        let mut entries = self.view().entries();
        entries.any(|(other, _)| short::same(other, key.as_bytes()))
    }

    #[cold]
    fn add_text_of_trace(&mut self, text: &str) -> Result<(), MetaError> {
        let trace = text.parse().map_err(|_| MetaError::Trace)?;
        if self.keys.has_trace {
            return Err(MetaError::Twice);
        }
        self.room_for_trace()?;
        self.put(TRACE, TraceParent::bytes(&trace));
        Ok(())
    }

    /// Adds a trace, or replaces the one that is there. If arrived metadata have no trace and no
    /// room for a trace, this adds nothing.
    pub fn set_trace(&mut self, trace: TraceParent) {
        match self.trace_range() {
            Some(range) => self.memory[range].copy_from_slice(trace.bytes()),
            None => self.add_trace(trace),
        }
    }

    /// Adds a trace, unless there is one already. If arrived metadata have no room for a trace,
    /// this adds nothing.
    pub(crate) fn add_trace(&mut self, trace: TraceParent) {
        if !self.keys.has_trace && self.room_for_trace().is_ok() {
            self.put(TRACE, trace.bytes());
        }
    }

    /// Where the value of the trace is.
    fn trace_range(&self) -> Option<Range<usize>> {
        let mut end = 0;
        let place = |(key, value): (&[u8], &[u8])| {
            end += LENGTHS + key.len() + value.len();
            is_trace(key).then_some(end - value.len()..end)
        };
        self.view().entries().find_map(place)
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Removes all entries, and keeps the memory.
    #[inline]
    pub fn clear(&mut self) {
        self.len = 0;
        self.keys = Keys::NONE;
    }

    /// The metadata as the server will read them.
    pub fn view(&self) -> Metadata<'_> {
        Metadata::of(self.entries())
    }

    #[inline]
    pub(crate) fn entries(&self) -> &[u8] {
        &self.memory[..self.len]
    }

    /// Checks that there is room for a trace. Metadata that have arrived may lack it, because
    /// another library may have written them.
    fn room_for_trace(&self) -> Result<(), MetaError> {
        if self.len + TRACE_ENTRY > MAX_ENTRIES {
            return Err(MetaError::TooLong);
        }
        match self.keys.count() < MAX_KEYS {
            true => Ok(()),
            false => Err(MetaError::TooMany),
        }
    }

    /// Appends an entry that is valid, and that there is room for.
    #[inline(always)]
    fn put(&mut self, key: &str, value: &[u8]) {
        let key_len = u8::try_from(key.len()).expect("a key is short");
        let value_len = u16::try_from(value.len()).expect("the room is checked");
        let [low, high] = value_len.to_le_bytes();
        let end = self.len + LENGTHS + key.len() + value.len();
        if self.memory.len() < end {
            self.grow(end);
        }
        let entry = &mut self.memory[self.len..end];
        let (lengths, texts) = entry.split_at_mut(LENGTHS);
        lengths.copy_from_slice(&[key_len, low, high]);
        let (key_place, value_place) = texts.split_at_mut(key.len());
        short::copy(key.as_bytes(), key_place);
        short::copy(value, value_place);
        self.len = end;
        self.keys.on_key(key.as_bytes());
    }

    /// Makes room for this number of bytes.
    #[cold]
    fn grow(&mut self, end: usize) {
        let len = end.max(2 * self.memory.len()).max(ROOM);
        self.memory.resize(len, 0);
    }
}

impl Keys {
    const NONE: Self = Self {
        count: 0,
        has_trace: false,
        marks: 0,
    };

    #[inline]
    const fn count(&self) -> usize {
        self.count as usize
    }

    #[inline(always)]
    fn on_key(&mut self, key: &[u8]) {
        self.count += 1;
        self.has_trace |= is_trace(key);
        self.marks |= mark(key);
    }

    /// False if no entry has this key.
    #[inline]
    const fn may_have(&self, key: &[u8]) -> bool {
        self.marks & mark(key) != 0
    }
}

/// One bit for a key. Few of the keys that a program uses together share a bit.
#[inline]
const fn mark(key: &[u8]) -> u64 {
    let ([first, ..], [.., last]) = (key, key) else {
        return 0;
    };
    let number = key.len() ^ (*first as usize) << 1 ^ (*last as usize) << 2;
    1 << (number % 64)
}

impl Clone for Meta {
    fn clone(&self) -> Self {
        let mut meta = Self::new();
        meta.clone_from(self);
        meta
    }

    fn clone_from(&mut self, source: &Self) {
        (self.len, self.keys) = (source.len, source.keys);
        if self.memory.len() < self.len {
            self.grow(self.len);
        }
        self.memory[..self.len].copy_from_slice(source.entries());
    }
}

impl PartialEq for Meta {
    fn eq(&self, other: &Self) -> bool {
        self.entries() == other.entries()
    }
}

impl Eq for Meta {}

impl fmt::Debug for Meta {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.view().fmt(f)
    }
}

impl fmt::Display for MetaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Key => "a key of metadata has 1 to 64 characters of a-z, 0-9, '.', '_' and '-'",
            Self::Reserved => "keys of metadata that begin with `dunlin.` are reserved",
            Self::Twice => "a key of metadata occurs twice",
            Self::TooMany => "a request has at most 32 keys of metadata, traceparent included",
            Self::TooLong => {
                "the metadata of a request have at most 1016 bytes, 40 of them for \
                              traceparent"
            }
            Self::Trace => "the value of traceparent does not have the form of W3C's Trace Context",
            Self::Type => "a request type above 32767 has no bit for metadata",
        })
    }
}

impl std::error::Error for MetaError {}

#[cfg(test)]
mod tests;
