//! Metadata in front of a request's message. They are there if the highest bit of the request's
//! type is set. Without metadata, a request is its message and nothing else.
//!
//! | bytes | field |
//! |---|---|
//! | 0 | length of the metadata in bytes, this one included: 8 today, more in later versions |
//! | 1–3 | 0; the reader passes over them |
//! | 4–7 | time that the client still waits when it issues the request, in µs; 0: for ever |

use dunlin_core::{Nanos, Session};

use crate::codec::DecodeError;

/// The bit of a request type that is set if metadata come first.
pub const META: u16 = 0x8000;

/// Bytes of the metadata that this version writes.
pub const META_LEN: usize = 8;

const _: () = assert!(META_LEN == 8, "`write` says so");

/// Facts about a request that a handler gets with the message.
#[derive(Clone, Copy, Debug)]
pub struct Context {
    /// The session that the request came on.
    pub session: Session,
    /// When the client stops waiting, on this endpoint's clock, if the request has a deadline. The
    /// time that the request spent on its way is not subtracted. A handler that calls other servers
    /// can pass on the time that is left.
    pub deadline: Option<Nanos>,
}

impl Context {
    /// The time that the client still waits; `None`: for ever.
    pub fn left(&self, now: Nanos) -> Option<Nanos> {
        self.deadline.map(|deadline| deadline.since(now))
    }
}

/// Writes metadata: the time that the client still waits.
pub fn write_meta(out: &mut [u8; META_LEN], deadline: Nanos) {
    let left_us = u32::try_from(deadline.0.div_ceil(1000)).unwrap_or(u32::MAX);
    *out = [8, 0, 0, 0, 0, 0, 0, 0];
    out[4..].copy_from_slice(&left_us.max(1).to_le_bytes());
}

/// Splits a request into the time left and the message.
pub(crate) fn read(bytes: &[u8]) -> Result<(Option<Nanos>, &[u8]), DecodeError> {
    let len = bytes.first().map_or(META_LEN, |len| usize::from(*len));
    if len < META_LEN {
        return Err(DecodeError::Malformed);
    }
    let (Some(meta), Some(message)) = (bytes.first_chunk::<META_LEN>(), bytes.get(len..)) else {
        return Err(DecodeError::TooShort {
            len: bytes.len(),
            needed: len,
        });
    };
    let left_us = u32::from_le_bytes([meta[4], meta[5], meta[6], meta[7]]);
    let left = (left_us != 0).then(|| Nanos::from_micros(left_us.into()));
    Ok((left, message))
}

#[cfg(test)]
mod tests;
