//! The fastest way known from one process to another on a machine: a ring of cells, each one or
//! more cache lines, with the sequence number inside the cell. The reader waits on the line that
//! brings the data, so a message costs one cache miss and not two, as it does with separate head
//! and tail indices.
//!
//! Layout of a lane: one line with the number of cells that the reader has given back, then the
//! cells. A cell begins with the sequence number of the message in it, from 1; 0 is empty.

use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::sys::Shared;

/// Bytes of a cache line.
pub(super) const LINE: usize = 64;

/// Bytes of the sequence number.
const SEQUENCE: usize = 8;

/// Processors fetch lines in pairs; what two sides write is kept this far apart.
const APART: usize = 2 * LINE;

/// Shape of a lane; both ends must use the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Shape {
    /// How many messages fit; a power of two, at least 8.
    pub(super) cells: usize,
    /// Bytes of a message, a multiple of 8.
    pub(super) size: usize,
}

impl Shape {
    /// Cache lines of one cell.
    pub(super) const fn lines(self) -> usize {
        (SEQUENCE + self.size).div_ceil(LINE)
    }

    /// Bytes of a lane.
    pub(super) const fn bytes(self) -> usize {
        (APART + self.cells * self.lines() * LINE).next_multiple_of(APART)
    }
}

/// One end of a lane.
struct End<'a> {
    base: NonNull<u8>,
    shape: Shape,
    /// Messages written or read so far.
    count: u64,
    memory: PhantomData<&'a Shared>,
}

/// The end that messages go into.
pub(super) struct Writer<'a> {
    end: End<'a>,
    /// Cells that the reader had given back when this end last looked.
    given_back: u64,
}

/// The end that messages come out of.
pub(super) struct Reader<'a> {
    end: End<'a>,
}

impl<'a> Writer<'a> {
    /// The writing end of the lane that begins at `offset`.
    ///
    /// # Safety
    /// In all processes that map this memory there is no other writer of the lane, the reader has
    /// the same offset and shape, and nothing else touches its bytes.
    pub(super) unsafe fn new(memory: &'a Shared, offset: usize, shape: Shape) -> Self {
        Self {
            end: End::new(memory, offset, shape),
            given_back: 0,
        }
    }

    /// Lets `write` fill the next message, and shows it to the reader. False if the ring is full.
    #[inline]
    pub(super) fn write(&mut self, write: impl FnOnce(&mut [u8])) -> bool {
        let end = &mut self.end;
        if end.count - self.given_back >= end.shape.cells as u64 {
            self.given_back = end.given_back().load(Ordering::Acquire);
            if end.count - self.given_back >= end.shape.cells as u64 {
                return false;
            }
        }
        let cell = end.cell();
        // SAFETY: the reader has given this cell back (checked above, with acquire ordering) and
        // reads it again only when the sequence number says so; there is no other writer.
        write(unsafe {
            std::slice::from_raw_parts_mut(cell.add(SEQUENCE).as_ptr(), end.shape.size)
        });
        end.count += 1;
        end.sequence(cell).store(end.count, Ordering::Release);
        true
    }
}

impl<'a> Reader<'a> {
    /// The reading end of the lane that begins at `offset`.
    ///
    /// # Safety
    /// As for [`Writer::new`], with the roles exchanged.
    pub(super) unsafe fn new(memory: &'a Shared, offset: usize, shape: Shape) -> Self {
        Self {
            end: End::new(memory, offset, shape),
        }
    }

    /// What `read` makes of the next message, in place; `None` if there is none.
    #[inline]
    pub(super) fn read<R>(&mut self, read: impl FnOnce(&[u8]) -> R) -> Option<R> {
        let end = &mut self.end;
        let cell = end.cell();
        if end.sequence(cell).load(Ordering::Acquire) != end.count + 1 {
            return None;
        }
        // SAFETY: the sequence number says (with acquire ordering) that the message is complete,
        // and the writer does not touch the cell before it is given back below.
        let result = read(unsafe {
            std::slice::from_raw_parts(cell.add(SEQUENCE).as_ptr(), end.shape.size)
        });
        end.count += 1;
        // Giving back costs the writer a miss, so it is done for an eighth of the ring at a time.
        if end.count & (end.shape.cells as u64 / 8 - 1) == 0 {
            end.given_back().store(end.count, Ordering::Release);
        }
        Some(result)
    }
}

impl<'a> End<'a> {
    /// Panics if the lane does not lie in the memory: both ends are our own code.
    fn new(memory: &'a Shared, offset: usize, shape: Shape) -> Self {
        assert!(
            shape.cells.is_power_of_two() && shape.cells >= 8,
            "not a ring: {shape:?}"
        );
        assert!(offset.is_multiple_of(APART) && offset + shape.bytes() <= memory.len());
        // SAFETY: the offset lies inside the mapping, as was just checked.
        let base = unsafe { memory.base().add(offset) };
        Self {
            base,
            shape,
            count: 0,
            memory: PhantomData,
        }
    }

    /// The cell of the next message.
    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "only the low bits are used"
    )]
    fn cell(&self) -> NonNull<u8> {
        let index = self.count as usize & (self.shape.cells - 1);
        // SAFETY: the index is below the number of cells, which lie inside the mapping.
        unsafe { self.base.add(APART + index * self.shape.lines() * LINE) }
    }

    #[inline]
    fn sequence(&self, cell: NonNull<u8>) -> &AtomicU64 {
        // SAFETY: a cell begins on a cache line inside the mapping, so its first eight bytes are
        // aligned; both ends use them as an atomic alone.
        unsafe { AtomicU64::from_ptr(cell.as_ptr().cast()) }
    }

    #[inline]
    fn given_back(&self) -> &AtomicU64 {
        // SAFETY: the lane begins on a cache line inside the mapping, and both ends use its first
        // eight bytes as an atomic alone.
        unsafe { AtomicU64::from_ptr(self.base.as_ptr().cast()) }
    }
}

#[cfg(test)]
mod tests;
