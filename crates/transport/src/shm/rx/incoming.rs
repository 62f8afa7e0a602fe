//! One ring of an endpoint, as its receiving half takes packets out of it.
//!
//! Invariant: what may change under our hands is copied before anybody looks at it.

use std::collections::VecDeque;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{Ordering, compiler_fence};

use dunlin_core::transport::MAX_INLINE;
use dunlin_msgbuf::{BufRef, REF_LEN};

use super::super::cells::{CELL, WORD, cells_of};
use super::super::channel::Channel;
use super::super::regions::Known;
use super::super::ring::{Consumer, Next};

/// A ring from a peer.
#[derive(Debug)]
pub(super) struct Incoming {
    pub(super) ring: Consumer,
    pub(super) trusted: bool,
    pub(super) active: bool,
    /// The burst in which it last had something, or was activated.
    pub(super) last_busy: u32,
    /// The peer's regions, where data lies that it only names.
    pub(super) known: Known,
    /// Packets that named what cannot be found, and are not counted yet.
    pub(super) unmapped: u64,
    /// Last, so that it is dropped after what lies in its memory.
    pub(super) channel: Arc<Channel>,
}

/// Where a frame lies: in `small`, in `long`, or in a trusted ring.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) bytes: NonNull<u8>,
    pub(super) len: u32,
}

/// The front of a packet, and where its data lies.
#[derive(Clone, Copy, Debug)]
pub(super) struct Named {
    pub(super) front: [u8; MAX_INLINE],
    pub(super) len: u32,
    pub(super) ring: u32,
    pub(super) data: BufRef,
}

/// What stood at the head of a ring that is not a packet of one cell.
pub(super) enum Taken {
    Nothing,
    Corrupt,
    /// A packet, whose copy takes so many lines.
    Packet {
        place: Place,
        lines: usize,
    },
}

/// A cache line of private memory.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(super) struct Line(pub(super) [u8; CELL]);

/// Packets that may wait so, of all peers.
pub(super) const NAMED: usize = 1024;

impl Incoming {
    /// Takes packets whose data lies elsewhere, and after them a packet of any length, if there is
    /// one and `room` for the longest.
    #[inline(never)]
    pub(super) fn take_other(
        &mut self,
        room: &mut [Line],
        ring: u32,
        named: &mut VecDeque<Named>,
    ) -> Taken {
        if room.len() < cells_of(self.ring.longest()) as usize {
            return Taken::Nothing;
        }
        while named.len() < NAMED {
            match self.ring.next() {
                Next::Nothing => return Taken::Nothing,
                Next::Corrupt => return Taken::Corrupt,
                Next::Reference { at, len } => match self.take_reference(at, len) {
                    Some((data, ..)) if !self.can_find(data) => self.unmapped += 1,
                    Some((data, front, len)) => {
                        named.push_back(Named {
                            front,
                            len,
                            ring,
                            data,
                        });
                    }
                    None => return Taken::Corrupt,
                },
                Next::Packet { at, len } => return self.take_long(at, len, room),
            }
        }
        Taken::Nothing
    }

    fn take_long(&self, at: u32, len: u32, room: &mut [Line]) -> Taken {
        let from = self.ring.cells().bytes(at);
        if self.trusted {
            let place = Place { bytes: from, len };
            return Taken::Packet { place, lines: 0 };
        }
        // SAFETY: the packet lies inside the ring, and there is room for the longest.
        let bytes = unsafe { copy_long(from, room, len as usize) };
        let place = Place { bytes, len };
        let lines = cells_of(len) as usize;
        Taken::Packet { place, lines }
    }

    /// Copies a packet at whose end its data is named: the name, what stands in front of it, and
    /// how long that is. `None` if its length is impossible.
    fn take_reference(&self, at: u32, len: u32) -> Option<(BufRef, [u8; MAX_INLINE], u32)> {
        let front_len = (len as usize).checked_sub(REF_LEN)?;
        let (mut front, mut name) = ([0; MAX_INLINE], [0; REF_LEN]);
        let place = front.get_mut(..front_len)?;
        let from = self.ring.cells().bytes(at).as_ptr();
        // SAFETY: the packet lies inside the ring, and private memory does not overlap it.
        unsafe {
            from.copy_to_nonoverlapping(place.as_mut_ptr(), front_len);
            from.add(front_len)
                .copy_to_nonoverlapping(name.as_mut_ptr(), REF_LEN);
        }
        compiler_fence(Ordering::SeqCst);
        let len = u32::try_from(front_len).ok()?;
        Some((BufRef::from_bytes(name), front, len))
    }

    /// True if the data can be found, perhaps by what the peer has said since the last look.
    fn can_find(&mut self, data: BufRef) -> bool {
        self.known.find(data).is_some() || {
            self.known.listen(self.channel.line());
            self.known.find(data).is_some()
        }
    }
}

/// Copies the cell whose packet bytes begin at `from`, word and all: two moves of 32 bytes.
/// Returns where the packet's bytes are.
///
/// # Safety
/// `from` points behind the word of a cell that is mapped.
#[inline(always)]
pub(super) unsafe fn copy_cell(from: NonNull<u8>, to: &mut Line) -> NonNull<u8> {
    // SAFETY: the cell begins before its packet and is as long as a line.
    unsafe { *to = from.sub(WORD).cast::<Line>().read() };
    // What is read later is the copy: the compiler may not go back to the ring for it.
    compiler_fence(Ordering::SeqCst);
    // SAFETY: a line is longer than a word.
    unsafe { NonNull::from(to).cast::<u8>().add(WORD) }
}

/// Copies a packet of several cells. Returns where its bytes are.
///
/// # Safety
/// `len` bytes from `from` are mapped, and the lines hold the word and them.
#[inline(never)]
pub(super) unsafe fn copy_long(from: NonNull<u8>, to: &mut [Line], len: usize) -> NonNull<u8> {
    debug_assert!(WORD + len <= size_of_val(to));
    let first: NonNull<u8> = NonNull::from(to).cast();
    // SAFETY: as the caller promises.
    let bytes = unsafe { first.add(WORD) };
    // SAFETY: as the caller promises; a ring and private memory do not overlap.
    unsafe { bytes.copy_from_nonoverlapping(from, len) };
    compiler_fence(Ordering::SeqCst);
    bytes
}
