//! Metadata of requests (rule T2): keys with values, from the client to the server, for tracing,
//! tenants and the like. A [`Meta`] is written, a [`Metadata`] read. Both hold the entries as they
//! are sent: length of the key (1 byte), length of the value (2), key, value.
//!
//! Invariant: the entries of either are valid, since [`Meta::add`] and [`check`] refuse others.

use std::fmt;
use std::ops::Range;

use crate::codec::DecodeError;
use crate::context::Context;
use crate::spans;
use crate::trace::{self, TraceParent};

/// Most entries of a request.
pub const MAX_KEYS: usize = 32;

/// Most bytes of all entries of a request, with 3 for each entry.
pub const MAX_ENTRIES: usize = 1016;

/// Most bytes of a key.
pub const MAX_KEY: usize = 64;

/// The key whose value is a [`TraceParent`], in binary.
pub(crate) const TRACE: &str = "traceparent";

/// Keys with this prefix are Dunlin's own.
const RESERVED: &str = "dunlin.";

/// Bytes of an entry before its key.
const LENGTHS: usize = 3;

/// Bytes that the first entry makes room for: two short entries and a trace, without growing again.
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
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Meta(Vec<u8>);

/// The metadata of a request that has arrived.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Metadata<'a>(&'a [u8]);

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

impl Meta {
    /// Metadata without an entry.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Adds an entry. The value of the key `traceparent` is the text of a [`TraceParent`].
    ///
    /// # Errors
    /// See [`MetaError`].
    pub fn add(&mut self, key: &str, value: &str) -> Result<(), MetaError> {
        if key == TRACE {
            let trace = value.parse().map_err(|_| MetaError::Trace)?;
            if self.view().trace_parent().is_some() {
                return Err(MetaError::Twice);
            }
            self.room_for_trace()?;
            self.put(key, TraceParent::bytes(&trace));
            return Ok(());
        }
        if !is_key(key.as_bytes()) {
            return Err(MetaError::Key);
        }
        if key.starts_with(RESERVED) {
            return Err(MetaError::Reserved);
        }
        let (mut entries, mut has_trace, mut is_twice) = (0, false, false);
        for (other, _) in self.view().entries() {
            entries += 1;
            has_trace |= other == TRACE.as_bytes();
            is_twice |= other == key.as_bytes();
        }
        let (count, room) = match has_trace {
            true => (MAX_KEYS, MAX_ENTRIES),
            false => (MAX_KEYS - 1, MAX_ENTRIES - TRACE_ENTRY),
        };
        if self.0.len() + LENGTHS + key.len() + value.len() > room {
            return Err(MetaError::TooLong);
        }
        if is_twice {
            return Err(MetaError::Twice);
        }
        if entries >= count {
            return Err(MetaError::TooMany);
        }
        self.put(key, value.as_bytes());
        Ok(())
    }

    /// Adds the trace of the request that `context` belongs to. Adds none if there is one already,
    /// or if these metadata have arrived, without a trace, and leave no room for one. With the
    /// feature `tracing`, the trace continues with the request's own span, if that is entered.
    pub fn under(&mut self, context: &Context<'_>) {
        if let Some(trace) = trace_under(context) {
            self.add_trace(trace);
        }
    }

    /// Adds a trace, or replaces the one that is there. If metadata that have arrived without a
    /// trace fill its room, there is none.
    pub fn set_trace(&mut self, trace: TraceParent) {
        match self.trace_range() {
            Some(range) => self.0[range].copy_from_slice(trace.bytes()),
            None => self.add_trace(trace),
        }
    }

    fn add_trace(&mut self, trace: TraceParent) {
        if self.view().trace_parent().is_none() && self.room_for_trace().is_ok() {
            self.put(TRACE, trace.bytes());
        }
    }

    /// Where the value of the trace is.
    fn trace_range(&self) -> Option<Range<usize>> {
        let mut end = 0;
        let is_trace = |(key, value): (&[u8], &[u8])| {
            end += LENGTHS + key.len() + value.len();
            (key == TRACE.as_bytes()).then_some(end - value.len()..end)
        };
        self.view().entries().find_map(is_trace)
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Removes all entries, and keeps the memory.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// The metadata as the server will read them.
    pub fn view(&self) -> Metadata<'_> {
        Metadata(&self.0)
    }

    #[inline]
    pub(crate) fn entries(&self) -> &[u8] {
        &self.0
    }

    /// Checks that there is room for a trace. Metadata that have arrived may lack it, because
    /// another library may have written them.
    fn room_for_trace(&self) -> Result<(), MetaError> {
        if self.0.len() + TRACE_ENTRY > MAX_ENTRIES {
            return Err(MetaError::TooLong);
        }
        match self.view().entries().count() < MAX_KEYS {
            true => Ok(()),
            false => Err(MetaError::TooMany),
        }
    }

    /// Appends an entry that is valid, and that there is room for.
    fn put(&mut self, key: &str, value: &[u8]) {
        let key_len = u8::try_from(key.len()).expect("a key is short");
        let value_len = u16::try_from(value.len()).expect("the room is checked");
        let [low, high] = value_len.to_le_bytes();
        let needed = LENGTHS + key.len() + value.len();
        if self.0.capacity() - self.0.len() < needed {
            self.0.reserve(needed.max(ROOM));
        }
        self.0.extend_from_slice(&[key_len, low, high]);
        self.0.extend_from_slice(key.as_bytes());
        self.0.extend_from_slice(value);
    }
}

