//! Metadata that have arrived, and the check on their arrival.

use std::fmt;

use crate::codec::DecodeError;
use crate::meta::{LENGTHS, MAX_KEY, MAX_KEYS, Meta, TRACE};
use crate::short;
use crate::trace::{self, TraceParent};

/// The metadata of a request that has arrived.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Metadata<'a>(&'a [u8]);

/// The key and the value of an entry.
type KeyAndValue<'a> = (&'a [u8], &'a [u8]);

impl<'a> Metadata<'a> {
    /// The metadata with these entries, which are valid.
    #[inline]
    pub(crate) const fn of(entries: &'a [u8]) -> Self {
        Self(entries)
    }

    /// The value of this key, the first if a client has sent several. `None` for `traceparent`,
    /// whose value is binary: see [`Self::trace_parent`].
    #[inline]
    pub fn get(&self, key: &str) -> Option<&'a str> {
        let key = key.as_bytes();
        let mut left = self.0;
        while let Ok(Some((other, value))) = next(&mut left) {
            if short::same(other, key) {
                return text(key, value);
            }
        }
        None
    }

    /// The trace that the request belongs to.
    pub fn trace_parent(&self) -> Option<TraceParent> {
        let found = self.entries().find(|(key, _)| is_trace(key))?.1;
        found.try_into().ok().map(TraceParent::from_bytes)
    }

    /// All entries but `traceparent`, in the client's order.
    pub fn iter(&self) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        self.entries()
            .filter_map(|(key, value)| Some((short::text(key)?, text(key, value)?)))
    }

    /// Whether there is no entry.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The metadata with memory of their own, to pass them on or to keep them.
    pub fn to_owned(&self) -> Meta {
        Meta::of(*self)
    }

    /// The entries as they are sent.
    pub(crate) const fn bytes(self) -> &'a [u8] {
        self.0
    }

    pub(crate) fn entries(self) -> impl Iterator<Item = KeyAndValue<'a>> {
        let mut left = self.0;
        std::iter::from_fn(move || next(&mut left).ok().flatten())
    }
}

/// Checks entries that have arrived.
#[inline]
pub(crate) fn check(entries: &[u8]) -> Result<Metadata<'_>, DecodeError> {
    let mut left = entries;
    let mut count = 0;
    while let Some((key, value)) = next(&mut left)? {
        count += 1;
        let is_value = match is_trace(key) {
            true => value.len() == trace::LEN,
            false => short::text(value).is_some(),
        };
        if !is_value || !is_key(key) || count > MAX_KEYS {
            return Err(DecodeError::Malformed);
        }
    }
    Ok(Metadata(entries))
}

/// Takes the next entry, without a check of its key and its value; `None` at the end.
#[inline]
fn next<'a>(left: &mut &'a [u8]) -> Result<Option<KeyAndValue<'a>>, DecodeError> {
    // A key has a character at least.
    let Some(lengths) = left.first_chunk::<{ LENGTHS + 1 }>() else {
        let is_end = left.is_empty();
        return is_end.then_some(None).ok_or(DecodeError::Malformed);
    };
    let lengths = u32::from_le_bytes(*lengths) as usize;
    let (key_len, value_len) = (lengths & 0xFF, lengths >> 8 & 0xFFFF);
    let entry = left[LENGTHS..].split_at_checked(key_len + value_len);
    let (entry, rest) = entry.ok_or(DecodeError::Malformed)?;
    *left = rest;
    Ok(Some(entry.split_at(key_len)))
}

#[inline]
pub(crate) fn is_key(key: &[u8]) -> bool {
    (1..=MAX_KEY).contains(&key.len()) && short::fit_keys(key)
}

#[inline]
pub(crate) fn is_trace(key: &[u8]) -> bool {
    key == TRACE.as_bytes()
}

#[inline]
fn text<'a>(key: &[u8], value: &'a [u8]) -> Option<&'a str> {
    (!is_trace(key)).then(|| short::text(value)).flatten()
}

impl fmt::Debug for Metadata<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let trace = self.trace_parent().map(|trace| (TRACE, trace.to_string()));
        f.debug_map().entries(self.iter()).entries(trace).finish()
    }
}
