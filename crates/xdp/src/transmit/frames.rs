//! Frames on their way out: filled from packets, put into the transmit ring, and taken back when
//! the kernel has sent them. The endpoints of a queue share the completion ring, by which the
//! kernel gives sent frames back.
//!
//! Invariants: at most one datagram is open, and its frames are the opened ones of the [`Supply`].
//! A datagram is in the ring whole or not at all. A frame that the kernel gives back without having
//! it is counted, and changes nothing. Called by `transmit`.

use std::sync::Arc;
use std::time::Duration;

use dunlin_core::transport::{Lane, LanePacket, MAX_INLINE};

use crate::device::{Device, Kicked};
use crate::ring::{Desc, Producer};
use crate::shared::SharedRings;
use crate::umem::{FRAME, Supply};
use dunlin_packet::{Header, Stamp, Sum};

/// The most frames of one datagram.
pub(crate) const PIECES: usize = 4;

/// Frames that the kernel may have before a burst takes the sent ones back. A smaller number
/// keeps fewer frames in use, so more of them stay in the processor's caches.
const UNCLAIMED: usize = 32;

/// The most kicks at the end of an endpoint, for packets that the kernel does not take at once, and
/// the pause after each.
const LAST_KICKS: u32 = 50;
const BETWEEN_KICKS: Duration = Duration::from_millis(1);

