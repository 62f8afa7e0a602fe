//! Room for the copies of a burst's packets that are too long for a lane, one after the other.
//!
//! A burst keeps addresses of copies while it makes further ones. So all addresses derive from the
//! memory's address, and the room that is lent for a copy never overlaps an earlier copy. Called by
//! `rx`.

use std::ptr::{self, NonNull};

use super::super::cells::CELL;
use super::rx_ring::Line;

/// The memory, line by line.
#[derive(Debug)]
pub(super) struct Longs {
    lines: NonNull<Line>,
    count: usize,
    /// Lines that hold frames of this burst.
    staged: usize,
}

impl Longs {
    pub(super) fn new(count: usize) -> Self {
        let lines = Box::leak(vec![Line([0; CELL]); count].into_boxed_slice());
        Self {
            lines: NonNull::from(lines).cast(),
            count,
            staged: 0,
        }
    }

    /// The lines that do not hold frames of this burst.
    #[inline(always)]
    pub(super) fn room(&mut self) -> &mut [Line] {
        assert!(self.staged <= self.count);
        // SAFETY: the lines are this owner's, which is borrowed mutably.
        unsafe {
            let room = self.lines.add(self.staged).as_ptr();
            std::slice::from_raw_parts_mut(room, self.count - self.staged)
        }
    }

    /// Notes that the first lines of the room now hold a frame of this burst.
    #[inline(always)]
    pub(super) fn keep(&mut self, lines: usize) {
        self.staged += lines;
    }

    /// Begins a burst.
    #[inline(always)]
    pub(super) fn clear(&mut self) {
        self.staged = 0;
    }
}

impl Drop for Longs {
    fn drop(&mut self) {
        let lines = ptr::slice_from_raw_parts_mut(self.lines.as_ptr(), self.count);
        // SAFETY: the lines were a box, and no frame outlives its half.
        drop(unsafe { Box::from_raw(lines) });
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
