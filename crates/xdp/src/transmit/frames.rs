//! Frames on their way out: filled from packets, put into the transmit ring, and taken back when
//! the kernel has sent them. The endpoints of a queue share the completion ring, by which the
//! kernel gives sent frames back.
//!
//! Invariants: a frame of our part is free, or in an [`Open`] datagram, or lent to the kernel. A
//! datagram is in the ring whole or not at all. A frame that the kernel gives back without having
//! it is counted, and changes nothing. Called by `transmit`.

use std::sync::Arc;
use std::time::Duration;

use dunlin_core::transport::{Lane, LanePacket};

use crate::device::{Device, Kicked};
use crate::ring::{Desc, Producer};
use crate::shared::SharedRings;
use crate::umem::{FRAME, Part};
use dunlin_packet::{Header, MAX_HEADER, Stamp, Sum};

/// Most frames of one datagram.
const PIECES: usize = 4;

/// Frames that the kernel may have before a burst asks for those that it has sent. The fewer, the
/// fewer frames are in use, and the more of them are in the processor's caches.
const UNCLAIMED: usize = 32;

/// Most kicks at the end of an endpoint, for packets that the kernel does not take at once, and the
/// pause after each.
const LAST_KICKS: u32 = 50;
const BETWEEN_KICKS: Duration = Duration::from_millis(1);

/// A datagram that is being filled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Open {
    frames: [u32; PIECES],
    /// Frames in use, and bytes of the last of them.
    count: usize,
    at: usize,
    payload: usize,
    sum: Sum,
    packets: u32,
}

impl Open {
    /// Bytes of its packets.
    #[inline]
    pub(crate) fn payload(&self) -> usize {
        self.payload
    }

    /// Its packets.
    #[inline]
    pub(crate) fn packets(&self) -> u32 {
        self.packets
    }
}

/// Counters of the frames of an endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Met {
    /// Datagrams put into the ring.
    pub(crate) datagrams: u64,
    /// System calls.
    pub(crate) calls: u64,
    /// Entries of the completion ring that no honest kernel writes.
    pub(crate) bad: u64,
}

/// Frames that the kernel does not have: those from place `first` on. The first is used first.
#[derive(Debug)]
struct Free {
    frames: Box<[u32]>,
    first: usize,
}

/// The frames for sending, and their two rings.
#[derive(Debug)]
pub(crate) struct Frames {
    part: Part,
    free: Free,
    tx: Producer<Desc>,
    shared: Arc<SharedRings>,
    /// The number of our share of the frames.
    share: usize,
    device: Arc<dyn Device>,
    /// Whether frames were published that the kernel may not have seen.
    pending: bool,
    met: Met,
}

impl Frames {
    /// The frames of `part`, which is share number `share`. Those that the kernel does not have are
    /// free.
    pub(crate) fn new(
        part: Part,
        share: usize,
        tx: Producer<Desc>,
        shared: Arc<SharedRings>,
        device: Arc<dyn Device>,
    ) -> Self {
        Self {
            free: Free::new(&part),
            part,
            tx,
            shared,
            share,
            device,
            pending: false,
            met: Met::default(),
        }
    }

    /// Begins a datagram; `None` if no frame is free.
    #[inline]
    pub(crate) fn open(&mut self, header: &Header) -> Option<Open> {
        let first = self.take()?;
        Some(Open {
            frames: [first; PIECES],
            count: 1,
            at: header.bytes(),
            payload: 0,
            sum: Sum::default(),
            packets: 0,
        })
    }

    /// Adds a packet of two parts. False if no frame is free, or the datagram would need too many;
    /// the caller must then drop it with [`Self::discard`].
    #[inline]
    pub(crate) fn append(&mut self, open: &mut Open, inline: &[u8], data: &[u8]) -> bool {
        open.packets += 1;
        self.write(open, inline) && self.write(open, data)
    }

