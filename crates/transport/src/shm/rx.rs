//! The receiving half: polls the rings that have been busy lately, and finds packets in the others
//! through the doorbell.
//!
//! A ring is either *active*: every burst polls it; or *parked*: this half ignores it until the
//! peer rings the doorbell. While there are only a few rings, all stay active as long as the thread
//! is awake, so a packet costs only the cache line in which it lies. If there are more rings, those
//! that stay empty are parked.
//!
//! Invariants:
//! - Before a ring leaves the active list, its mark is set, a fence has run, and the ring was found
//!   empty once more. So either this half sees a packet, or the sender sees the mark.
//! - While the half sleeps, each ring is marked `Asleep` in memory that only its own peer can
//!   write, so no peer can prevent another from waking the thread (`house`).
//! - Packets are copied out of the ring before they are read, because the peer can write there;
//!   packets that are too long for a lane stay in place if the channel is trusted. A ring's cells
//!   are given back when it is drained again, by a later burst than the one that showed their
//!   packets.
//! - The work of a burst is bounded, whatever peers write into rings and doorbell. Packets whose
//!   data must be copied from elsewhere are taken out of the rings as they come, but a burst shows
//!   only a few of them, and only if it has no other packets. So the endpoint answers the other
//!   packets before it copies such data.

mod house;
mod longs;
mod named;
mod plain;
mod rx_ring;
mod shorts;
mod waiting;

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use dunlin_core::transport::{Begun, Frame, RX_BURST, Rx};

use longs::Longs;
use rx_ring::{Alone, FrameBytes, HOUSEKEEPING, RxRing, Taken};
pub(crate) use shorts::ShortFrames;
use shorts::{SHORT, Shorts};
use waiting::Waiting;

use super::cells::cells_of;
use super::channel::{Bell, Channel, ChannelIdx};
use super::regions::{Known, MapLimit};
use super::ring::watch::Watch;
use super::ring::{Consumer, Parked};
use crate::counters::Counters;

/// The receiving half of an endpoint on shared memory.
#[derive(Debug)]
pub struct ShmRx {
    alone: Alone,
    frames: [FrameBytes; RX_BURST],
    /// Copies of short packets. Addresses of frames point there, so the copies must not move with
    /// the half.
    shorts: Shorts,
    /// Copies of longer packets, one after the other.
    long: Longs,
    /// Packets whose data lies elsewhere. Those that a burst shows come after all its other frames.
    waiting: Waiting,
    /// The limits for mapping peers' memory.
    limit: MapLimit,
    /// The rings, by the index of their peers.
    rings: Vec<Option<RxRing>>,
    /// The rings that every burst polls.
    active: Vec<Polled>,
    /// The rings that this half has parked with the mark [`Parked::Awake`]; while it sleeps, also
    /// the rings that were active before. Some of them may be active again.
    dozing: Vec<ChannelIdx>,
    /// The index in `active` where the next burst begins. It advances, so that no ring is always
    /// last.
    first: usize,
    /// The ring that the next round over parked rings checks first.
    round: usize,
    /// Rings that were removed while their frames may still be borrowed.
    retired: Vec<RxRing>,
    bell: Bell,
    counters: Counters,
}

/// The state of a ring that a burst needs while the ring is empty.
#[derive(Clone, Copy, Debug)]
struct Polled {
    watch: Watch,
    index: ChannelIdx,
}

// SAFETY: the places point into memory that the half owns or keeps mapped, and move with it.
unsafe impl Send for ShmRx {}

/// Number of long packets that fit into one burst in addition to short ones. Further long packets
/// come with the next burst, so that a copy is still in the first-level cache when it is read.
const LONG_FRAMES: usize = 4;

/// With up to this many rings, a burst tries to take a packet from each without a check, which
/// saves 15 ns when one comes. With more rings it reads their words first, which saves 10 ns a
/// ring.
const ALONE: usize = 2;

