//! One ring of an endpoint, and how its receiving half takes packets from it.
//!
//! Most endpoints have one active ring. While no other work is due, their bursts are *plain*: a
//! burst needs only one cache line of state ([`Alone`]), and if no packet has come, it reads one
//! word.
//!
//! Invariants: bytes that a peer may change are copied before they are read. While bursts are
//! plain, exactly one ring is active, no packet with data elsewhere waits, and the watch is at the
//! place of the ring's next packet; plain bursts end before any of that changes.

use std::hint::cold_path;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{Ordering, compiler_fence};

use dunlin_core::transport::MAX_INLINE;
use dunlin_msgbuf::{BufRef, REF_LEN};

use super::super::cells::{CELL, ONE_CELL, WORD, cells_of};
use super::super::channel::{Channel, ChannelIdx};
use super::super::regions::Known;
use super::super::ring::watch::Watch;
use super::super::ring::{At, Consumer, Next};
use super::shorts::{SHORT, Shorts, Took};
use super::waiting::{LATELY, Named, Waiting};

/// A ring from a peer.
#[derive(Debug)]
pub(super) struct RxRing {
    pub(super) ring: Consumer,
    pub(super) trusted: bool,
    pub(super) active: bool,
    /// Whether the ring is in the list of dozing rings.
    pub(super) dozes: bool,
    /// The last burst in which it had a packet or was activated.
    pub(super) last_busy: u32,
    /// The peer's regions, which hold the data that its packets only name.
    pub(super) known: Known,
    /// Packets whose named data cannot be found, and that are not counted yet.
    pub(super) unmapped: u64,
    /// Last, so that it is dropped after the fields that use its memory.
    pub(super) channel: Arc<Channel>,
}

/// The bytes of a frame: in `shorts`, in `long`, or in a trusted ring.
#[derive(Clone, Copy, Debug)]
pub(super) struct FrameBytes {
    pub(super) bytes: NonNull<u8>,
    pub(super) len: u32,
}

/// The entry at the head of a ring, if it is not a packet of one cell.
pub(super) enum Taken {
    Nothing,
    Corrupt,
    /// A packet, and the number of lines that its copy takes.
    Packet {
        frame: FrameBytes,
        lines: usize,
    },
}

/// A cache line of private memory.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(super) struct Line(pub(super) [u8; CELL]);

impl RxRing {
    /// Notes that bursts poll the ring from now on.
    #[cold]
    pub(super) fn unpark(&mut self) {
        self.active = true;
        let is_taken = self.ring.unpark() && !self.dozes;
        // The ring was still marked as asleep, so its peer has sent a message to a thread that was
        // awake. This reads the message, which would otherwise end the next sleep immediately. A
        // message that arrives later still does so.
        if is_taken {
            self.known.listen(self.channel.line());
        }
    }

    /// Takes packets whose data lies elsewhere. If a packet of any length follows and `room` has
    /// space for the longest one, takes that packet too.
    #[inline(never)]
    pub(super) fn take_other(
        &mut self,
        room: &mut [Line],
        ring: ChannelIdx,
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
                    Some((data, ..)) if !self.can_find(data) => self.on_unmapped(),
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
                Next::Packet { at, len } => {
                    let (at, cells) = (at as usize, cells_of(len) as usize);
                    let (frame, lines) = self.show_long(At { at, len, cells }, room);
                    return Taken::Packet { frame, lines };
                }
            }
        }
        Taken::Nothing
    }

    /// A packet of several cells, in place or copied to `room`, and the number of lines of the
    /// copy.
    #[inline(always)]
    pub(super) fn show_long(&self, packet: At, room: &mut [Line]) -> (FrameBytes, usize) {
        let (from, len) = (self.ring.cells().bytes_at(packet.at), packet.len);
        if self.trusted {
            return (FrameBytes { bytes: from, len }, 0);
        }
        let lines = packet.cells;
        // SAFETY: the packet's cells lie inside the ring.
        let bytes = unsafe { copy_long(from, &mut room[..lines]) };
        (FrameBytes { bytes, len }, lines)
    }

    /// Copies a packet that ends with the name of its data: returns the name, the bytes before it,
    /// and their number. `None` if its length is impossible.
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

    /// Notes that a packet is lost because its data cannot be mapped. The peer will send it again
    /// with its data, so the session continues, but more slowly.
    #[cold]
    fn on_unmapped(&mut self) {
        self.unmapped += 1;
        self.ring.ask_for_copies();
    }

    /// True if the data can be found, perhaps after reading the peer's latest messages.
    fn can_find(&mut self, data: BufRef) -> bool {
        self.known.find(data).is_some() || {
            self.known.listen(self.channel.line());
            self.known.find(data).is_some()
        }
    }
}

