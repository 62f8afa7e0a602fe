//! Received packets, in the arrays that DPDK fills, and the bytes of them that are shown.
//!
//! Most packets of a burst have the same headers and the same length as the packets before them.
//! For these, nothing is stored: their payloads lie at the same distance from their handles.
//!
//! Invariants: the packets at the places below `count` are ours, and callers see a part of each.
//! For the first `alike.count` packets, `alike` says where that part lies; for the others, `bytes`
//! and `lens` do. The `hidden` packets after them are ours too, and callers see nothing of them:
//! they wait to be shown, or have been. The packets at `fresh` are ours too, and have just come.
//! The parent module fills the arrays.

use std::ffi::c_void;
use std::ops::Range;

use dunlin_packet::Payload;

use super::packet::{BATCH, Packet};

/// Up to [`BATCH`] received packets.
#[derive(Debug)]
pub(crate) struct Received {
    handles: [*mut c_void; BATCH],
    bytes: [*mut u8; BATCH],
    lens: [u32; BATCH],
    count: usize,
    alike: Alike,
    hidden: usize,
    /// How many of the hidden packets are alike; `None` if they have been shown.
    waiting: Option<usize>,
    /// A bit for each place: the network marked the packet "congestion experienced".
    marked: u32,
    fresh: Range<usize>,
    /// Bytes from the handle of a fresh packet to its first byte, if this distance is the same for
    /// all fresh packets. Otherwise 0, and `bytes` has the addresses.
    start: usize,
    /// Whether the packets may be of several pools, in pieces, or shared.
    is_mixed: bool,
}

/// Where the payloads of packets lie, in bytes from their handles. None of the packets is marked.
#[derive(Clone, Copy, Debug, Default)]
struct Alike {
    count: usize,
    start: usize,
    len: usize,
}

const _: () = assert!(BATCH <= u32::BITS as usize);

// SAFETY: as for `Packet`.
unsafe impl Send for Received {}

impl Default for Received {
    fn default() -> Self {
        Self {
            handles: [std::ptr::null_mut(); BATCH],
            bytes: [std::ptr::null_mut(); BATCH],
            lens: [0; BATCH],
            count: 0,
            alike: Alike::default(),
            hidden: 0,
            waiting: None,
            marked: 0,
            fresh: 0..0,
            start: 0,
            is_mixed: false,
        }
    }
}

