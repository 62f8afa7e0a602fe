//! The front of a request, before its message (rule T1). It is there if the highest bit of the
//! request's type is set. Without it, a request is its message and nothing else.

use dunlin_core::Nanos;
use dunlin_wire::ReqType;

use crate::codec::DecodeError;
use crate::meta::{MAX_ENTRIES, Meta};
use crate::metadata::{self, Metadata};
use crate::short;

/// The bit of a request type that is set if a front comes first.
pub const META: u16 = 0x8000;

/// Bytes of a front without metadata.
const HEAD: usize = 8;

/// The length of the longest front whose first byte is its length.
const SHORT: usize = 255;

/// Bytes of the longest front.
const LONGEST: usize = 1024;

const _: () = assert!(
    HEAD + MAX_ENTRIES == LONGEST,
    "metadata fill the longest front"
);
const _: () = assert!(
    SHORT == u8::MAX as usize && LONGEST < 1 << 24,
    "the lengths fit"
);

/// The front of a request before it is written: the time that the client still waits, and metadata.
#[derive(Clone, Copy, Debug)]
pub struct Front<'a> {
    left: Option<Nanos>,
    entries: &'a [u8],
}

impl Front<'static> {
    /// A front without metadata. If it has no time either, it takes no bytes.
    #[inline]
    pub const fn new(left: Option<Nanos>) -> Self {
        Self { left, entries: &[] }
    }
}

impl<'a> Front<'a> {
    /// A front with metadata.
    #[inline]
    pub fn with(left: Option<Nanos>, meta: &'a Meta) -> Self {
        let entries = meta.entries();
        Self { left, entries }
    }

    /// The number of bytes that it takes.
    #[inline]
    pub const fn size(&self) -> usize {
        match self.is_there() {
            true => HEAD + self.entries.len(),
            false => 0,
        }
    }

    /// The type of a request with this front.
    #[inline]
    pub const fn type_of(&self, plain: ReqType) -> ReqType {
        match self.is_there() {
            true => ReqType(plain.0 | META),
            false => plain,
        }
    }

    /// Writes the front, and returns the bytes after it, which are the message's.
    ///
    /// # Panics
    /// If `out` is shorter than [`Self::size`].
    #[inline]
    pub fn write<'b>(&self, out: &'b mut [u8]) -> &'b mut [u8] {
        if !self.is_there() {
            return out;
        }
        let (front, message) = out.split_at_mut(self.size());
        let (head, entries) = front.split_at_mut(HEAD);
        head[..4].copy_from_slice(&length_field(self.size()).to_le_bytes());
        head[4..].copy_from_slice(&self.left.map_or(0, micros).to_le_bytes());
        short::copy(self.entries, entries);
        message
    }

    #[inline]
    const fn is_there(&self) -> bool {
        self.left.is_some() || !self.entries.is_empty()
    }
}

/// Bytes 0 to 3, as a number. A reader that knows no metadata passes over a front whose length is
/// in byte 0, and refuses the others, because their byte 0 is below 8.
#[inline]
fn length_field(len: usize) -> u32 {
    let [low, middle, high, ..] = len.to_le_bytes();
    u32::from_le_bytes(match len {
        ..=SHORT => [low, middle, high, 0],
        _ => [0, low, middle, high],
    })
}

/// The time in µs, rounded up, and never 0, which stands for a client that waits for ever.
#[inline]
fn micros(left: Nanos) -> u32 {
    u32::try_from(left.0.div_ceil(1000))
        .unwrap_or(u32::MAX)
        .max(1)
}

/// A request that is split into the time left, the metadata and the message.
pub(crate) type Split<'a> = (Option<Nanos>, Metadata<'a>, &'a [u8]);

/// Splits a request that begins with a front.
#[inline(always)]
pub(crate) fn read(bytes: &[u8]) -> Result<Split<'_>, DecodeError> {
    match read_valid(bytes) {
        Some((left_us, metadata, message)) => {
            let left = (left_us != 0).then(|| Nanos::from_micros(left_us.into()));
            Ok((left, metadata, message))
        }
        None => Err(why_not(bytes)),
    }
}

/// Splits a request whose front is valid. It is not inlined, so that a request without a front does
/// not pay for this code.
#[inline(never)]
fn read_valid(bytes: &[u8]) -> Option<(u32, Metadata<'_>, &[u8])> {
    let (head, rest) = bytes.split_first_chunk()?;
    let (metadata, message) = metadata::split(rest, len_in(head)? - HEAD)?;
    let left_us = u32::from_le_bytes([head[4], head[5], head[6], head[7]]);
    Some((left_us, metadata, message))
}

/// The length of a front that begins with these bytes; `None` if it is impossible.
#[inline]
fn len_in(head: &[u8; HEAD]) -> Option<usize> {
    match usize::from(head[0]) {
        0 => {
            let len = u32::from_le_bytes([head[1], head[2], head[3], 0]) as usize;
            (SHORT + 1..=LONGEST).contains(&len).then_some(len)
        }
        len => (len >= HEAD).then_some(len),
    }
}

/// Why a front is not valid.
#[cold]
fn why_not(bytes: &[u8]) -> DecodeError {
    let needed = match bytes.first_chunk() {
        Some(head) => len_in(head),
        None => Some(HEAD),
    };
    let len = bytes.len();
    match needed {
        Some(needed) if needed > len => DecodeError::TooShort { len, needed },
        _ => DecodeError::Malformed,
    }
}

#[cfg(test)]
mod tests;
