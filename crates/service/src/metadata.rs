//! Metadata that have arrived, and the check on their arrival.

use std::fmt;

use dunlin_msgbuf::Texts;

use crate::meta::{LENGTHS, MAX_KEY, MAX_KEYS, Meta, TRACE};
use crate::short;
use crate::trace::{self, TraceParent};

/// The metadata of a request that has arrived.
#[derive(Clone, Copy, Default)]
pub struct Metadata<'a>(Texts<'a>);

/// The key and the value of an entry.
type KeyAndValue<'a> = (Texts<'a>, Texts<'a>);

impl<'a> Metadata<'a> {
    /// The metadata with these entries, which are valid.
    #[inline]
    pub(crate) fn of(entries: &'a [u8]) -> Self {
        Self(Texts::new(entries))
    }

    /// The value of this key, the first if a client has sent several. `None` for `traceparent`,
    /// whose value is binary: see [`Self::trace_parent`].
    #[inline]
    pub fn get(&self, key: &str) -> Option<&'a str> {
        let key = key.as_bytes();
        let mut left = self.0;
        while let Some((other, value)) = next(&mut left) {
            if short::same(other.bytes(), key) {
                return text(key, value);
            }
        }
        None
    }

    /// The trace that the request belongs to.
    pub fn trace_parent(&self) -> Option<TraceParent> {
        let mut entries = self.entries();
        let (_, value) = entries.find(|(key, _)| is_trace(key))?;
        value.try_into().ok().map(TraceParent::from_bytes)
    }

    /// All entries but `traceparent`, in the client's order.
    pub fn iter(&self) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        self.texts()
            .filter_map(|(key, value)| Some((key.text()?, text(key.bytes(), value)?)))
    }

    /// Whether there is no entry.
    pub const fn is_empty(&self) -> bool {
        self.0.bytes().is_empty()
    }

    /// The metadata with memory of their own, to pass them on or to keep them.
    pub fn to_owned(&self) -> Meta {
        Meta::of(*self)
    }

    /// The entries as they are sent.
    pub(crate) const fn bytes(self) -> &'a [u8] {
        self.0.bytes()
    }

    /// The entries with the bytes of their values.
    pub(crate) fn entries(self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        self.texts()
            .map(|(key, value)| (key.bytes(), value.bytes()))
    }

    fn texts(self) -> impl Iterator<Item = KeyAndValue<'a>> {
        let mut left = self.0;
        std::iter::from_fn(move || next(&mut left))
    }
}

/// Splits bytes that have arrived into metadata, which are the first `len` bytes, and the message.
/// `None` if the metadata are not valid.
#[inline]
pub(crate) fn split(bytes: &[u8], len: usize) -> Option<(Metadata<'_>, &[u8])> {
    let (entries, message) = bytes.split_at_checked(len)?;
    let texts = Texts::new(entries);
    let (mut left, mut count) = (bytes, 0);
    while left.len() > message.len() {
        let len = match usual_len(left, texts.are_ascii()) {
            Some(len) => len,
            None => valid_len(left, texts.are_ascii())?,
        };
        left = left.get(len..)?;
        count += 1;
    }
    // The last entry may reach into the message.
    let is_valid = left.len() == message.len() && count <= MAX_KEYS;
    is_valid.then_some((Metadata(texts), message))
}

/// The length of the entry with which these bytes begin, if its key is of one to eight letters, as
/// most are, and if it is cheap to see that its value is ASCII.
#[inline]
fn usual_len(bytes: &[u8], are_ascii: bool) -> Option<usize> {
    let [a, b, c, key @ ..] = bytes.first_chunk::<{ LENGTHS + 8 }>()?;
    let (key_len, value_len) = lengths_of([*a, *b, *c, key[0]]);
    if !short::begin_with_letters(*key, key_len) {
        return None;
    }
    let len = LENGTHS + key_len + value_len;
    let is_usual = are_ascii || {
        let value = bytes.get(LENGTHS + key_len..len)?;
        Texts::new(value).are_ascii()
    };
    is_usual.then_some(len)
}

/// The length of the entry with which these bytes begin, if it is valid.
#[inline(never)]
fn valid_len(bytes: &[u8], are_ascii: bool) -> Option<usize> {
    let (key_len, value_len) = lengths_of(*bytes.first_chunk()?);
    let len = LENGTHS + key_len + value_len;
    let (key, value) = bytes.get(LENGTHS..len)?.split_at(key_len);
    let is_valid = match is_trace(key) {
        true => value.len() == trace::LEN,
        false => is_key(key) && (are_ascii || Texts::new(value).text().is_some()),
    };
    is_valid.then_some(len)
}

/// Takes the next entry out of `left`, whose entries are valid; `None` at the end.
#[inline]
fn next<'a>(left: &mut Texts<'a>) -> Option<KeyAndValue<'a>> {
    let (key_len, value_len) = lengths_of(*left.bytes().first_chunk()?);
    let (entry, rest) = left.split_at_checked(LENGTHS + key_len + value_len)?;
    *left = rest;
    entry.split_at_checked(LENGTHS)?.1.split_at_checked(key_len)
}

/// The lengths of the key and of the value of an entry that begins with these bytes. The last of
/// the bytes is the first one of the key, which every entry has.
#[inline]
const fn lengths_of(bytes: [u8; LENGTHS + 1]) -> (usize, usize) {
    let lengths = u32::from_le_bytes(bytes) as usize;
    (lengths & 0xFF, lengths >> 8 & 0xFFFF)
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
fn text<'a>(key: &[u8], value: Texts<'a>) -> Option<&'a str> {
    (!is_trace(key)).then(|| value.text()).flatten()
}

impl PartialEq for Metadata<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.bytes() == other.bytes()
    }
}

impl Eq for Metadata<'_> {}

impl fmt::Debug for Metadata<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let trace = self.trace_parent().map(|trace| (TRACE, trace.to_string()));
        f.debug_map().entries(self.iter()).entries(trace).finish()
    }
}

#[cfg(test)]
mod tests;