/// A datagram that is being filled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Open {
    /// How many frames it has, and how many bytes of the last one are filled.
    count: usize,
    at: usize,
    payload: usize,
    sum: Sum,
    packets: u32,
    /// Whether a part of a packet comes from a msgbuf.
    has_data: bool,
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

    /// Whether a part of a packet comes from a msgbuf.
    #[inline]
    pub(crate) fn has_data(&self) -> bool {
        self.has_data
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

/// The frames for sending, and their two rings.
#[derive(Debug)]
pub(crate) struct Frames {
    supply: Supply,
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
    /// The frames of `supply`, which are those of share number `share`.
    pub(crate) fn new(
        supply: Supply,
        share: usize,
        tx: Producer<Desc>,
        shared: Arc<SharedRings>,
        device: Arc<dyn Device>,
    ) -> Self {
        Self {
            supply,
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
        let at = header.bytes();
        self.take().then_some(Open {
            count: 1,
            at,
            payload: 0,
            sum: Sum::default(),
            packets: 0,
            has_data: false,
        })
    }

    /// Adds a packet of two parts. False if no frame is free, or the datagram would need too many;
    /// the caller must then drop it with [`Self::discard`].
    #[inline]
    pub(crate) fn append(&mut self, open: &mut Open, inline: &[u8], data: &[u8]) -> bool {
        open.packets += 1;
        open.has_data |= !data.is_empty();
        self.write(open, inline) && self.write(open, data)
    }

    /// Like [`Self::append`], for a packet of `len` bytes at the start of a line; zeros follow it.
    #[inline]
    pub(crate) fn append_line(
        &mut self,
        open: &mut Open,
        line: &[u8; MAX_INLINE],
        len: usize,
    ) -> bool {
        open.packets += 1;
        let last = self.supply.opened(open.count - 1);
        let Some(room) = last[open.at..].first_chunk_mut() else {
            return self.write(open, &line[..len]);
        };
        // The zeros are written too; the next packet, or nothing, takes their place.
        open.sum.copy_block(line, room, len);
        open.at += len;
        open.payload += len;
        true
    }

    /// Like [`Self::append_line`], for the first packets that are like `first`, as far as the last
    /// frame of the datagram has room for their lines. Returns their number.
    #[inline]
    pub(crate) fn append_alike(
        &mut self,
        open: &mut Open,
        lane: &Lane,
        first: LanePacket,
        packets: &[LanePacket],
    ) -> usize {
        let last = self.supply.opened(open.count - 1);
        let (len, mut count, mut at, mut sum) = (first.size(), 0, open.at, open.sum);
        for packet in packets.iter().take_while(|packet| packet.is_like(first)) {
            let Some(room) = last[at..].first_chunk_mut() else {
                break;
            };
            sum.copy_block(lane.line(*packet), room, len);
            at += len;
            count += 1;
        }
        (open.at, open.sum) = (at, sum);
        open.payload += count * len;
        open.packets += u32::try_from(count).expect("a lane has few packets");
        count
    }

    #[inline(never)]
    fn write(&mut self, open: &mut Open, mut bytes: &[u8]) -> bool {
        open.payload += bytes.len();
        while !bytes.is_empty() {
            if open.at == FRAME {
                if open.count == PIECES || !self.take() {
                    return false;
                }
                open.count += 1;
                open.at = 0;
            }
            let (now, later) = bytes.split_at(bytes.len().min(FRAME - open.at));
            let last = self.supply.opened(open.count - 1);
            open.sum.copy(now, &mut last[open.at..][..now.len()]);
            open.at += now.len();
            bytes = later;
        }
        true
    }

    /// Frees the frames of the open datagram, which is not sent.
    pub(crate) fn discard(&mut self) {
        self.supply.discard();
    }

    /// Puts a datagram into the ring. False if the ring is full; the datagram is then discarded.
    #[inline]
    pub(crate) fn close(&mut self, open: &Open, headers: &Stamp) -> bool {
        let pieces = u32::try_from(open.count).expect("a few");
        if self.tx.room(pieces) < pieces {
            self.discard();
            return false;
        }
        debug_assert_eq!(open.payload, headers.payload());
        headers.write(&mut self.supply.opened(0)[..], open.sum);
        for (index, addr) in self.supply.close().enumerate() {
            let is_last = index + 1 == open.count;
            let len = if is_last { open.at } else { FRAME };
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
        self.refill_if_empty();
        if self.tx.room(1) == 0 {
            return false;
        }
        let Some((addr, bytes)) = self.supply.rooms().next() else {
            return false;
        };
        let (start, len) = (headers.bytes(), headers.bytes() + payload.len());
        headers.begin(bytes);
        let mut sum = Sum::default();
        sum.copy(payload, &mut bytes[start..len]);
        headers.finish(bytes, sum);
        self.tx.push(Desc {
            addr,
            len: u32::try_from(len).expect("a frame has 4096 bytes"),
            options: 0,
        });
        self.lend(1);
        true
    }

    /// Like [`Self::send`], for a packet whose line has zeros after it.
    #[inline]
    pub(crate) fn send_line(&mut self, headers: &Stamp, line: &[u8; MAX_INLINE]) -> bool {
        self.refill_if_empty();
        if self.tx.room(1) == 0 {
            return false;
        }
        let Some((addr, bytes)) = self.supply.rooms().next() else {
            return false;
        };
        headers.fill(bytes, line);
        let len = headers.bytes() + headers.payload();
        self.tx.push(Desc {
            addr,
            len: u32::try_from(len).expect("it fits a line"),
            options: 0,
        });
        self.lend(1);
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
        self.refill_if_empty();
        let len = u32::try_from(headers.bytes() + headers.payload()).expect("it fits a line");
        let (headers, mut count) = (*headers, 0);
        let rooms = packets.iter().zip(self.supply.rooms());
        for (place, (packet, (addr, bytes))) in self.tx.places().zip(rooms) {
            if !packet.is_like(first) {
                break;
            }
            // Zeros follow a packet that is shorter than its line.
            headers.fill(bytes, lane.line(*packet));
            place.write(Desc {
                addr,
                len,
                options: 0,
            });
            count += 1;
        }
        self.tx.advance(count);
        self.lend(count as usize);
        count as usize
    }

    /// Notes that the ring has entries for the next `count` free frames.
    #[inline]
    fn lend(&mut self, count: usize) {
        self.supply.lend(count);
        self.met.datagrams += count as u64;
        self.pending |= count > 0;
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

    /// Checks the invariants of its frames.
    #[cfg(feature = "check")]
    pub(crate) fn check(&self) {
        self.supply.check();
    }

    /// The other end of the rings.
    pub(crate) fn device(&self) -> &dyn Device {
        &*self.device
    }

    /// Adds a frame to the open datagram. False if none is free.
    #[inline]
    fn take(&mut self) -> bool {
        self.refill_if_empty();
        self.supply.open()
    }

    #[inline]
    fn refill_if_empty(&mut self) {
        if self.supply.is_empty() {
            self.refill();
        }
    }

    /// Takes back frames because none is free.
    #[cold]
    fn refill(&mut self) {
        self.reclaim();
        if self.supply.is_empty() {
            // Frames that wait in the ring come back when they have been sent.
            self.kick();
            self.reclaim();
        }
    }

    /// Takes back the frames that the kernel has sent, if it has many. In copy mode, it has sent
    /// them when a kick returns.
    #[inline]
    fn reclaim_if_many(&mut self) {
        if self.supply.lent() >= UNCLAIMED {
            self.reclaim();
        }
    }

    /// Takes back the frames that the kernel has sent.
    fn reclaim(&mut self) {
        let expected = self.supply.expected();
        let (count, has_others) = self.shared.take_expected(self.share, expected);
        self.supply.on_back(count);
        if has_others {
            self.reclaim_others();
        }
    }

    /// Takes back frames in any order.
    #[cold]
    fn reclaim_others(&mut self) {
        let (shared, share) = (&self.shared, self.share);
        let unknown = self
            .supply
            .take_back(|back| shared.take_completed(share, |addr| back.take(addr)));
        self.met.bad += unknown;
    }
}

impl Drop for Frames {
    /// Lets the kernel send the last packets, for up to `LAST_KICKS` kicks, and takes back the
    /// frames that it has not sent, for the next endpoint with this share.
    fn drop(&mut self) {
        for _ in 0..LAST_KICKS {
            if !self.kick() || !self.pending {
                break;
            }
            // The kernel has no memory now, or waits for room in the completion ring.
            self.reclaim();
            std::thread::sleep(BETWEEN_KICKS);
        }
        self.supply.take_back(|back| {
            for desc in self.tx.left() {
                // False for a frame that the kernel does not have, which is free already.
                back.take(desc.addr);
            }
        });
    }
}

#[cfg(test)]
mod tests;
