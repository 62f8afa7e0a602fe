//! Packets of a device, in the arrays that DPDK takes and fills.
//!
//! Invariant: a packet belongs to one holder: a [`Packet`], or the one batch that has its handle
//! between `first` and `end`. The parent module fills the arrays.

use std::ffi::c_void;
use std::ptr::NonNull;

use dunlin_core::transport::RX_BURST;
use dunlin_packet::Payload;

/// Most packets of a batch.
pub(crate) const BATCH: usize = RX_BURST;

/// A packet, which belongs to its holder. It must go back by [`Pool::free`], or to the device.
#[derive(Debug)]
pub(crate) struct Packet {
    pub(super) handle: NonNull<c_void>,
    bytes: NonNull<u8>,
    len: u32,
}

// SAFETY: the packet belongs to its holder alone, in memory of the process.
unsafe impl Send for Packet {}

impl Packet {
    /// Its bytes.
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: the first `len` bytes are the packet's, and nothing else writes them.
        unsafe { std::slice::from_raw_parts(self.bytes.as_ptr(), self.len as usize) }
    }

    /// Its bytes, to write.
    #[inline]
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts_mut(self.bytes.as_ptr(), self.len as usize) }
    }

    /// Makes it shorter. A longer one keeps its length.
    #[inline]
    pub(crate) fn truncate(&mut self, len: usize) {
        self.len = self.len.min(u32::try_from(len).unwrap_or(u32::MAX));
    }
}

/// Up to [`BATCH`] packets, in the arrays that DPDK takes and fills.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(super) handles: [*mut c_void; BATCH],
    pub(super) bytes: [*mut u8; BATCH],
    pub(super) lens: [u32; BATCH],
    /// The packets have the places from `first` to below `end`.
    pub(super) first: usize,
    pub(super) end: usize,
    /// A bit for each place: the network marked the packet "congestion experienced".
    marked: u32,
    /// Whether the packets may be of several pools, in pieces, or shared.
    pub(super) is_mixed: bool,
}

const _: () = assert!(BATCH <= u32::BITS as usize);

// SAFETY: as for `Packet`.
unsafe impl Send for Batch {}

impl Default for Batch {
    fn default() -> Self {
        Self {
            handles: [std::ptr::null_mut(); BATCH],
            bytes: [std::ptr::null_mut(); BATCH],
            lens: [0; BATCH],
            first: 0,
            end: 0,
            marked: 0,
            is_mixed: false,
        }
    }
}

