//! Packets on their way to a device, and the empty ones that are filled next.
//!
//! Invariants: all packets between `first` and `end` are ours. Those below `ready` are complete, at
//! most [`BATCH`] of them; the others are empty, at most as many, and of one pool. So an empty
//! packet leaves from the place to which the pool has written its handle. The parent module fills
//! the arrays.

use std::ffi::c_void;
use std::ops::Range;

use super::packet::{BATCH, Packet};

/// Places for all packets, and for the complete packets of a further burst, so that packets rarely
/// move.
const PLACES: usize = 4 * BATCH;

/// Bytes of a short frame, for which each packet has room.
pub(crate) const SHORT: usize = 128;

/// Complete packets, and empty ones.
#[derive(Debug)]
pub(crate) struct TxPackets {
    handles: [*mut c_void; PLACES],
    /// The lengths of the complete ones.
    lens: [u32; PLACES],
    first: usize,
    ready: usize,
    end: usize,
    /// Bytes from the handle of an empty packet to its first byte, and the bytes of its room.
    start: usize,
    room: u32,
}

// SAFETY: as for `Packet`.
unsafe impl Send for TxPackets {}

impl TxPackets {
    /// No packets yet. Each empty packet will have `room` bytes of room, which begin `start` bytes
    /// after its handle.
    pub(super) fn new(start: usize, room: u32) -> Self {
        Self {
            handles: [std::ptr::null_mut(); PLACES],
            lens: [0; PLACES],
            first: 0,
            ready: 0,
            end: 0,
            start,
            room,
        }
    }

    /// The number of complete packets.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.ready - self.first
    }

    /// Whether there is no room for another complete packet.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.len() == BATCH
    }

    /// The number of empty packets.
    #[inline]
    pub(super) fn empty(&self) -> usize {
        self.end - self.ready
    }

    /// The places for further empty packets. Call [`Self::on_taken`] after writing to them.
    #[inline]
    pub(super) fn places(&mut self) -> &mut [*mut c_void] {
        if self.end > PLACES - BATCH {
            self.move_down();
        }
        let count = BATCH - self.empty();
        &mut self.handles[self.end..self.end + count]
    }

    /// Notes that the first `count` of those places have empty packets.
    #[inline]
    pub(super) fn on_taken(&mut self, count: usize) {
        self.end += count;
    }

    /// Moves all packets to the first places.
    fn move_down(&mut self) {
        self.handles.copy_within(self.first..self.end, 0);
        self.lens.copy_within(self.first..self.ready, 0);
        self.ready -= self.first;
        self.end -= self.first;
        self.first = 0;
    }

    /// Takes an empty packet, as long as its room.
    #[inline]
    pub(crate) fn take_empty(&mut self) -> Option<Packet> {
        if self.empty() == 0 {
            return None;
        }
        self.end -= 1;
        let handle = self.handles[self.end];
        let bytes = handle.cast::<u8>().wrapping_add(self.start);
        // SAFETY: the empty packet was ours, and has this room there.
        Some(unsafe { Packet::new(handle, bytes, self.room) })
    }

    /// Adds a complete packet.
    ///
    /// # Panics
    /// If there is no room.
    #[inline]
    pub(crate) fn push(&mut self, packet: Packet) {
        assert!(!self.is_full(), "the caller looks for room");
        if self.end == PLACES {
            self.move_down();
        }
        // The first empty packet makes room.
        self.handles[self.end] = self.handles[self.ready];
        self.lens[self.ready] = packet.len();
        self.handles[self.ready] = packet.into_handle();
        self.ready += 1;
        self.end += 1;
    }

    /// Fills an empty packet for each of `contents`, while there are empty packets and room for
    /// complete ones. `write` gets each packet with its content, until it returns false. Each
    /// filled packet has `len` bytes. Returns their number.
    ///
    /// # Panics
    /// If that is more than [`SHORT`].
    #[inline]
    pub(crate) fn fill<'c, T>(
        &mut self,
        len: usize,
        contents: &'c [T],
        mut write: impl FnMut(&mut [u8; SHORT], &'c T) -> bool,
    ) -> usize {
        assert!(len <= SHORT && SHORT <= self.room as usize, "it is short");
        self.fill_each(len, contents, |bytes, content| {
            // SAFETY: the packet is ours alone, and has at least this room.
            write(unsafe { &mut *bytes.cast::<[u8; SHORT]>() }, content)
        })
    }

    /// Like [`Self::fill`], for frames of any length. `write` gets the bytes of the frame.
    ///
    /// # Panics
    /// If a packet has no room for them.
    #[inline]
    pub(crate) fn fill_long<T>(
        &mut self,
        len: usize,
        contents: &[T],
        mut write: impl FnMut(&mut [u8], &T) -> bool,
    ) -> usize {
        assert!(len <= self.room as usize, "a packet has room");
        self.fill_each(len, contents, |bytes, content| {
            // SAFETY: as above.
            write(
                unsafe { std::slice::from_raw_parts_mut(bytes, len) },
                content,
            )
        })
    }

    /// Like [`Self::fill`]; `write` gets the address of the first byte.
    #[inline]
    fn fill_each<'c, T>(
        &mut self,
        len: usize,
        contents: &'c [T],
        mut write: impl FnMut(*mut u8, &'c T) -> bool,
    ) -> usize {
        let most = self.empty().min(BATCH - self.len());
        let empty = &self.handles[self.ready..self.ready + most];
        let mut count = 0;
        for (content, handle) in contents.iter().zip(empty) {
            let bytes = handle.cast::<u8>().wrapping_add(self.start);
            if !write(bytes, content) {
                break;
            }
            count += 1;
        }
        let done = self.ready..self.ready + count;
        self.lens[done].fill(u32::try_from(len).expect("it is less than the room"));
        self.ready += count;
        count
    }

    /// The handles of the complete packets, and their lengths.
    #[inline]
    pub(super) fn complete(&self) -> (&[*mut c_void], &[u32]) {
        let complete = self.first..self.ready;
        (&self.handles[complete.clone()], &self.lens[complete])
    }

    /// Notes that the first `count` complete packets are no longer ours.
    #[inline]
    pub(super) fn on_sent(&mut self, count: usize) {
        self.first += count;
    }

    /// The handles of all packets, or of the complete ones alone. They are no longer ours.
    pub(super) fn give_up(&mut self, has_empty: bool) -> &[*mut c_void] {
        let given: Range<usize> = match has_empty {
            true => self.first..self.end,
            false => self.first..self.ready,
        };
        self.first = given.end;
        self.ready = given.end;
        &self.handles[given]
    }
}

#[cfg(test)]
mod tests;
