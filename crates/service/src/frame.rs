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
    /// A front without metadata; without a time either, it takes no bytes.
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
        head[..4].copy_from_slice(&length_field(self.size()));
        head[4..].copy_from_slice(&self.left.map_or(0, micros).to_le_bytes());
        short::copy(self.entries, entries);
        message
    }

    #[inline]
    const fn is_there(&self) -> bool {
        self.left.is_some() || !self.entries.is_empty()
    }
}

/// Bytes 0 to 3. A reader that knows no metadata passes over a front whose length is in byte 0, and
/// refuses the others, because their byte 0 is below 8.
#[inline]
fn length_field(len: usize) -> [u8; 4] {
    match u8::try_from(len) {
        Ok(len) => [len, 0, 0, 0],
        Err(_) => {
            let [low, middle, high, ..] = len.to_le_bytes();
            [0, low, middle, high]
        }
    }
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

/// Splits a request that begins with a front. A call, so that a request without a front pays
/// nothing for this code.
#[inline(never)]
pub(crate) fn read(bytes: &[u8]) -> Result<Split<'_>, DecodeError> {
    let too_short = |needed| DecodeError::TooShort {
        len: bytes.len(),
        needed,
    };
    let (head, rest) = bytes.split_first_chunk::<HEAD>().ok_or(too_short(HEAD))?;
    let len = match head[0] {
        0 => u32::from_le_bytes([head[1], head[2], head[3], 0]) as usize,
        len => usize::from(len),
    };
    let shortest = if head[0] == 0 { SHORT + 1 } else { HEAD };
    if !(shortest..=LONGEST).contains(&len) {
        return Err(DecodeError::Malformed);
    }
    let split = rest.split_at_checked(len - HEAD);
    let (entries, message) = split.ok_or(too_short(len))?;
    let left_us = u32::from_le_bytes([head[4], head[5], head[6], head[7]]);
    let left = (left_us != 0).then(|| Nanos::from_micros(left_us.into()));
    Ok((left, metadata::check(entries)?, message))
}

#[cfg(test)]
mod tests;
