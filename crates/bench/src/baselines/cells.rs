//! The fastest known way from one process to another on the same machine: a ring of cells. A cell
//! is one or more cache lines and contains the sequence number of its message. The reader polls the
//! line that also carries the data, so a message costs one cache miss; separate head and tail
//! indices would cost two.
//!
//! Before sending and after receiving, messages lie in private lines of the process, a [`Burst`].
//!
//! Layout of a lane: one line with the number of cells that the reader has given back, then the
//! cells. A cell begins with the sequence number of the message in it, which counts from 1; 0 means
//! empty.

use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use super::sys::Shared;

/// Bytes of a cache line.
pub(crate) const LINE: usize = 64;

/// Bytes of the sequence number.
const SEQUENCE: usize = 8;

/// The distance between lines that different sides write: two lines, because processors fetch lines
/// in pairs.
const APART: usize = 2 * LINE;

/// Shape of a lane; both ends must use the same shape.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Shape {
    /// The number of messages that fit; a power of two, at least 8.
    pub(crate) cells: usize,
    /// Bytes of a message, a multiple of 8.
    pub(crate) size: usize,
}

impl Shape {
    /// Cache lines of one cell.
    pub(crate) const fn lines(self) -> usize {
        (SEQUENCE + self.size).div_ceil(LINE)
    }

    /// Bytes of a lane.
    pub(crate) const fn bytes(self) -> usize {
        (APART + self.cells * self.lines() * LINE).next_multiple_of(APART)
    }
}

/// A private cache line.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u8; LINE]);

/// Messages in private lines, each in the layout of a cell.
pub(crate) struct Burst {
    lines: Vec<Line>,
    shape: Shape,
    len: usize,
}

impl Burst {
    /// An empty burst, with room for some messages.
    pub(crate) fn new(shape: Shape, room: usize) -> Self {
        Self {
            lines: vec![Line([0; LINE]); room * shape.lines()],
            shape,
            len: 0,
        }
    }

    /// The number of messages.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Adds a message, which the caller fills. Panics if there is no room.
    #[inline]
    pub(crate) fn push(&mut self) -> &mut [u8] {
        self.len += 1;
        let size = self.shape.size;
        let lines = self.shape.lines();
        let cell = &mut self.lines[(self.len - 1) * lines..self.len * lines];
        &mut bytes_mut(cell)[SEQUENCE..SEQUENCE + size]
    }

    /// The message at this index. Panics if there are fewer messages.
    #[inline]
    pub(crate) fn get(&self, index: usize) -> &[u8] {
        assert!(index < self.len);
        &bytes(self.cell(index))[SEQUENCE..SEQUENCE + self.shape.size]
    }

    fn cell(&self, index: usize) -> &[Line] {
        let lines = self.shape.lines();
        &self.lines[index * lines..(index + 1) * lines]
    }
}

/// Views lines as bytes.
fn bytes(lines: &[Line]) -> &[u8] {
    // SAFETY: a `Line` is `LINE` bytes without padding, and the lines of a slice are contiguous.
    unsafe { std::slice::from_raw_parts(lines.as_ptr().cast(), size_of_val(lines)) }
}

/// Views lines as writable bytes.
fn bytes_mut(lines: &mut [Line]) -> &mut [u8] {
    // SAFETY: as above; any bytes are a valid `Line`, and the lines stay borrowed as long as the
    // result lives.
    unsafe { std::slice::from_raw_parts_mut(lines.as_mut_ptr().cast(), size_of_val(lines)) }
}

/// One end of a lane.
struct End<'a> {
    base: NonNull<u8>,
    shape: Shape,
    /// Messages written or read so far.
    count: u64,
    memory: PhantomData<&'a Shared>,
}

/// The end into which messages go.
pub(crate) struct Writer<'a> {
    end: End<'a>,
    /// Cells that the reader had given back when this end last looked.
    given_back: u64,
}

/// The end from which messages come.
pub(crate) struct Reader<'a> {
    end: End<'a>,
}

impl<'a> Writer<'a> {
    /// The writing end of the lane that begins at `offset`.
    ///
    /// # Safety
    /// In all processes that map this memory there is no other writer of the lane, the reader has
    /// the same offset and shape, and nothing else touches its bytes.
    pub(crate) unsafe fn new(memory: &'a Shared, offset: usize, shape: Shape) -> Self {
        Self {
            end: End::new(memory, offset, shape),
            given_back: 0,
        }
    }

    /// Lets `write` fill the next message, and publishes it to the reader. Returns false if the
    /// ring is full.
    #[inline]
    pub(crate) fn write(&mut self, write: impl FnOnce(&mut [u8])) -> bool {
        let end = &mut self.end;
        if end.count - self.given_back >= end.shape.cells as u64 {
            self.given_back = end.given_back().load(Ordering::Acquire);
            if end.count - self.given_back >= end.shape.cells as u64 {
                return false;
            }
        }
        let cell = end.cell();
        // SAFETY: the reader has given this cell back (checked above, with acquire ordering) and
        // reads it again only after the sequence number has changed; there is no other writer.
        write(unsafe {
            std::slice::from_raw_parts_mut(cell.add(SEQUENCE).as_ptr(), end.shape.size)
        });
        end.count += 1;
        end.sequence(cell).store(end.count, Ordering::Release);
        true
    }

