//! [`WHOLE`](super::format::WHOLE): requests for a whole partition.
//!
//! ```text
//! figures  version, 17, 0 0, tag of the map u32
//! flush    version, 18, 0 0, tag of the map u32, delay in seconds u32
//! ```
//! Figures are also answered to a client with an old map.

use super::cursor::{Cursor, Pen};
use super::format::{Malformed, VERSION};

const FIGURES: u8 = 17;
const FLUSH: u8 = 18;

/// A request for a whole partition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Whole {
    /// Asks for the partition's figures.
    Figures,
    /// Forgets all items that are older than this many seconds from now will be.
    Flush(u32),
}

impl Whole {
    /// The bytes that it takes.
    #[must_use]
    pub const fn size(&self) -> usize {
        match self {
            Self::Figures => 8,
            Self::Flush(_) => 12,
        }
    }

    /// Writes it into [`Self::size`] bytes.
    ///
    /// # Panics
    /// If there are fewer.
    pub fn encode(&self, tag: u32, out: &mut [u8]) {
        let mut pen = Pen::new(out);
        let code = match self {
            Self::Figures => FIGURES,
            Self::Flush(_) => FLUSH,
        };
        pen.put(&[VERSION, code, 0, 0]);
        pen.put(&tag.to_le_bytes());
        if let Self::Flush(delay) = self {
            pen.put(&delay.to_le_bytes());
        }
    }

    /// Reads a request and the tag of its map.
    ///
    /// # Errors
    /// If the bytes are no such request.
    pub fn decode(bytes: &[u8]) -> Result<(u32, Self), Malformed> {
        let mut cursor = Cursor(bytes);
        let [version, code, 0, 0] = cursor.take()? else {
            return Err(Malformed);
        };
        let tag = cursor.u32()?;
        let whole = match (version, code) {
            (VERSION, FIGURES) => Self::Figures,
            (VERSION, FLUSH) => Self::Flush(cursor.u32()?),
            _ => return Err(Malformed),
        };
        cursor.end()?;
        Ok((tag, whole))
    }
}