/// One burst in this many checks everything.
pub(super) const HOUSEKEEPING: u32 = 32;

/// Like [`HOUSEKEEPING`], while plain bursts poll one ring and there is nothing else to check.
const HOUSEKEEPING_OF_ONE: u32 = 16 * HOUSEKEEPING;

/// All state that a plain burst needs, apart from the doorbell.
#[derive(Debug)]
#[repr(align(64))]
pub(super) struct Alone {
    /// Counts the bursts.
    pub(super) bursts: u32,
    /// The next burst that is not plain.
    thorough: u32,
    /// The only active ring.
    pub(super) index: ChannelIdx,
    /// The place of that ring's next packet; `None` unless bursts are plain.
    watch: Option<Watch>,
    /// A lone packet whose last cell lies at this address or after it needs the help of its ring. 0
    /// if all packets need that help; then the ring has counted all packets before the watch.
    open_until: usize,
    /// Longest short packet that the ring carries.
    longest: u32,
    /// The number of the last plain burst with packets. If there was none, a number that is at
    /// least [`LATELY`] bursts in the past.
    busy: u32,
    /// Number of the burst's first frames that are copies of short packets.
    pub(super) plain: u32,
    /// The number of the burst's frames that have their data with them. Next to `plain`, so that a
    /// compiler writes both as one word.
    pub(super) count: u32,
}

/// The result of the look with which a burst begins.
pub(super) enum Look {
    /// Nothing has come.
    Nothing,
    /// A packet of one cell has come to this place, with this length.
    OneCell(Watch, u32),
    /// A short packet of several cells has come to this place, with this length.
    Short(Watch, u32),
    /// Another kind of packet has come.
    Other,
    /// This burst is not plain: it checks everything.
    Thorough,
}

impl Alone {
    /// The state before the first burst, whose number is the one after `bursts`.
    pub(super) const fn new(bursts: u32) -> Self {
        Self {
            bursts,
            thorough: bursts + 1,
            index: ChannelIdx::NONE,
            watch: None,
            open_until: 0,
            longest: 0,
            busy: bursts.wrapping_sub(LATELY),
            plain: 0,
            count: 0,
        }
    }

    /// Begins a burst. `rung`: a peer has rung the doorbell.
    #[inline(always)]
    pub(super) fn look(&mut self, rung: bool) -> Look {
        self.bursts = self.bursts.wrapping_add(1);
        (self.plain, self.count) = (0, 0);
        if self.bursts == self.thorough || rung {
            return Look::Thorough;
        }
        // SAFETY: plain bursts end before their ring goes, so its cells are alive.
        let Some((watch, len)) = self.watch.and_then(|it| Some((it, unsafe { it.next() }?))) else {
            return Look::Nothing;
        };
        if len as usize <= ONE_CELL {
            return Look::OneCell(watch, len);
        }
        // Otherwise packets of one cell would take a jump more.
        cold_path();
        match len {
            ..=SHORT => Look::Short(watch, len),
            _ => Look::Other,
        }
    }

    /// Copies short packets out of the only ring.
    #[inline(always)]
    pub(super) fn take(&mut self, incoming: &mut RxRing, shorts: &mut Shorts) -> Took {
        let took = shorts.take(&mut incoming.ring);
        self.watch = Some(incoming.ring.watch());
        self.took(took.packets);
        took
    }

    /// Copies the packet of one cell that a look has found, if it is the only one and needs no help
    /// of its ring. The ring must catch up later.
    #[inline(always)]
    pub(super) fn take_one(&mut self, watch: Watch, len: u32, shorts: &mut Shorts) -> bool {
        // SAFETY: plain bursts end before their ring goes, so its cells are alive, and the end is
        // that of the ring's run.
        let Some(next) = (unsafe { watch.after_lone(1, self.open_until) }) else {
            return false;
        };
        // SAFETY: the packet has that cell, and the length of a packet of one cell.
        unsafe { shorts.take_one(watch.cell(), len) };
        // The next packet's burst looks at that cell, whose line the sender may have claimed.
        // SAFETY: as above.
        unsafe { next.prefetch_after() };
        self.watch = Some(next);
        self.took(1);
        true
    }