impl ShmRx {
    pub(super) fn new(bell: Bell, longest: u32, limit: MapLimit) -> Self {
        let longest_lines = cells_of(longest.min(0xFFFF)) as usize;
        Self {
            alone: Alone::new(waiting::LATELY),
            frames: [FrameBytes {
                bytes: NonNull::dangling(),
                len: 0,
            }; RX_BURST],
            shorts: Shorts::new(),
            long: Longs::new(LONG_FRAMES * longest_lines),
            waiting: Waiting::new(),
            limit,
            rings: Vec::new(),
            active: Vec::new(),
            dozing: Vec::new(),
            first: 0,
            round: 0,
            retired: Vec::new(),
            bell,
            counters: Counters::default(),
        }
    }

    /// The counters of this half.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The number of the burst's frames that contain their data; those of packets by reference
    /// follow.
    #[inline(always)]
    const fn count(&self) -> usize {
        self.alone.count as usize
    }

    /// Bytes of peers' memory that are mapped.
    pub(super) fn mapped(&self) -> u64 {
        let rings = self.rings.iter().flatten();
        rings.map(|ring| ring.known.mapped()).sum()
    }

    /// Makes the half give cells back to present peers after every `cells` read cells; with `None`,
    /// the default, after every eighth of the ring. For experiments: this shows how much eRPC
    /// §4.1.1 saves with one descriptor for many packets.
    pub fn give_back_together(&mut self, cells: Option<u32>) {
        self.alone.end();
        for incoming in self.rings.iter_mut().flatten() {
            incoming.ring.set_part(cells);
        }
    }

    /// Polls a new ring from now on.
    pub(super) fn add(&mut self, index: usize, ring: Consumer, channel: Arc<Channel>) {
        if self.rings.len() <= index {
            self.rings.resize_with(index + 1, || None);
        }
        self.rings[index] = Some(RxRing {
            ring,
            trusted: channel.trusted,
            active: false,
            dozes: false,
            last_busy: self.alone.bursts,
            known: Known::new(self.limit),
            unmapped: 0,
            channel,
        });
        // Each ring is in each of these lists at most once, so a later burst or sleep allocates
        // nothing.
        let rings = self.rings.len();
        self.active.reserve(rings - self.active.len());
        self.dozing.reserve(rings - self.dozing.len());
        self.activate(index);
    }

    /// Stops polling a ring. Frames of the current burst stay valid.
    pub(super) fn remove(&mut self, index: usize) {
        self.alone.end();
        if self.alone.index.at() == index {
            self.alone.take_watch();
        }
        if let Some(ring) = self.rings.get_mut(index).and_then(Option::take) {
            self.active.retain(|polled| polled.index.at() != index);
            self.dozing.retain(|other| other.at() != index);
            self.retired.push(ring);
            self.waiting.forget_ring(index);
        }
    }

    /// Parks all rings and marks the endpoint as asleep. If a packet has come, returns false and
    /// leaves all rings as they were.
    pub(super) fn fall_asleep(&mut self) -> bool {
        if self.waiting.has_others() {
            return false;
        }
        self.alone.end();
        self.alone.close(&mut self.rings);
        self.mark(Parked::Asleep, Parked::Asleep);
        fence(Ordering::SeqCst);
        let has_packets = self
            .active()
            .chain(self.dozing())
            .any(|ring| ring.ring.has_next());
        if has_packets || !self.bell.fall_asleep() {
            self.stay_awake();
            return false;
        }
        self.doze();
        true
    }

    /// Notes that the thread runs again.
    pub(super) fn wake_up(&mut self) {
        self.bell.wake_up();
        self.mark(Parked::No, Parked::Awake);
    }

    /// Counts the peers that woke us.
    pub(super) fn count_wakeups(&mut self, woken: u64) {
        self.counters.wakeups_received += woken;
    }