    /// Writes all messages of a burst, from the last to the first, and publishes them to the
    /// reader. The reader polls the first cell, so it fetches no line that is still being written.
    /// If there is not enough room, returns false and leaves the burst unchanged; otherwise the
    /// burst is empty afterwards.
    #[inline]
    pub(crate) fn write_run(&mut self, burst: &mut Burst) -> bool {
        let end = &mut self.end;
        assert!(burst.shape == end.shape, "made for another lane");
        let after = end.count + burst.len as u64;
        if after - self.given_back > end.shape.cells as u64 {
            self.given_back = end.given_back().load(Ordering::Acquire);
            if after - self.given_back > end.shape.cells as u64 {
                return false;
            }
        }
        for index in (0..burst.len).rev() {
            let number = end.count + index as u64;
            let cell = end.cell_of(number);
            let message = burst.cell(index);
            let words = message.len() * LINE / SEQUENCE;
            let from = message.as_ptr().cast::<u64>();
            let to = cell.as_ptr().cast::<u64>();
            for word in 1..words {
                // SAFETY: source and cell have the same number of words, aligned; the reader has
                // given this cell back (checked above, with acquire ordering), and there is no
                // other writer. The copy is by words, because wider loads would wait for the stores
                // that have just filled the line.
                unsafe { to.add(word).write_volatile(from.add(word).read()) };
            }
            end.sequence(cell).store(number + 1, Ordering::Release);
        }
        end.count = after;
        burst.len = 0;
        true
    }
}

impl<'a> Reader<'a> {
    /// The reading end of the lane that begins at `offset`.
    ///
    /// # Safety
    /// As for [`Writer::new`], with the roles exchanged.
    pub(crate) unsafe fn new(memory: &'a Shared, offset: usize, shape: Shape) -> Self {
        Self {
            end: End::new(memory, offset, shape),
        }
    }

    /// Calls `read` with the next message, in place; `None` if there is no message.
    #[inline]
    pub(crate) fn read<R>(&mut self, read: impl FnOnce(&[u8]) -> R) -> Option<R> {
        let end = &mut self.end;
        let cell = end.cell();
        if end.sequence(cell).load(Ordering::Acquire) != end.count + 1 {
            return None;
        }
        // SAFETY: the sequence number shows (with acquire ordering) that the message is complete,
        // and the writer does not touch the cell before it is given back below.
        let result = read(unsafe {
            std::slice::from_raw_parts(cell.add(SEQUENCE).as_ptr(), end.shape.size)
        });
        end.give_back(end.count + 1);
        Some(result)
    }

    /// Moves up to `most` arrived messages from the lane into a burst, and overwrites the old
    /// messages of the burst. Returns false if none has arrived. The processor fetches the lines of
    /// the messages in parallel.
    #[inline]
    pub(crate) fn read_run(&mut self, burst: &mut Burst, most: usize) -> bool {
        let end = &mut self.end;
        assert!(burst.shape == end.shape, "made for another lane");
        let lines = end.shape.lines();
        let most = most.min(burst.lines.len() / lines);
        burst.len = 0;
        while burst.len < most {
            let number = end.count + burst.len as u64;
            let cell = end.cell_of(number);
            if end.sequence(cell).load(Ordering::Acquire) != number + 1 {
                break;
            }
            let to = &mut burst.lines[burst.len * lines..(burst.len + 1) * lines];
            // SAFETY: a cell has this number of lines. The sequence number shows (with acquire
            // ordering) that the message is complete, and the writer does not touch the cell before
            // it is given back below. Both ends access the sequence number itself as an aligned
            // word.
            unsafe {
                to.as_mut_ptr()
                    .copy_from_nonoverlapping(cell.as_ptr().cast(), lines)
            };
            burst.len += 1;
        }
        end.give_back(end.count + burst.len as u64);
        burst.len > 0
    }
}

impl<'a> End<'a> {
    /// Makes an end. Panics if the lane does not fit into the memory: the shape is our own, so that
    /// is a bug.
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

    /// Notes that all messages before `count` have been read. Giving cells back costs the writer a
    /// cache miss, so an eighth of the ring is given back at a time.
    #[inline]
    fn give_back(&mut self, count: u64) {
        let eighth = self.shape.cells as u64 / 8;
        // The number of cells is a power of two, so this shows whether the count has passed a
        // multiple of an eighth of it.
        if (self.count ^ count) >= eighth {
            self.given_back().store(count, Ordering::Release);
        }
        self.count = count;
    }

    /// The cell of the next message.
    #[inline]
    fn cell(&self) -> NonNull<u8> {
        self.cell_of(self.count)
    }

    /// The cell of a message.
    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "only the low bits are used"
    )]
    fn cell_of(&self, number: u64) -> NonNull<u8> {
        let index = number as usize & (self.shape.cells - 1);
        // SAFETY: the index is below the number of cells, which lie inside the mapping.
        unsafe { self.base.add(APART + index * self.shape.lines() * LINE) }
    }

    #[inline]
    fn sequence(&self, cell: NonNull<u8>) -> &AtomicU64 {
        // SAFETY: a cell begins on a cache line inside the mapping, so its first eight bytes are
        // aligned; both ends use them only as an atomic.
        unsafe { AtomicU64::from_ptr(cell.as_ptr().cast()) }
    }

    #[inline]
    fn given_back(&self) -> &AtomicU64 {
        // SAFETY: the lane begins on a cache line inside the mapping, and both ends use its first
        // eight bytes only as an atomic.
        unsafe { AtomicU64::from_ptr(self.base.as_ptr().cast()) }
    }
}

#[cfg(test)]
mod tests;
