//! The layout of an item in memory, which is the same in both modes.
//!
//! ```text
//! word 0   version
//! word 1   last access in seconds (32), length of the key (8), marks (3), form (21)
//! word 2   expiry in seconds (32; 0: never), flags (32): only of wide items
//! word 3   stamp: only of values above a slice, whose items are all wide
//! then     key, numbers of the pages that hold the value's beginning (4 bytes each), rest of it
//! ```
//!
//! The form is the length of the value, and whether the item is wide. An item without expiry and
//! flags is narrow, so one of 16 + 32 bytes fills one cache line. Both modes align items of 64
//! bytes to cache lines, so that a get reads one line of the index and one of the item (HERD §2.1).
//!
//! Only long values of the store mode are cut into pages. [`Shape`] computes the position of each
//! part from the lengths, the width and the mode. A stamp is the number of one write of this table:
//! two reads that see the same stamp see bytes of the same write.

use crate::classes::{CHUNK, MAX_SLOT};
use crate::config::{Mode, SLICE};
use crate::index::Place;
use crate::memory::{Region, STEP};

/// Bytes of the header of a narrow item.
pub(crate) const NARROW: usize = 16;

/// Bytes of the word with expiry and flags, and of a stamp.
const WORD: usize = 8;

/// The form of the shortest value that is longer than a slice. A smaller form is twice the length,
/// plus one for a wide item.
const LONG_FORM: u64 = 2 * (SLICE as u64 + 1);

/// The most bytes of a cut value that stay with the key: the longest key and page list leave this
/// much room.
const TAIL: usize = 7600;

/// Seconds on a clock that the caller chooses; a table only compares and subtracts them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Seconds(pub u32);

/// The number of a write, by which a client recognises an item that it has read.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Version(pub u64);

/// Distinguishes the writes of long values: a table gives each stamp only once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stamp(u64);

impl Stamp {
    /// The stamp as a number, for a client that asks for more of the value later.
    #[must_use]
    pub const fn to_number(self) -> u64 {
        self.0
    }

    /// Makes a stamp from a number that a client has sent back. A number that belongs to no write
    /// is not an error; it matches no value.
    #[must_use]
    pub const fn from_number(number: u64) -> Self {
        Self(number)
    }
}

/// Marks of an item.
pub(crate) mod mark {
    /// A client has read the item since it was written.
    pub(crate) const READ: u8 = 1;
    /// The item's writer has marked it as out of date.
    pub(crate) const STALE: u8 = 2;
    /// A client is about to write a new value.
    pub(crate) const CLAIMED: u8 = 4;
}

/// All of an item except its key and value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Header {
    pub(crate) version: u64,
    /// 0: never.
    pub(crate) expiry: u32,
    pub(crate) last_access: u32,
    pub(crate) flags: u32,
    pub(crate) key_len: u8,
    pub(crate) value_len: u32,
    pub(crate) marks: u8,
    /// Whether it has a word for expiry and flags, which may be 0.
    pub(crate) is_wide: bool,
}

/// The positions of an item's parts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Shape {
    pub(crate) key_at: usize,
    /// The position of the page list.
    pub(crate) list_at: usize,
    /// The number of pages that hold the value's beginning.
    pub(crate) chunks: usize,
    /// The position of the rest of the value, and its length.
    pub(crate) tail_at: usize,
    pub(crate) tail_len: usize,
    /// All bytes at the item's place: a multiple of eight.
    pub(crate) size: usize,
}

impl Header {
    #[inline]
    pub(crate) fn read(memory: &Region, place: Place) -> Self {
        let at = place.byte();
        let word = memory.word(at + 8);
        let (value_len, is_wide) = lengths(word >> 43);
        let times = if is_wide { memory.word(at + NARROW) } else { 0 };
        #[expect(clippy::cast_possible_truncation, reason = "fields of a word")]
        Self {
            version: memory.word(at),
            expiry: times as u32,
            last_access: word as u32,
            flags: (times >> 32) as u32,
            key_len: (word >> 32) as u8,
            value_len,
            marks: (word >> 40) as u8 & 0b111,
            is_wide,
        }
    }

    #[inline]
    pub(crate) fn write(&self, memory: &mut Region, place: Place) {
        let at = place.byte();
        memory.set_word(at, self.version);
        self.write_access(memory, place);
        if self.is_wide {
            let times = u64::from(self.expiry) | u64::from(self.flags) << 32;
            memory.set_word(at + NARROW, times);
        }
    }

