//! Runs of packets of one cell each, written together.
//!
//! A store to a line that the other core has read takes as long as a hundred instructions, and
//! later stores wait for it. So the cells of a run are written in one go, from the last to the
//! first: the consumer waits at the first, and takes no line away that is still being written.
//! Words of later cells appear before earlier ones, which a consumer that reads in order does not
//! notice: the first cell's word is stored last, and with it all others are visible.
//!
//! Invariant: the tail, which alone the consumer looks at, is clean before the first word appears
//! (`ring`).

use super::super::cells::ONE_CELL;
use super::super::sync::Ordering;
use super::{LEN_SHIFT, Producer};

impl Producer {
    /// Sends packets of one cell each, whose bytes `bytes` knows: as many in front as there is room
    /// for before the ring's last cell. Returns how many, and their bytes.
    #[inline(always)]
    pub(in crate::shm) fn push_run<P>(
        &mut self,
        packets: &[P],
        bytes: impl Fn(&P) -> &[u8],
    ) -> (usize, u64) {
        let first = self.cells.index(self.tail);
        let in_a_row = (self.cells.count() - first) as usize;
        let count = packets.len().min(in_a_row).min(self.room(packets.len()));
        if count == 0 {
            return (0, 0);
        }
        let sequence = self.sequence(self.tail);
        self.tail += count as u64;
        self.clean(self.tail);
        let mut sum = 0;
        for (place, packet) in packets[..count].iter().enumerate().rev() {
            let bytes = bytes(packet);
            assert!(bytes.len() <= ONE_CELL, "the packet has one cell");
            let at = first + index(place);
            // SAFETY: there is room for it, so the cell is free, and the packet fits.
            unsafe {
                match bytes.first_chunk() {
                    Some(whole) => self.cells.write_whole(at, whole),
                    None => self.cells.write(at, 0, bytes.as_ptr(), bytes.len()),
                }
            }
            let word = sequence | (bytes.len() as u64) << LEN_SHIFT;
            self.cells.word(at).store(word, Ordering::Release);
            sum += bytes.len() as u64;
        }
        (count, sum)
    }

    /// Cells that may be written, of the `wanted` ones.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "a ring has fewer cells")]
    fn room(&mut self, wanted: usize) -> usize {
        if self.tail + wanted as u64 + 1 > self.limit {
            // Whether it is enough shows in the limit.
            let _ = self.reserve(wanted as u64);
        }
        self.limit.saturating_sub(self.tail + 1) as usize
    }
}

#[expect(clippy::cast_possible_truncation, reason = "a ring has fewer cells")]
const fn index(place: usize) -> u32 {
    place as u32
}