    #[inline]
    fn write(&mut self, open: &mut Open, mut bytes: &[u8]) -> bool {
        open.sum.add(bytes);
        open.payload += bytes.len();
        while !bytes.is_empty() {
            if open.at == FRAME {
                if open.count == PIECES {
                    return false;
                }
                let Some(next) = self.take() else {
                    return false;
                };
                open.frames[open.count] = next;
                open.count += 1;
                open.at = 0;
            }
            let (now, later) = bytes.split_at(bytes.len().min(FRAME - open.at));
            let last = open.frames[open.count - 1];
            self.part
                .bytes_mut(last, open.at, now.len())
                .copy_from_slice(now);
            open.at += now.len();
            bytes = later;
        }
        true
    }

    /// Frees the frames of a datagram that is not sent.
    pub(crate) fn discard(&mut self, open: &Open) {
        for frame in &open.frames[..open.count] {
            self.free.push(*frame);
        }
    }

    /// Puts a datagram into the ring. False if the ring is full; the datagram is then discarded.
    #[inline]
    pub(crate) fn close(&mut self, open: &Open, header: &Header) -> bool {
        let pieces = u32::try_from(open.count).expect("a few");
        if self.tx.room(pieces) < pieces {
            self.discard(open);
            return false;
        }
        let head = self.part.bytes_mut(open.frames[0], 0, header.bytes());
        header.write(head, open.payload, open.sum);
        for (index, &frame) in open.frames[..open.count].iter().enumerate() {
            let is_last = index + 1 == open.count;
            let len = if is_last { open.at } else { FRAME };
            let addr = self
                .part
                .lend(frame)
                .expect("a frame of an open datagram is ours");
            self.tx.push(Desc {
                addr,
                len: u32::try_from(len).expect("a frame has 4096 bytes"),
                options: if is_last { 0 } else { Desc::CONTINUES },
            });
        }
        self.met.datagrams += 1;
        self.pending = true;
        true
    }

    /// Puts a datagram of one short packet into the ring. False if there is no frame for it, or no
    /// place in the ring.
    #[inline]
    pub(crate) fn send(&mut self, headers: &Stamp, payload: &[u8]) -> bool {
        if self.tx.room(1) == 0 {
            return false;
        }
        let Some(frame) = self.take() else {
            return false;
        };
        let (start, len) = (headers.bytes(), headers.bytes() + payload.len());
        let bytes = self.part.bytes_mut(frame, 0, len.max(MAX_HEADER));
        headers.begin(bytes);
        let mut sum = Sum::default();
        sum.copy(payload, &mut bytes[start..len]);
        headers.finish(bytes, sum);
        let addr = self.part.lend(frame).expect("a free frame is ours");
        self.tx.push(Desc {
            addr,
            len: u32::try_from(len).expect("a frame has 4096 bytes"),
            options: 0,
        });
        self.met.datagrams += 1;
        self.pending = true;
        true
    }

    /// Puts datagrams with these headers into the ring, one for each of the first packets that are
    /// like `first`. Returns their number, which is less if there are too few frames or places in
    /// the ring.
    #[inline]
    pub(crate) fn send_alike(
        &mut self,
        headers: &Stamp,
        lane: &Lane,
        first: LanePacket,
        packets: &[LanePacket],
    ) -> usize {
        if self.free.is_empty() {
            self.refill();
        }
        let len = u32::try_from(headers.bytes() + headers.payload()).expect("it fits a line");
        let Self { part, free, tx, .. } = self;
        let (mut filler, mut count) = (part.filler(), 0);
        for (place, (packet, frame)) in tx.places().zip(packets.iter().zip(free.all())) {
            if !packet.is_like(first) {
                break;
            }
            // Zeros follow a packet that is shorter than its line.
            let line = lane.line(*packet);
            let Some(addr) = filler.fill(*frame, |bytes| headers.fill(bytes, line)) else {
                break;
            };
            place.write(Desc {
                addr,
                len,
                options: 0,
            });
            count += 1;
        }
        tx.advance(count);
        let count = count as usize;
        free.first += count;
        self.met.datagrams += count as u64;
        self.pending |= count > 0;
        count
    }