impl Batch {
    /// Number of packets.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.end - self.first
    }

    /// Whether there is no room for another packet.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.end == BATCH
    }

    /// Adds a packet.
    ///
    /// # Panics
    /// If the batch is full.
    #[inline]
    pub(crate) fn push(&mut self, packet: Packet) {
        let at = self.end;
        self.handles[at] = packet.handle.as_ptr();
        self.bytes[at] = packet.bytes.as_ptr();
        self.lens[at] = packet.len;
        self.end += 1;
        self.is_mixed = true;
    }

    /// Takes the first packet.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<Packet> {
        if self.first == self.end {
            return None;
        }
        let packet = self.packet(self.first);
        self.first += 1;
        Some(packet)
    }

    /// The bytes of packet `index`, counted from the first.
    ///
    /// # Panics
    /// If there is no such packet.
    #[inline]
    pub(crate) fn bytes(&self, index: usize) -> &[u8] {
        let at = self.first + index;
        assert!(at < self.end, "a frame of the burst");
        // `end` is at most the number of places.
        let at = at % BATCH;
        // SAFETY: the packet is ours, and has this many bytes.
        unsafe { std::slice::from_raw_parts(self.bytes[at], self.lens[at] as usize) }
    }

    /// The bytes of all packets together.
    #[inline]
    pub(crate) fn total(&self) -> u64 {
        let lens = self.lens[self.first..self.end].iter();
        lens.map(|len| u64::from(*len)).sum()
    }

    /// Whether the network marked packet `index`, counted from the first.
    #[inline]
    pub(crate) fn is_marked(&self, index: usize) -> bool {
        self.marked >> (self.first + index) & 1 != 0
    }

    /// Adds a packet of which only the payload is shown.
    ///
    /// # Panics
    /// If the batch is full, or the packet is shorter than that.
    pub(crate) fn push_payload(&mut self, packet: Packet, payload: Payload) {
        let Payload {
            start,
            len,
            congestion,
        } = payload;
        let part: *const [u8] = &raw const packet.bytes()[start..start + len];
        let at = self.end;
        self.push(packet);
        // SAFETY: the packet is ours now, and these are bytes of it.
        self.show(at, at, unsafe { &*part }, congestion);
    }

    /// Passes the packets from number `from` on to `find`, which returns the payload of each, and
    /// whether the network marked it; only the payload is shown from then on. Those that `find`
    /// refuses leave the batch, for `other`.
    #[inline]
    pub(crate) fn sift<E>(
        &mut self,
        from: usize,
        mut find: impl for<'a> FnMut(&'a [u8]) -> Result<(&'a [u8], bool), E>,
        mut other: impl FnMut(Packet, E),
    ) {
        let (begin, end) = (self.first + from, self.end.min(BATCH));
        // If one of them panics, packets are lost, but none has two owners.
        self.end = begin;
        let mut next = begin;
        for at in begin..end {
            // SAFETY: the packet is ours, and has this many bytes.
            let bytes =
                unsafe { std::slice::from_raw_parts(self.bytes[at], self.lens[at] as usize) };
            match find(bytes) {
                Ok((payload, is_marked)) => {
                    self.show(next, at, payload, is_marked);
                    next += 1;
                }
                Err(why) => other(self.packet(at), why),
            }
        }
        self.end = next;
    }

    /// Moves the packet at place `from` to place `to`, and shows only its payload. Both are below
    /// [`BATCH`].
    #[inline]
    fn show(&mut self, to: usize, from: usize, payload: &[u8], is_marked: bool) {
        let (to, from) = (to % BATCH, from % BATCH);
        self.handles[to] = self.handles[from];
        self.bytes[to] = payload.as_ptr().cast_mut();
        self.lens[to] = len_of(payload);
        if is_marked {
            self.marked |= 1 << to;
        }
    }

    /// Takes packets out of `spare`, one for each of `contents`, as far as there are some there and
    /// room here. `write` gets each, and its content, until it returns false. Each has `len` bytes
    /// then. Returns their number. All packets come from one pool.
    ///
    /// # Panics
    /// If a packet has no room for that many bytes.
    #[inline]
    pub(crate) fn fill<T>(
        &mut self,
        spare: &mut Self,
        len: usize,
        contents: &[T],
        mut write: impl FnMut(&mut [u8], &T) -> bool,
    ) -> usize {
        let (from, to) = (spare.first, self.end);
        let most = contents.len().min(spare.len()).min(BATCH - to);
        let rooms = spare.lens[from..from + most].iter();
        let room = rooms.min().map_or(0, |room| *room as usize);
        assert!(most == 0 || len <= room, "a packet has room for a frame");
        let mut count = 0;
        for (content, bytes) in contents.iter().zip(&spare.bytes[from..from + most]) {
            // SAFETY: the packet is ours alone, and has at least this many bytes.
            let bytes = unsafe { std::slice::from_raw_parts_mut(*bytes, room) };
            if !write(bytes, content) {
                break;
            }
            count += 1;
        }
        let (old, new) = (from..from + count, to..to + count);
        self.handles[new.clone()].copy_from_slice(&spare.handles[old.clone()]);
        self.bytes[new.clone()].copy_from_slice(&spare.bytes[old]);
        self.lens[new].fill(u32::try_from(len).expect("it has room"));
        self.is_mixed |= spare.is_mixed;
        spare.first += count;
        self.end += count;
        count
    }

    /// The packet at a place, of which the caller takes care that it leaves the batch.
    #[inline]
    fn packet(&self, at: usize) -> Packet {
        Packet {
            handle: NonNull::new(self.handles[at]).expect("DPDK names packets by addresses"),
            bytes: NonNull::new(self.bytes[at]).expect("a packet has memory"),
            len: self.lens[at],
        }
    }

    /// Makes an empty batch one with room for [`BATCH`] packets again.
    #[inline]
    pub(crate) fn clear(&mut self) {
        (self.first, self.end, self.marked) = (0, 0, 0);
        self.is_mixed = false;
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
