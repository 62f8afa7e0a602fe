//! One ring of an endpoint, as its receiving half takes packets out of it.
//!
//! Most endpoints have one active ring. While nothing else is due, their bursts are *plain*: all
//! that they look at lies in one line ([`Alone`]), and without a packet they look at one word.
//!
//! Invariants: what a peer may change meanwhile is copied before it is looked at. While bursts are
//! plain, exactly one ring is active, no packet waits whose data lies elsewhere, and the watch is
//! where the ring's next packet will be; plain bursts end before any of that changes.

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{Ordering, compiler_fence};

use dunlin_core::transport::{MAX_INLINE, RX_BURST};
use dunlin_msgbuf::{BufRef, REF_LEN};

use super::super::cells::{CELL, ONE_CELL, WORD, cells_of};
use super::super::channel::Channel;
use super::super::regions::Known;
use super::super::ring::{Consumer, Next, Watch, packet_len};
use super::waiting::{Named, Waiting};

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

impl Line {
    /// The packet, if this is the copy of a cell that holds one.
    #[inline(always)]
    pub(super) fn packet(&self) -> &[u8] {
        let (word, bytes) = self
            .0
            .split_first_chunk()
            .expect("a line is longer than that");
        // The peer may have changed the length after it was looked at.
        let len = packet_len(u64::from_ne_bytes(*word)).min(bytes.len());
        &bytes[..len]
    }
}

impl Incoming {
    /// Takes packets whose data lies elsewhere, and after them a packet of any length, if there is
    /// one and `room` for the longest.
    #[inline(never)]
    pub(super) fn take_other(
        &mut self,
        room: &mut [Line],
        ring: u32,
        waiting: &mut Waiting,
    ) -> Taken {
        if room.len() < cells_of(self.ring.longest()) as usize {
            return Taken::Nothing;
        }
        while waiting.has_room() {
            match self.ring.next() {
                Next::Nothing => return Taken::Nothing,
                Next::Corrupt => return Taken::Corrupt,
                Next::Reference { at, len } => match self.take_reference(at, len) {
                    Some((data, ..)) if !self.can_find(data) => self.unmapped += 1,
                    Some((data, front, len)) => {
                        waiting.push(Named {
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

/// Bursts between two that look at everything.
pub(super) const HOUSEKEEPING: u32 = 32;

/// All that a plain burst looks at, apart from the doorbell.
#[derive(Debug)]
#[repr(align(64))]
pub(super) struct Alone {
    /// Counts the bursts.
    pub(super) bursts: u32,
    /// The next burst that looks at everything.
    thorough: u32,
    /// The only active ring.
    pub(super) index: u32,
    /// Its next packet; `None` unless bursts are plain.
    watch: Option<Watch>,
    /// Frames in front that are copies of packets of one cell.
    pub(super) plain: u32,
}

/// The result of a look.
pub(super) enum Look {
    /// Nothing has come.
    Nothing,
    /// A packet of one cell has.
    Short,
    /// Something else has.
    Other,
    /// This burst looks at everything.
    Thorough,
}

impl Alone {
    /// Before the first burst, which has the number after `bursts`.
    pub(super) const fn new(bursts: u32) -> Self {
        Self {
            bursts,
            thorough: bursts + 1,
            index: 0,
            watch: None,
            plain: 0,
        }
    }

    /// A burst begins. `rung`: some peer has rung the doorbell.
    #[inline(always)]
    pub(super) fn look(&mut self, rung: bool) -> Look {
        self.bursts = self.bursts.wrapping_add(1);
        self.plain = 0;
        if self.bursts == self.thorough || rung {
            return Look::Thorough;
        }
        // SAFETY: plain bursts end before their ring goes, so its cells are alive.
        match self.watch.and_then(|watch| unsafe { watch.next() }) {
            None => Look::Nothing,
            Some(len) if len as usize <= ONE_CELL => Look::Short,
            Some(_) => Look::Other,
        }
    }

    /// Copies packets of one cell out of the only ring. Returns how many they are, their bytes, and
    /// whether something else comes next.
    #[inline(always)]
    pub(super) fn take_run(
        &mut self,
        incoming: &mut Incoming,
        lines: &mut [Line; RX_BURST],
    ) -> (usize, u64, bool) {
        // What this ring showed before belongs to an earlier burst.
        incoming.ring.give_back();
        let cells = *incoming.ring.cells();
        let mut bytes = 0;
        let (count, others) = incoming.ring.take_run(RX_BURST, |place, at, len| {
            bytes += u64::from(len);
            // SAFETY: a cell is as long as a line.
            unsafe { copy_cell(cells.bytes(at), &mut lines[place]) };
        });
        incoming.last_busy = self.bursts;
        self.watch = Some(incoming.ring.watch());
        self.plain = frames(count);
        (count, bytes, others)
    }

    /// The only ring's next packet, after some were taken otherwise.
    pub(super) fn set_watch(&mut self, watch: Watch) {
        self.watch = Some(watch);
    }

    /// Bursts are plain until housekeeping is due.
    pub(super) fn begin(&mut self, index: u32, watch: Watch) {
        self.index = index;
        self.watch = Some(watch);
        self.thorough = (self.bursts | (HOUSEKEEPING - 1)).wrapping_add(1);
    }

    /// The next burst is thorough.
    pub(super) fn end(&mut self) {
        self.thorough = self.bursts.wrapping_add(1);
    }

    /// A thorough burst begins: where the only ring's next packet will be, which plain bursts have
    /// kept up here alone.
    pub(super) fn take_watch(&mut self) -> Option<Watch> {
        self.end();
        self.watch.take()
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
#[inline]
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

#[expect(clippy::cast_possible_truncation, reason = "a burst has few frames")]
const fn frames(count: usize) -> u32 {
    count as u32
}