    fn activate(&mut self, index: usize) {
        self.alone.end();
        // Peers can write to the doorbell, so the index may be any number.
        let Some(Some(ring)) = self.rings.get_mut(index) else {
            return;
        };
        ring.last_busy = self.alone.bursts;
        if !ring.active {
            ring.unpark();
            self.active.push(Polled {
                watch: ring.ring.watch(),
                index: ChannelIdx::new(index),
            });
        }
    }

    fn active(&self) -> impl Iterator<Item = &RxRing> {
        let rings = &self.rings;
        self.active
            .iter()
            .filter_map(|polled| rings[polled.index.at()].as_ref())
    }

    /// Takes packets of the active ring at index `place`, as many as fit into this burst. Returns
    /// false if the ring is corrupt.
    #[inline]
    fn drain(&mut self, place: usize) -> bool {
        let before = self.count();
        let mut shown = before;
        let polled = &mut self.active[place];
        let Some(Some(incoming)) = self.rings.get_mut(polled.index.at()) else {
            return true;
        };
        // The packets that this ring has shown so far belong to an earlier burst.
        incoming.ring.give_back();
        let (mut total, mut sound, mut others) = (0, true, false);
        while shown < RX_BURST {
            let round = shown;
            // Long packets often come one after another.
            while shown < RX_BURST
                && let room = self.long.room()
                && let Some(packet) = incoming.ring.take_long(SHORT, room.len())
            {
                let (frame, lines) = incoming.show_long(packet, room);
                self.frames[shown] = frame;
                self.long.keep(lines);
                shown += 1;
                total += u64::from(frame.len);
            }
            let (first, cells) = (shown, *incoming.ring.cells());
            let (frames, shorts) = (&mut self.frames[first..], &mut self.shorts);
            let most = frames.len();
            let (taken, more) = incoming.ring.take_run(most, SHORT, |place, packet| {
                // SAFETY: the ring has found the packet, so its cells lie inside.
                let bytes = unsafe { shorts.copy(first + place, &cells, packet) };
                let len = packet.len;
                frames[place] = FrameBytes { bytes, len };
                total += u64::from(len);
            });
            shown += taken;
            if !more {
                break;
            }
            others = true;
            if shown > round {
                continue;
            }
            let room = self.long.room();
            match incoming.take_other(room, polled.index, &mut self.waiting) {
                Taken::Nothing => break,
                Taken::Corrupt => {
                    sound = false;
                    break;
                }
                Taken::Packet { frame, lines } => {
                    self.frames[shown] = frame;
                    self.long.keep(lines);
                    shown += 1;
                    total += u64::from(frame.len);
                }
            }
        }
        self.alone.set_count(shown);
        if shown > before || others {
            polled.watch = incoming.ring.watch();
            incoming.last_busy = self.alone.bursts;
            self.counters.rx_packets += (shown - before) as u64;
            self.counters.rx_bytes += total;
            self.counters.rx_unmapped += std::mem::take(&mut incoming.unmapped);
        }
        sound
    }
}

impl Rx for ShmRx {
    #[inline(always)]
    fn burst(&mut self) -> usize {
        self.whole_burst()
    }

    #[inline(always)]
    fn begin(&mut self) -> Begun {
        self.begin_burst()
    }

    #[inline(always)]
    fn finish(&mut self, begun: u32) -> usize {
        self.finish_burst(begun)
    }

    #[inline(always)]
    fn whole(&self, index: usize) -> Option<&[u8]> {
        if index < self.alone.plain as usize {
            // SAFETY: the burst took that number of packets in rows.
            return unsafe { self.shorts.frames(index) }.next();
        }
        self.longer(index)
    }

    #[inline(always)]
    fn first(&self) -> Option<&[u8]> {
        self.first_short()
    }

    #[inline(always)]
    fn lined_up(&self, first: usize) -> impl ExactSizeIterator<Item = &[u8]> + Clone {
        self.short_frames(first)
    }

    #[inline]
    fn frame(&self, index: usize) -> Frame<'_> {
        match self.whole(index) {
            Some(bytes) => Frame::new(bytes),
            None => self.named_frame(index - self.count()),
        }
    }
}