    /// Writes the word with last access and marks.
    #[inline]
    pub(crate) fn write_access(&self, memory: &mut Region, place: Place) {
        let word = u64::from(self.last_access)
            | u64::from(self.key_len) << 32
            | u64::from(self.marks) << 40
            | form(self.value_len, self.is_wide) << 43;
        memory.set_word(place.byte() + 8, word);
    }

    /// Records in the item at `place` that it was read at this time. It takes no header as an
    /// argument, because each get would then write the header to memory; it changes only one word
    /// of the item.
    #[inline]
    pub(crate) fn record_read(memory: &mut Region, place: Place, now: Seconds) {
        let at = place.byte() + 8;
        let rest = memory.word(at) >> 32 << 32;
        memory.set_word(at, rest | u64::from(mark::READ) << 40 | u64::from(now.0));
    }

    /// Makes the header of a new item wide if it must be wide.
    pub(crate) fn sized(self) -> Self {
        let is_wide = self.is_wide || self.needs_width() || self.value_len as usize > SLICE;
        Self { is_wide, ..self }
    }

    /// Whether it has an expiry or flags.
    pub(crate) const fn needs_width(&self) -> bool {
        self.expiry != 0 || self.flags != 0
    }

    #[inline]
    pub(crate) fn is_expired(&self, now: Seconds) -> bool {
        self.expiry != 0 && self.expiry <= now.0
    }

    #[inline]
    pub(crate) fn shape(&self, mode: Mode) -> Shape {
        let header = header_len(self.value_len as usize, self.is_wide);
        Shape::new(header, self.key_len.into(), self.value_len as usize, mode)
    }

    /// The position of a value that is not cut.
    #[inline]
    pub(crate) fn value_at(&self) -> usize {
        header_len(self.value_len as usize, self.is_wide) + usize::from(self.key_len)
    }

    /// The stamp of the value, if it is longer than a slice.
    #[inline]
    pub(crate) fn stamp(&self, memory: &Region, place: Place) -> Option<Stamp> {
        let is_long = self.value_len as usize > SLICE;
        is_long.then(|| Stamp(memory.word(place.byte() + NARROW + WORD)))
    }

    /// The key of the item at `place`.
    #[inline]
    pub(crate) fn key<'a>(&self, memory: &'a Region, place: Place) -> &'a [u8] {
        let at = place.byte() + header_len(self.value_len as usize, self.is_wide);
        &memory[at..at + usize::from(self.key_len)]
    }
}

impl Shape {
    /// The shape of an item whose key begins at byte `key_at`.
    #[inline]
    fn new(key_at: usize, key_len: usize, value_len: usize, mode: Mode) -> Self {
        let list_at = key_at + key_len;
        let whole = list_at + value_len;
        if mode == Mode::Cache || whole <= MAX_SLOT {
            return Self {
                key_at,
                list_at,
                chunks: 0,
                tail_at: list_at,
                tail_len: value_len,
                size: whole.next_multiple_of(8),
            };
        }
        Self::cut(key_at, list_at, value_len)
    }

    /// The shape of a value that lies partly in pages of its own.
    #[cold]
    fn cut(key_at: usize, list_at: usize, value_len: usize) -> Self {
        let chunks = value_len.saturating_sub(TAIL).div_ceil(CHUNK).max(1);
        let tail_at = list_at + 4 * chunks;
        let tail_len = value_len.saturating_sub(chunks * CHUNK);
        Self {
            key_at,
            list_at,
            chunks,
            tail_at,
            tail_len,
            size: (tail_at + tail_len).next_multiple_of(8),
        }
    }
}

/// A value in the memory of the table.
#[derive(Clone, Copy, Debug)]
pub struct Value<'a> {
    memory: &'a Region,
    list: &'a [u8],
    tail: &'a [u8],
    len: usize,
}

impl<'a> Value<'a> {
    #[inline]
    pub(crate) fn read(memory: &'a Region, place: Place, header: &Header, mode: Mode) -> Self {
        let shape = header.shape(mode);
        let part = |from: usize, len: usize| {
            let at = place.byte() + from;
            &memory[at..at + len]
        };
        Self {
            memory,
            list: match shape.chunks {
                0 => &[],
                chunks => part(shape.list_at, 4 * chunks),
            },
            tail: part(shape.tail_at, shape.tail_len),
            len: header.value_len as usize,
        }
    }

