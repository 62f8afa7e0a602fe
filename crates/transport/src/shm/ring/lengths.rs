//! The lengths of packets whose messages lie elsewhere (`messages`). Called by `ring`.

use dunlin_core::transport::LANE_COPIED;
use dunlin_wire::HEADER_LEN;

use super::super::cells::{CELL, HALF, WORD};
use super::super::staged::MOST_LINES;

/// Packets up to this length are sent by other functions: their messages may be too short for
/// [`Cells::write_message`](super::Cells::write_message).
pub(super) const SHORT: usize = LANE_COPIED;
const _: () = assert!(SHORT >= HEADER_LEN + 4 * HALF);

/// The lengths above [`SHORT`], up to that of the longest packet that both a ring and a lane carry.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lengths {
    /// How many lengths there are.
    count: usize,
}

impl Lengths {
    /// For a ring whose packets have at most `longest` bytes.
    pub(super) fn up_to(longest: u32) -> Self {
        let longest = (longest as usize).min(MOST_LINES * CELL - WORD);
        Self {
            count: longest.saturating_sub(SHORT),
        }
    }

    /// Whether a length is one of these lengths. One comparison checks both ends.
    #[inline(always)]
    pub(super) const fn contain(self, len: usize) -> bool {
        len.wrapping_sub(SHORT + 1) < self.count
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