impl ShmRx {
    /// Plain frames of one length, from `first` on; none if the frame `first` is not plain.
    #[inline(always)]
    pub(crate) fn short_frames(&self, first: usize) -> ShortFrames<'_> {
        match first < self.alone.plain as usize {
            // SAFETY: the burst took that number of packets in rows.
            true => unsafe { self.shorts.frames(first) },
            false => ShortFrames::default(),
        }
    }

    /// The bytes of a frame that is not plain. `None` if its data lies elsewhere.
    #[inline(never)]
    fn longer(&self, index: usize) -> Option<&[u8]> {
        let FrameBytes { bytes, len } = *self.frames[..self.count()].get(index)?;
        // SAFETY: staging memory, or a ring whose cells a later burst gives back with `&mut self`.
        Some(unsafe { std::slice::from_raw_parts(bytes.as_ptr(), len as usize) })
    }

    /// Runs a burst with all checks, which may have taken `count` packets already.
    #[inline(never)]
    fn burst_thoroughly(&mut self) -> usize {
        self.alone.close(&mut self.rings);
        if let Some(watch) = self.alone.take_watch() {
            let index = self.alone.index;
            let alone = self.active.iter_mut().find(|polled| polled.index == index);
            alone.into_iter().for_each(|polled| polled.watch = watch);
            self.note_busy();
        }
        self.long.clear();
        // Packets by reference have their turn now, if some wait and the last burst showed none of
        // them.
        let their_turn = !self.waiting.is_empty() && self.waiting.forget_shown();
        // Housekeeping happens even in a burst that shows packets by reference, because peers can
        // arrange that every burst in which housekeeping is due shows such packets.
        if self.alone.bursts.is_multiple_of(HOUSEKEEPING) {
            self.keep_house();
        }
        if their_turn {
            return self.show();
        }
        if self.bell.has_rung() {
            self.answer_bell();
        }
        self.poll();
        let shown = self.show();
        if let ([polled], true) = (&self.active[..], self.waiting.is_empty())
            && let Some(Some(incoming)) = self.rings.get(polled.index.at())
        {
            let has_others = self.rings.len() > 1 || !self.retired.is_empty();
            let watch = incoming.ring.watch();
            self.alone.begin(polled.index, watch, has_others);
        }
        self.count() + shown
    }

    /// Continues a burst of `count` short packets with packets of other kinds.
    #[inline(never)]
    fn go_on(&mut self) -> usize {
        let before = self.count();
        self.alone.close(&mut self.rings);
        self.long.clear();
        self.note_busy();
        if !self.drain(0) {
            self.close_corrupt(self.alone.index);
            return self.count();
        }
        if !self.waiting.is_empty() {
            self.alone.end();
        }
        if self.count() == before {
            self.look_at_head();
        }
        self.alone.set_watch(self.active[0].watch);
        self.count() + self.show()
    }

    /// Points the only ring's watch at its head again, because the peer has withdrawn the packet
    /// that a look found.
    #[cold]
    fn look_at_head(&mut self) {
        let polled = &mut self.active[0];
        if let Some(Some(incoming)) = self.rings.get(polled.index.at()) {
            polled.watch = incoming.ring.watch();
        }
    }

    /// Takes packets of the active rings.
    fn poll(&mut self) {
        let mut corrupt = None;
        let rings = self.active.len();
        let after = |place| if place + 1 < rings { place + 1 } else { 0 };
        let mut place = self.first;
        for _ in 0..rings {
            place = after(place);
            let Polled { watch, index } = self.active[place];
            // SAFETY: an active ring is in the table, which keeps its cells alive.
            let worth_it = rings <= ALONE || unsafe { watch.has_next() };
            if worth_it && !self.drain(place) {
                corrupt = Some(index);
            }
        }
        self.first = after(self.first);
        corrupt
            .into_iter()
            .for_each(|index| self.close_corrupt(index));
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