impl<'a> Metadata<'a> {
    /// The value of this key, the first if a client has sent several. `None` for `traceparent`,
    /// whose value is binary: see [`Self::trace_parent`].
    pub fn get(&self, key: &str) -> Option<&'a str> {
        let found = self.entries().find(|(other, _)| *other == key.as_bytes());
        found.and_then(|(key, value)| text(key, value))
    }

    /// The trace that the request belongs to.
    pub fn trace_parent(&self) -> Option<TraceParent> {
        let found = self.entries().find(|(key, _)| *key == TRACE.as_bytes())?.1;
        found.try_into().ok().map(TraceParent::from_bytes)
    }

    /// All entries but `traceparent`, in the client's order.
    pub fn iter(&self) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        self.entries()
            .filter_map(|(key, value)| Some((std::str::from_utf8(key).ok()?, text(key, value)?)))
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The metadata with memory of their own, to pass them on or to keep them.
    pub fn to_owned(&self) -> Meta {
        Meta(self.0.to_vec())
    }

    fn entries(self) -> impl Iterator<Item = Entry<'a>> {
        let mut left = self.0;
        std::iter::from_fn(move || next(&mut left).ok().flatten())
    }
}

/// The trace for a call that is made to serve the request of `context`.
pub(crate) fn trace_under(context: &Context<'_>) -> Option<TraceParent> {
    spans::current_or(context.metadata().trace_parent())
}

/// Checks entries that have arrived.
pub(crate) fn check(entries: &[u8]) -> Result<Metadata<'_>, DecodeError> {
    let mut left = entries;
    let mut count = 0;
    while let Some((key, value)) = next(&mut left)? {
        count += 1;
        let is_value = match key == TRACE.as_bytes() {
            true => value.len() == trace::LEN,
            false => is_text(value),
        };
        if !is_value || !is_key(key) || count > MAX_KEYS {
            return Err(DecodeError::Malformed);
        }
    }
    Ok(Metadata(entries))
}

/// The key and the value of an entry.
type Entry<'a> = (&'a [u8], &'a [u8]);

/// Takes the next entry, without a check of its key and its value; `None` at the end.
#[inline]
fn next<'a>(left: &mut &'a [u8]) -> Result<Option<Entry<'a>>, DecodeError> {
    let Some((lengths, rest)) = left.split_first_chunk::<LENGTHS>() else {
        let is_end = left.is_empty();
        return is_end.then_some(None).ok_or(DecodeError::Malformed);
    };
    let [key_len, low, high] = *lengths;
    let value_len = usize::from(u16::from_le_bytes([low, high]));
    let key = rest.split_at_checked(key_len.into());
    let (key, rest) = key.ok_or(DecodeError::Malformed)?;
    let value = rest.split_at_checked(value_len);
    let (value, rest) = value.ok_or(DecodeError::Malformed)?;
    *left = rest;
    Ok(Some((key, value)))
}

fn text<'a>(key: &[u8], value: &'a [u8]) -> Option<&'a str> {
    let value = std::str::from_utf8(value).ok();
    value.filter(|_| key != TRACE.as_bytes())
}

/// Whether a value is UTF-8. Most values are ASCII, which is found out sooner.
#[inline]
fn is_text(value: &[u8]) -> bool {
    value.is_ascii() || std::str::from_utf8(value).is_ok()
}

#[inline]
fn is_key(key: &[u8]) -> bool {
    let fits = |byte: &u8| IN_KEYS[usize::from(*byte)];
    (1..=MAX_KEY).contains(&key.len()) && key.iter().all(fits)
}

/// Whether a key may contain a byte. A look-up is cheaper than five comparisons.
const IN_KEYS: [bool; 256] = {
    let mut all = [false; 256];
    let fit = b"abcdefghijklmnopqrstuvwxyz0123456789._-";
    let mut at = 0;
    while at < fit.len() {
        all[fit[at] as usize] = true;
        at += 1;
    }
    all
};

impl fmt::Debug for Meta {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.view().fmt(f)
    }
}

impl fmt::Debug for Metadata<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let trace = self.trace_parent().map(|trace| (TRACE, trace.to_string()));
        f.debug_map().entries(self.iter()).entries(trace).finish()
    }
}

impl fmt::Display for MetaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Key => "a key of metadata has 1 to 64 characters of a-z, 0-9, '.', '_' and '-'",
            Self::Reserved => "keys of metadata that begin with `dunlin.` are reserved",
            Self::Twice => "a key of metadata stands twice",
            Self::TooMany => "a request has at most 32 keys of metadata, traceparent included",
            Self::TooLong => {
                "the metadata of a request have at most 1016 bytes, 40 of them for \
                              traceparent"
            }
            Self::Trace => "the value of traceparent has not the form of W3C's Trace Context",
            Self::Type => "a request type above 32767 has no bit for metadata",
        })
    }
}

impl std::error::Error for MetaError {}

#[cfg(test)]
mod tests;
