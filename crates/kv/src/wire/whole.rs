//! [`WHOLE`](super::format::WHOLE): requests for a whole partition.
//!
//! ```text
//! figures  version, 17, 0 0, tag of the map u32
//! flush    version, 18, 0 0, tag of the map u32, delay in seconds u32
//! scan     version, 19, 0 0, tag of the map u32, place u64
//! hot      version, 20, 0 0, tag of the map u32
//!
//! answer   7, 0, number of keys u16, 0 u32, next place u64, then each key after its length u8
//! to scan
//! ```
//! Requests for figures and hot keys are answered even if the client has an old map. A scan begins
//! at place 0; the next place in its last answer is 2^64 - 1.

use super::cursor::{Cursor, Pen};
use super::format::{Malformed, VERSION};

const FIGURES: u8 = 17;
const FLUSH: u8 = 18;
const SCAN: u8 = 19;
const HOT: u8 = 20;

/// The first byte of the answer to a scan.
const KEYS: u8 = 7;

/// The next place in the last answer.
const AT_END: u64 = u64::MAX;

/// The longest answer to a scan. Once an answer has [`Scanned::MARK`] bytes, no further bucket is
/// added.
pub(crate) const SCAN_ROOM: usize = 256 * 1024;

/// A request for a whole partition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Whole {
    /// Asks for the partition's figures.
    Figures,
    /// Deletes, this many seconds from now, all items that were written before that moment.
    Flush(u32),
    /// Asks for keys, from this place on.
    Scan(u64),
    /// Asks for the keys that clients read most.
    Hot,
}

/// Keys of a partition, as the answer to a scan. Keys are added in table order.
#[derive(Debug)]
pub struct Scanned(Vec<u8>);

impl Scanned {
    /// An answer with this number of bytes is long enough.
    pub(crate) const MARK: usize = 16 * 1024;

    const HEADER: usize = 16;

    /// An answer without keys.
    pub(crate) fn begin() -> Self {
        Self(vec![0; Self::HEADER])
    }

    /// Adds a key, if it fits. Only a bucket with about a thousand keys has keys that do not fit.
    pub(crate) fn push(&mut self, key: &[u8]) {
        let count = self.0[2..4].try_into().map_or(0, u16::from_le_bytes);
        let is_short = self.0.len() + 1 + key.len() <= SCAN_ROOM;
        if let (Ok(len), Some(count), true) =
            (u8::try_from(key.len()), count.checked_add(1), is_short)
        {
            self.0[2..4].copy_from_slice(&count.to_le_bytes());
            self.0.push(len);
            self.0.extend_from_slice(key);
        }
    }

    /// Whether no further bucket should be added.
    pub(crate) fn is_long(&self) -> bool {
        self.0.len() >= Self::MARK
    }

    /// Completes the answer. `next`: the place at which the scan continues, if it does.
    pub(crate) fn end(mut self, next: Option<u64>) -> Vec<u8> {
        self.0[0] = KEYS;
        self.0[8..16].copy_from_slice(&next.unwrap_or(AT_END).to_le_bytes());
        self.0
    }

    /// Reads the keys of an answer, and the place at which the scan continues, if it does.
    ///
    /// # Errors
    /// If the bytes are not an answer to a scan.
    pub fn decode(bytes: &[u8]) -> Result<(Vec<Vec<u8>>, Option<u64>), Malformed> {
        let mut cursor = Cursor(bytes);
        let [KEYS, 0] = cursor.take()? else {
            return Err(Malformed);
        };
        let count = cursor.u16()?;
        cursor.zeros::<4>()?;
        let next = cursor.u64()?;
        let mut keys = Vec::new();
        for _ in 0..count {
            let len = cursor.u8()?;
            keys.push(cursor.bytes(len.into())?.to_vec());
        }
        cursor.end()?;
        Ok((keys, (next != AT_END).then_some(next)))
    }
}

impl Whole {
    /// Whether the request changes nothing, so that it may run twice.
    #[must_use]
    pub const fn is_read(&self) -> bool {
        matches!(self, Self::Figures | Self::Scan(_) | Self::Hot)
    }

    /// The length of the request in bytes.
    #[must_use]
    pub const fn size(&self) -> usize {
        match self {
            Self::Figures | Self::Hot => 8,
            Self::Flush(_) => 12,
            Self::Scan(_) => 16,
        }
    }

    /// Writes the request into [`Self::size`] bytes.
    ///
    /// # Panics
    /// If `out` is shorter.
    pub fn encode(&self, tag: u32, out: &mut [u8]) {
        let mut pen = Pen::new(out);
        let code = match self {
            Self::Figures => FIGURES,
            Self::Flush(_) => FLUSH,
            Self::Scan(_) => SCAN,
            Self::Hot => HOT,
        };
        pen.put(&[VERSION, code, 0, 0]);
        pen.put(&tag.to_le_bytes());
        match self {
            Self::Figures | Self::Hot => {}
            Self::Flush(delay) => pen.put(&delay.to_le_bytes()),
            Self::Scan(place) => pen.put(&place.to_le_bytes()),
        }
    }

    /// Reads a request and the tag of its map.
    ///
    /// # Errors
    /// If the bytes are not such a request.
    pub fn decode(bytes: &[u8]) -> Result<(u32, Self), Malformed> {
        let mut cursor = Cursor(bytes);
        let [version, code, 0, 0] = cursor.take()? else {
            return Err(Malformed);
        };
        let tag = cursor.u32()?;
        let whole = match (version, code) {
            (VERSION, FIGURES) => Self::Figures,
            (VERSION, FLUSH) => Self::Flush(cursor.u32()?),
            (VERSION, SCAN) => Self::Scan(cursor.u64()?),
            (VERSION, HOT) => Self::Hot,
            _ => return Err(Malformed),
        };
        cursor.end()?;
        Ok((tag, whole))
    }
}