    /// The value's length in bytes.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// True if the value has no bytes.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The value's bytes in order, in one or more parts. Values of up to 7 KiB, and all values of a
    /// cache, are in one part.
    pub fn parts(&self) -> impl Iterator<Item = &'a [u8]> {
        let memory = self.memory;
        let (pages, _) = self.list.as_chunks::<4>();
        let in_pages = self.len - self.tail.len();
        let chunk = move |(number, page): (usize, &[u8; 4])| {
            let at = chunk_at(u32::from_le_bytes(*page));
            &memory[at..at + CHUNK.min(in_pages - number * CHUNK)]
        };
        let chunks = pages.iter().enumerate().map(chunk);
        chunks.chain(std::iter::once(self.tail))
    }

    /// Copies the bytes from offset `from` on to `out`, until either ends. Returns their number.
    #[inline]
    pub fn copy_from(&self, from: usize, out: &mut [u8]) -> usize {
        if !self.list.is_empty() {
            let Self { memory, list, .. } = *self;
            return copy_parts(memory, [list, self.tail], self.len, from, out);
        }
        let part = self.tail.get(from..).unwrap_or_default();
        let copied = part.len().min(out.len());
        out[..copied].copy_from_slice(&part[..copied]);
        copied
    }

    /// Appends all bytes to `out`.
    pub fn append_to(&self, out: &mut Vec<u8>) {
        self.parts().for_each(|part| out.extend_from_slice(part));
    }

    /// Appends at most `most` bytes from offset `from` on to `out`. Returns their number.
    pub fn append_part(&self, from: usize, most: usize, out: &mut Vec<u8>) -> usize {
        let (mut skip, mut left) = (from, most);
        for part in self.parts() {
            let part_len = part.len();
            let part = &part[skip.min(part_len)..];
            let part = &part[..part.len().min(left)];
            out.extend_from_slice(part);
            skip = skip.saturating_sub(part_len);
            left -= part.len();
        }
        most - left
    }

    /// Copies the bytes.
    #[must_use]
    pub fn to_vec(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.len);
        self.append_to(&mut bytes);
        bytes
    }

    /// The bytes in the table's memory, if they are in one part.
    #[inline]
    #[must_use]
    pub fn as_slice(&self) -> Option<&'a [u8]> {
        self.list.is_empty().then_some(self.tail)
    }
}

/// Like [`Value::copy_from`], for a value in pages. It takes the fields instead of the value,
/// because each copy would otherwise write the value to memory to pass its address.
#[cold]
#[inline(never)]
fn copy_parts(
    memory: &Region,
    [list, tail]: [&[u8]; 2],
    len: usize,
    from: usize,
    out: &mut [u8],
) -> usize {
    let value = Value {
        memory,
        list,
        tail,
        len,
    };
    let (mut skip, mut done) = (from, 0);
    for part in value.parts() {
        let part = &part[skip.min(part.len())..];
        skip = skip.saturating_sub(CHUNK);
        let copied = part.len().min(out.len() - done);
        out[done..done + copied].copy_from_slice(&part[..copied]);
        done += copied;
    }
    done
}

impl PartialEq<[u8]> for Value<'_> {
    fn eq(&self, other: &[u8]) -> bool {
        let mut rest = other;
        let is_prefix = self.parts().all(|part| {
            let found = rest.strip_prefix(part);
            rest = found.unwrap_or_default();
            found.is_some()
        });
        is_prefix && rest.is_empty()
    }
}

/// The position of the value's bytes in a page of a long value.
#[inline]
pub(crate) fn chunk_at(page: u32) -> usize {
    page as usize * STEP + 8
}

/// The bytes before the key.
#[inline]
const fn header_len(value_len: usize, is_wide: bool) -> usize {
    NARROW + if is_wide { WORD } else { 0 } + if value_len > SLICE { WORD } else { 0 }
}

/// Computes the form of an item.
#[inline]
fn form(value_len: u32, is_wide: bool) -> u64 {
    if value_len as usize <= SLICE {
        return u64::from(value_len) * 2 + u64::from(is_wide);
    }
    debug_assert!(is_wide);
    LONG_FORM + u64::from(value_len) - (SLICE as u64 + 1)
}

/// The length of the value, and whether the item is wide, decoded from a form.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "a form has 21 bits")]
const fn lengths(form: u64) -> (u32, bool) {
    if form < LONG_FORM {
        return ((form / 2) as u32, form % 2 == 1);
    }
    ((form - LONG_FORM + SLICE as u64 + 1) as u32, true)
}

const _: () = {
    use crate::config::{MAX_KEY, MAX_VALUE};
    assert!(LONG_FORM + MAX_VALUE as u64 - SLICE as u64 - 1 < 1 << 21);
    assert!(NARROW + 2 * WORD + MAX_KEY + 4 * MAX_VALUE.div_ceil(CHUNK) + TAIL + 7 <= MAX_SLOT);
};

#[cfg(test)]
mod tests;