    /// Goes past the short packet of several cells that a look has found, if it is the only one and
    /// needs no help of its ring. Then the caller copies it.
    #[inline(always)]
    pub(super) fn pass(&mut self, watch: Watch, len: u32, cells: usize) -> bool {
        if len > self.longest {
            return false;
        }
        // SAFETY: plain bursts end before their ring goes, so its cells are alive, and the end is
        // that of the ring's run.
        let Some(next) = (unsafe { watch.after_lone(cells, self.open_until) }) else {
            return false;
        };
        self.watch = Some(next);
        self.took(1);
        true
    }

    /// The place of the only ring's next packet, while bursts are plain.
    #[inline(always)]
    pub(super) const fn watch(&self) -> Option<Watch> {
        self.watch
    }

    /// Makes the only ring count the packets that were taken without its help; from now on, no
    /// packet is taken so. Returns that ring.
    #[inline(always)]
    pub(super) fn close<'a>(&mut self, rings: &'a mut [Option<RxRing>]) -> Option<&'a mut RxRing> {
        let incoming = rings.get_mut(self.index.at())?.as_mut()?;
        if self.open_until != 0 {
            self.open_until = 0;
            if let Some(watch) = self.watch {
                incoming.ring.catch_up(watch);
            }
        }
        Some(incoming)
    }

    /// Allows lone packets to be taken without the help of the ring, up to the end of its run.
    pub(super) fn open(&mut self, incoming: &RxRing) {
        self.longest = incoming.ring.longest().min(SHORT);
        self.open_until = incoming.ring.end_of_run();
    }

    /// Notes that the burst begins with `count` short packets.
    #[inline(always)]
    fn took(&mut self, count: usize) {
        self.busy = self.bursts;
        (self.plain, self.count) = (frames(count), frames(count));
    }

    /// Sets the number of the burst's frames that have their data with them.
    pub(super) fn set_count(&mut self, count: usize) {
        self.count = frames(count);
    }

    /// The last plain burst that had packets, if it was not long ago.
    pub(super) fn last_busy(&self) -> Option<u32> {
        let is_late = self.bursts.wrapping_sub(self.busy) < LATELY;
        is_late.then_some(self.busy)
    }

    /// Sets the place of the only ring's next packet, after another function has taken packets.
    #[inline(always)]
    pub(super) fn set_watch(&mut self, watch: Watch) {
        debug_assert_eq!(self.open_until, 0, "the ring has caught up");
        self.watch = Some(watch);
    }

    /// Makes bursts plain until housekeeping is due. `has_others`: housekeeping must check more
    /// than this ring.
    pub(super) fn begin(&mut self, index: ChannelIdx, watch: Watch, has_others: bool) {
        let gap = match has_others {
            true => HOUSEKEEPING,
            false => HOUSEKEEPING_OF_ONE,
        };
        self.index = index;
        self.watch = Some(watch);
        self.busy = self.bursts.wrapping_sub(LATELY);
        self.thorough = (self.bursts | (gap - 1)).wrapping_add(1);
    }

    /// Makes the next burst check everything.
    pub(super) fn end(&mut self) {
        self.thorough = self.bursts.wrapping_add(1);
    }

    /// Begins a burst that checks everything: returns the place of the only ring's next packet,
    /// which plain bursts store nowhere else.
    pub(super) fn take_watch(&mut self) -> Option<Watch> {
        self.end();
        self.open_until = 0;
        self.watch.take()
    }
}

/// Copies the cells of a packet whose bytes begin at `from`, including the word. Returns the
/// address of the packet's bytes.
///
/// # Safety
/// `from` points just after the word of the first of as many cells in a row as there are lines.
#[inline(always)]
unsafe fn copy_long(from: NonNull<u8>, to: &mut [Line]) -> NonNull<u8> {
    let lines: NonNull<Line> = NonNull::from(&mut *to).cast();
    // SAFETY: the first cell begins one word before `from`. There are as many cells as lines; a
    // cell is as long as a line and does not overlap it.
    unsafe {
        let cells = from.sub(WORD).cast::<Line>();
        lines.copy_from_nonoverlapping(cells, to.len());
    }
    compiler_fence(Ordering::SeqCst);
    // SAFETY: a line is longer than a word.
    unsafe { lines.cast::<u8>().add(WORD) }
}

#[expect(clippy::cast_possible_truncation, reason = "a burst has few frames")]
const fn frames(count: usize) -> u32 {
    count as u32
}