impl Received {
    /// The number of shown packets.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// Whether there is no room for another packet.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.count == BATCH
    }

    /// The places for up to `most` further packets: for handles, first bytes and lengths. Call
    /// [`Self::on_received`] for those that have come, and then [`Self::sift`].
    #[inline]
    pub(super) fn places(
        &mut self,
        most: usize,
    ) -> (&mut [*mut c_void], &mut [*mut u8], &mut [u32]) {
        debug_assert!(self.fresh.is_empty(), "its packets would be lost");
        let places = self.count..BATCH.min(self.count + most);
        (
            &mut self.handles[places.clone()],
            &mut self.bytes[places.clone()],
            &mut self.lens[places],
        )
    }

    /// Notes that packets have come to the first `count` of those places. `start`: the bytes from
    /// the handle of each to its first byte; 0 if the places have the addresses.
    #[inline]
    pub(super) fn on_received(&mut self, count: usize, start: usize) {
        self.fresh = self.count..self.count + count;
        self.start = start;
        self.is_mixed |= start == 0;
    }

    /// Shows the bytes at `place` as the payload of each fresh packet, and stops at the first
    /// packet that is not as long as the first one, or that `knows` refuses. Does nothing if other
    /// packets are shown, or if the handles do not say where the packets lie.
    #[inline]
    pub(crate) fn show_alike(&mut self, place: Range<usize>, knows: impl Fn(&[u8]) -> bool) {
        let first_len = self.lens[0];
        let len = first_len as usize;
        if self.count > 0 || self.start == 0 || place.end > len || place.is_empty() {
            return;
        }
        let fresh = self.handles.iter().zip(&self.lens);
        let mut count = 0;
        for (handle, packet_len) in fresh.take(self.fresh.end) {
            let bytes = handle.cast::<u8>().wrapping_add(self.start);
            // SAFETY: if the packet has this length, it is ours, and its bytes lie there.
            if *packet_len != first_len || !knows(unsafe { std::slice::from_raw_parts(bytes, len) })
            {
                break;
            }
            count += 1;
        }
        self.alike = Alike {
            count,
            start: self.start + place.start,
            len: place.len(),
        };
        self.count = count;
        self.fresh.start = count;
    }

    /// Passes the fresh packets on to `find`, which returns the payload of each, and whether the
    /// network marked it; only the payload is shown. Packets that `find` refuses leave the batch,
    /// and go to `other`.
    #[inline]
    pub(crate) fn sift<E>(
        &mut self,
        mut find: impl for<'a> FnMut(&'a [u8]) -> Result<(&'a [u8], bool), E>,
        mut other: impl FnMut(Packet, E),
    ) {
        // If one of them panics, packets are lost, but none has two owners.
        for at in std::mem::take(&mut self.fresh) {
            let (handle, bytes, len) = self.fresh_packet(at);
            // SAFETY: the packet is ours, and has this many bytes.
            match find(unsafe { std::slice::from_raw_parts(bytes, len as usize) }) {
                Ok((payload, is_marked)) => self.show(handle, payload, is_marked),
                // SAFETY: as above, and its place is free now.
                Err(why) => other(unsafe { Packet::new(handle, bytes, len) }, why),
            }
        }
    }

    /// The handle, the first byte and the length of the fresh packet at a place.
    #[inline]
    fn fresh_packet(&self, at: usize) -> (*mut c_void, *mut u8, u32) {
        let handle = self.handles[at];
        let bytes = match self.start {
            0 => self.bytes[at],
            start => handle.cast::<u8>().wrapping_add(start),
        };
        (handle, bytes, self.lens[at])
    }

    /// Adds a packet, and shows only its payload.
    ///
    /// # Panics
    /// If the batch is full, or the payload ends after the packet.
    pub(crate) fn push_payload(&mut self, packet: Packet, payload: Payload) {
        let part: *const [u8] = &raw const packet.bytes()[payload.range()];
        self.is_mixed = true;
        // SAFETY: the packet is ours now, and these are bytes of it.
        self.show(packet.into_handle(), unsafe { &*part }, payload.congestion);
    }

    /// Shows the payload of a packet at the next place.
    #[inline]
    fn show(&mut self, handle: *mut c_void, payload: &[u8], is_marked: bool) {
        let at = self.count;
        self.handles[at] = handle;
        self.bytes[at] = payload.as_ptr().cast_mut();
        self.lens[at] = len_of(payload);
        self.marked |= u32::from(is_marked) << at;
        self.count += 1;
    }

    /// Shows only the first half of the packets, or one more, until [`Self::show_rest`].
    pub(crate) fn hide_half(&mut self) {
        let half = self.count.div_ceil(2);
        self.hidden = self.count - half;
        self.waiting = Some(self.alike.count.saturating_sub(half));
        self.alike.count = self.alike.count.min(half);
        self.count = half;
    }

    /// Whether hidden packets wait to be shown.
    #[inline]
    pub(crate) fn has_rest(&self) -> bool {
        self.waiting.is_some()
    }

    /// Shows the packets that wait, in place of those that are shown.
    #[inline(never)]
    pub(crate) fn show_rest(&mut self) {
        let Some(alike) = self.waiting.take() else {
            return;
        };
        let (first, all) = (self.count, self.count + self.hidden);
        self.handles[..all].rotate_left(first);
        self.bytes[..all].rotate_left(first);
        self.lens[..all].rotate_left(first);
        self.marked >>= first;
        self.alike.count = alike;
        (self.count, self.hidden) = (self.hidden, first);
    }

    /// Whether packet `index` is one of those that are shown alike.
    #[inline]
    pub(crate) fn is_alike(&self, index: usize) -> bool {
        index < self.alike.count
    }

    /// The bytes shown of the packets that are alike, from packet `first` on.
    #[inline]
    pub(crate) fn alike_from(&self, first: usize) -> impl ExactSizeIterator<Item = &[u8]> + Clone {
        let Alike { count, start, len } = self.alike;
        let handles = self.handles.get(first..count).unwrap_or_default();
        handles.iter().map(move |handle| {
            // SAFETY: the packet is ours, and `show_alike` found these bytes in it.
            unsafe { std::slice::from_raw_parts(handle.cast::<u8>().wrapping_add(start), len) }
        })
    }

    /// The bytes shown of packet `index`.
    ///
    /// # Panics
    /// If there is no such packet.
    #[inline]
    pub(crate) fn bytes(&self, index: usize) -> &[u8] {
        if self.is_alike(index) {
            let Alike { start, len, .. } = self.alike;
            // The place of such a packet is below `BATCH`, so `% BATCH` changes nothing, but saves
            // the check of the index.
            let bytes = self.handles[index % BATCH].cast::<u8>().wrapping_add(start);
            // SAFETY: the packet is ours, and `show_alike` found these bytes in it.
            return unsafe { std::slice::from_raw_parts(bytes, len) };
        }
        assert!(index < self.count, "a frame of the burst");
        // SAFETY: the packet is ours, and `show` had these bytes.
        unsafe { std::slice::from_raw_parts(self.bytes[index], self.lens[index] as usize) }
    }

    /// Whether the network marked packet `index`.
    #[inline]
    pub(crate) fn is_marked(&self, index: usize) -> bool {
        self.marked >> index & 1 != 0
    }

    /// All shown bytes together.
    #[inline]
    pub(crate) fn total(&self) -> u64 {
        let others = self.lens[self.alike.count..self.count].iter();
        let others: u64 = others.map(|len| u64::from(*len)).sum();
        (self.alike.count * self.alike.len) as u64 + others
    }

    /// The handles of all packets, which are no longer ours, and whether the packets may be of
    /// several pools, in pieces, or shared.
    #[inline]
    pub(super) fn give_up(&mut self) -> (&[*mut c_void], bool) {
        let count = std::mem::take(&mut self.count) + std::mem::take(&mut self.hidden);
        self.waiting = None;
        self.alike.count = 0;
        self.marked = 0;
        let is_mixed = std::mem::take(&mut self.is_mixed);
        (&self.handles[..count], is_mixed)
    }
}

/// The length of a part of a packet.
#[inline]
#[expect(
    clippy::cast_possible_truncation,
    reason = "packets have fewer than 2^32 bytes"
)]
const fn len_of(part: &[u8]) -> u32 {
    part.len() as u32
}

#[cfg(test)]
mod tests;