    /// Makes the kernel send the packets in the ring. False if the interface is down.
    #[inline]
    pub(crate) fn kick(&mut self) -> bool {
        if !self.pending {
            return true;
        }
        self.tx.publish();
        if !self.tx.wants_wakeup() {
            self.pending = false;
            return true;
        }
        let mut waiting = u32::MAX;
        loop {
            self.met.calls += 1;
            let answer = self.device.kick();
            let left = match answer {
                Kicked::Again => self.tx.waiting(),
                Kicked::Done | Kicked::Down => 0,
            };
            if left == 0 {
                self.pending = false;
                self.reclaim_if_many();
                return answer != Kicked::Down;
            }
            if left >= waiting {
                // The kernel has no memory now; the next call tries again.
                return true;
            }
            waiting = left;
            self.reclaim();
        }
    }

    /// The counters.
    pub(crate) fn met(&self) -> Met {
        self.met
    }

    /// Whether the kernel has moved a ring's position to an impossible place.
    pub(crate) fn is_broken(&self) -> bool {
        let [_, completion] = self.shared.broken();
        self.tx.is_broken() || completion
    }

    /// The other end of the rings.
    pub(crate) fn device(&self) -> &dyn Device {
        &*self.device
    }

    /// Takes a free frame.
    #[inline]
    fn take(&mut self) -> Option<u32> {
        if self.free.is_empty() {
            self.refill();
        }
        self.free.pop()
    }

    /// Takes back frames because none is free.
    #[cold]
    fn refill(&mut self) {
        self.reclaim();
        if self.free.is_empty() {
            // Frames that wait in the ring come back when they have been sent.
            self.kick();
            self.reclaim();
        }
    }

    /// Takes back the frames that the kernel has sent, if it has many. In copy mode, it has sent
    /// them when a kick returns.
    #[inline]
    fn reclaim_if_many(&mut self) {
        if self.free.first >= UNCLAIMED {
            self.reclaim();
        }
    }

    /// Takes back the frames that the kernel has sent.
    fn reclaim(&mut self) {
        let (view, free) = (self.part.view(), &mut self.free);
        let mut places = free.frames[..free.first].iter_mut();
        let unknown = self.shared.take_completed(self.share, |addr| {
            let frame = view.take_back(addr);
            // There is a place for each frame that is not free.
            let place = frame
                .ok()
                .and_then(|frame| Some((places.next_back()?, frame)));
            place.map(|(place, frame)| *place = frame).is_some()
        });
        free.first = places.len();
        self.met.bad += unknown;
    }
}

impl Free {
    /// The frames of a part that the kernel does not have.
    fn new(part: &Part) -> Self {
        let kept = part.kept();
        let first = part.count() as usize - kept.len();
        let mut frames = vec![0; first];
        frames.extend(kept);
        Self {
            frames: frames.into_boxed_slice(),
            first,
        }
    }

    #[inline]
    fn is_empty(&self) -> bool {
        self.first == self.frames.len()
    }

    #[inline]
    fn all(&self) -> &[u32] {
        &self.frames[self.first..]
    }

    fn push(&mut self, frame: u32) {
        self.first -= 1;
        self.frames[self.first] = frame;
    }

    #[inline]
    fn pop(&mut self) -> Option<u32> {
        let frame = self.frames.get(self.first)?;
        self.first += 1;
        Some(*frame)
    }
}

impl Drop for Frames {
    /// Lets the kernel send the last packets, for up to `LAST_KICKS` kicks, and takes back the
    /// frames of those that it does not send, for the next endpoint with this share.
    fn drop(&mut self) {
        for _ in 0..LAST_KICKS {
            if !self.kick() || !self.pending {
                break;
            }
            // The kernel has no memory now, or waits for room in the completion ring.
            self.reclaim();
            std::thread::sleep(BETWEEN_KICKS);
        }
        for desc in self.tx.left() {
            // This fails for a frame that the kernel does not have, which is free already.
            let _ = self.part.take_back(desc.addr);
        }
    }
}

#[cfg(test)]
mod tests;
