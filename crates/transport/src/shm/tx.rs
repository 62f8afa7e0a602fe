//! The sending half: packets go straight from the msgbufs into the peers' rings.
//!
//! For long data, a packet contains only a reference (`regions`).
//!
//! Invariants: all packets handed over are done immediately; and this half never waits for a peer:
//! it drops and counts a packet for which there is no room. Only after a run of packets to one peer
//! does the half check whether that peer must be woken. It may miss a peer that parks its ring at
//! that moment. Such a peer is *unsettled*: `settle`, or the [`PUT_OFF`]th burst afterwards, checks
//! it again, after a fence.

mod lone;
mod row;

use std::sync::Arc;

use dunlin_core::transport::{
    InLane, LANE_COPIED, LANE_PACKET, Lane, LanePacket, MAX_INLINE, Messages, PeerId, Tx, TxItem,
    TxSeq,
};
use dunlin_msgbuf::{BufRef, regions};
use dunlin_wire::HEADER_LEN;

use super::bounce::Bounce;
use super::cells::{ONE_CELL, TWO_CELLS};
use super::channel::{Bell, Channel};
use super::channels::{Channels, index_of};
use super::ffi;
use super::regions::Told;
use super::ring::{Producer, Refused};
use crate::counters::Counters;
use lone::Lone;

/// The sending half of an endpoint on shared memory.
#[derive(Debug)]
pub struct ShmTx {
    /// The peers, by the index in the [`PeerId`].
    peers: Vec<Option<Outgoing>>,
    /// The number of packets that this half got, without those in lent cells.
    handed_over: u64,
    /// The cells in which further lone packets to one peer leave.
    lone: Lone,
    /// Indices of the unsettled peers.
    unsettled: Vec<usize>,
    /// Number of bursts of several packets since the unsettled peers were checked.
    put_off: u32,
    /// Longest packet that is staged. The data of a longer one goes by reference, or is copied only
    /// once.
    lane: usize,
    /// Copies of data in memory that cannot be shared.
    bounce: Bounce,
    counters: Counters,
    /// The control plane's part. It is kept here because every function of the control plane has
    /// this half, but not always the other.
    pub(super) channels: Channels,
}

/// A ring to a peer, and the means to wake the peer.
#[derive(Debug)]
pub(super) struct Outgoing {
    pub(super) peer: PeerId,
    pub(super) ring: Producer,
    /// Our bit in the peer's doorbell.
    pub(super) bit: u32,
    pub(super) bell: Bell,
    /// Whether this peer is in the list of unsettled peers.
    pub(super) unsettled: bool,
    /// Longest packet, wherever its data lies.
    pub(super) longest: u32,
    /// Data of at least this length goes by reference.
    pub(super) by_reference: u32,
    /// The regions that the peer knows.
    pub(super) told: Told,
    /// Packets by reference that are not counted yet.
    pub(super) references: u64,
    /// Last, so that it is dropped after the fields that use its memory.
    pub(super) channel: Arc<Channel>,
}

/// After this many bursts of several packets, unsettled peers are checked in any case. They are
/// also checked if bursts of one packet bring the number of all packets to a multiple of this; for
/// packets in lent cells, at a pause or when the cells are given back. A fence after every burst
/// would wait for the burst's stores, which takes as long as sending ten packets.
const PUT_OFF: u32 = 16;

/// The number of packets ahead for which a cell is prefetched, so that the stores of a burst do not
/// wait for one cache line after the other. Cells beyond the burst are not prefetched, because that
/// would take them from a consumer that polls them.
const AHEAD: usize = 4;

/// The reason why a packet was not sent.
enum Dropped {
    /// The packet's msgbuf has been revoked.
    Stale,
    Refused(Refused),
}

impl ShmTx {
    pub(super) fn new(channels: Channels) -> Self {
        Self {
            peers: Vec::new(),
            handed_over: 0,
            lone: Lone::new(),
            unsettled: Vec::new(),
            put_off: 0,
            lane: (HEADER_LEN + channels.options.by_reference as usize - 1).min(LANE_PACKET),
            bounce: Bounce::default(),
            counters: Counters::default(),
            channels,
        }
    }

    /// Sends on a new ring from now on.
    pub(super) fn add(&mut self, index: usize, outgoing: Outgoing) {
        self.end_lone_run();
        if self.peers.len() <= index {
            self.peers.resize_with(index + 1, || None);
        }
        self.peers[index] = Some(outgoing);
        // The room is reserved here, because sending never allocates. Each peer is in the list at
        // most once.
        self.unsettled
            .reserve(self.peers.len() - self.unsettled.len());
    }

    /// Sends some of the packets of a lane, in order, and the items after them.
    #[inline(never)]
    pub(crate) fn send_staged(
        &mut self,
        lane: &Lane,
        packets: &[LanePacket],
        items: &[TxItem],
    ) -> TxSeq {
        self.end_lone_run();
        let mut rest = packets;
        while let Some(first) = rest.first() {
            let us = first.peer();
            let (run, others) = rest.split_at(count_for(us, rest));
            let index = index_of(us);
            match self.peers.get_mut(index) {
                Some(Some(peer)) if peer.peer == us => {
                    unsettle(peer, index, &mut self.unsettled);
                    peer.send_run(lane, run, &mut self.counters);
                }
                _ => self.counters.tx_dropped_peer += run.len() as u64,
            }
            rest = others;
        }
        self.handed_over += packets.len() as u64;
        if !items.is_empty() {
            return self.burst(items);
        }
        self.end_burst();
        TxSeq(self.handed_over)
    }

    /// Checks once more the peers that may have parked their rings while we sent to them.
    #[inline(never)]
    fn look_again(&mut self) {
        self.put_off = 0;
        self.lone.on_settled();
        while let Some(index) = self.unsettled.pop() {
            if let Some(Some(peer)) = self.peers.get_mut(index) {
                peer.unsettled = false;
                if peer.ring.is_parked() {
                    peer.ring_bell(&mut self.counters);
                }
            }
        }
    }

    #[inline]
    fn end_burst(&mut self) {
        self.put_off += 1;
        if self.put_off >= PUT_OFF {
            self.look_again();
        }
    }

    /// Reports to the peers, before this half sleeps, which regions are gone.
    pub(super) fn forget_dead_regions(&mut self) {
        for peer in self.peers.iter_mut().flatten() {
            peer.told.forget_dead(peer.channel.line());
        }
    }

    /// Stops sending on a ring.
    pub(super) fn remove(&mut self, index: usize) {
        self.end_lone_run();

        if let Some(peer) = self.peers.get_mut(index) {
            *peer = None;
            self.unsettled.retain(|other| *other != index);
        }
    }
}

impl Tx for ShmTx {
    #[inline]
    fn burst(&mut self, items: &[TxItem]) -> TxSeq {
        self.end_lone_run();

        let mut rest = items;
        while let Some(first) = rest.first() {
            let index = index_of(first.peer);
            let taken = match self.peers.get_mut(index) {
                Some(Some(peer)) if peer.peer == first.peer => {
                    unsettle(peer, index, &mut self.unsettled);
                    peer.send(rest, &mut self.bounce, &mut self.counters)
                }
                _ => {
                    self.counters.tx_dropped_peer += 1;
                    1
                }
            };
            rest = &rest[taken..];
        }
        self.handed_over += items.len() as u64;
        self.end_burst();
        TxSeq(self.handed_over)
    }

    #[inline]
    fn lane(&self) -> usize {
        self.lane
    }

    #[inline(always)]
    fn takes_alike(&self, _packet: LanePacket) -> bool {
        true
    }

    #[inline]
    fn send(&mut self, lane: &Lane, items: &[TxItem]) -> TxSeq {
        if let (Some(packet), []) = (lane.lone(), items) {
            return self.send_lone(lane, packet, InLane);
        }
        match lane.alike() {
            Some((_, first)) => self.send_row(lane, first, InLane, items),
            None => self.send_staged(lane, lane.packets(), items),
        }
    }

    #[inline(always)]
    fn send_alike<'a>(
        &mut self,
        lane: &'a Lane,
        first: LanePacket,
        messages: impl Messages<'a>,
    ) -> TxSeq {
        self.send_row(lane, first, messages, &[])
    }

    #[inline(always)]
    fn send_lone<'a>(
        &mut self,
        lane: &'a Lane,
        packet: LanePacket,
        messages: impl Messages<'a>,
    ) -> TxSeq {
        if packet.size() > ONE_CELL {
            return match packet.size() {
                ..=TWO_CELLS => self.send_lone_two(lane, packet),
                len if len <= LANE_COPIED => self.send_lone_long(lane, packet),
                _ => self.send_lone_message(lane, packet, messages),
            };
        }
        match self.lone.is_open(packet.peer()) {
            true => self.send_lent(lane, packet),
            false => self.send_lone_anew(lane, packet),
        }
    }

    /// The receiver shows packets by reference a few at a time, so that short packets need not wait
    /// until these are copied.
    fn reorders(&self, _peer: PeerId) -> bool {
        true
    }

    #[inline]
    fn settle(&mut self) {
        if !self.unsettled.is_empty() {
            self.look_again();
        }
    }

    #[inline]
    fn done(&mut self) -> TxSeq {
        TxSeq(self.handed_over + self.lone.sent())
    }

    #[inline]
    fn flush(&mut self) {
        self.settle();
    }
}

/// The number of packets, from the first on, that are for this peer.
#[inline(always)]
fn count_for(us: PeerId, packets: &[LanePacket]) -> usize {
    // Usually all are for `us`, and this loop finds that without a branch for each.
    let other_bits = packets.iter().map(|packet| packet.peer().0 ^ us.0);
    match other_bits.fold(0, |all, bits| all | bits) {
        0 => packets.len(),
        _ => packets
            .iter()
            .take_while(|packet| packet.peer() == us)
            .count(),
    }
}

/// Puts the peer into the list of unsettled ones.
#[inline]
fn unsettle(peer: &mut Outgoing, index: usize, unsettled: &mut Vec<usize>) {
    if !peer.unsettled {
        peer.unsettled = true;
        unsettled.push(index);
    }
}

impl Outgoing {
    /// Sends staged packets, all for this peer.
    #[inline]
    fn send_run(&mut self, lane: &Lane, packets: &[LanePacket], counters: &mut Counters) {
        let mut rest = packets;
        while let Some(first) = rest.first() {
            let (taken, bytes) = self.ring.push_staged(lane, rest);
            counters.tx_packets += taken as u64;
            counters.tx_bytes += bytes;
            if taken == 0 {
                self.send_parts(lane.bytes(*first), &[], counters);
            }
            rest = &rest[taken.max(1)..];
        }
        if self.ring.seems_parked() {
            self.ring_bell(counters);
        }
    }

    /// Sends the items, from the first on, that are for this peer; the first one must be. Returns
    /// their number.
    #[inline(always)]
    fn send(&mut self, items: &[TxItem], bounce: &mut Bounce, counters: &mut Counters) -> usize {
        let us = self.peer;
        // Most packets lie entirely in their items, and fit into a cell.
        let is_short = |item: &&TxItem| {
            item.peer == us && item.data.is_empty() && item.inline_len as usize <= MAX_INLINE
        };
        let short = items.iter().take_while(is_short).count();
        let (taken, bytes) = match short {
            0 => (0, 0),
            _ => self.ring.push_run(&items[..short], |item| {
                (&item.inline, item.inline_len as usize)
            }),
        };
        if taken == 0 {
            return self.send_others(items, bounce, counters);
        }
        counters.tx_packets += taken as u64;
        counters.tx_bytes += bytes;
        if self.ring.seems_parked() {
            self.ring_bell(counters);
        }
        taken
    }

    /// Sends packets of every kind, and drops those for which there is no room.
    #[inline(never)]
    fn send_others(
        &mut self,
        items: &[TxItem],
        bounce: &mut Bounce,
        counters: &mut Counters,
    ) -> usize {
        let (mut taken, mut sent, mut bytes) = (0, 0, 0);
        let us = self.peer;
        for item in items.iter().take_while(|item| item.peer == us) {
            taken += 1;
            if taken + AHEAD <= items.len() {
                self.ring.prefetch(AHEAD as u64);
            }
            match self.push(item, bounce) {
                Ok(len) => {
                    sent += 1;
                    bytes += len as u64;
                }
                Err(dropped) => count_dropped(counters, dropped),
            }
        }
        counters.tx_packets += sent;
        counters.tx_references += std::mem::take(&mut self.references);
        counters.tx_copied += bounce.take_count();
        counters.tx_bytes += bytes;
        if self.ring.seems_parked() {
            self.ring_bell(counters);
        }
        taken
    }

    /// Puts a packet into the ring. Returns its length.
    #[inline(always)]
    fn push(&mut self, item: &TxItem, bounce: &mut Bounce) -> Result<usize, Dropped> {
        let data_len = item.data.len();
        let mut data = item.inline.as_ptr();
        if data_len != 0 {
            // SAFETY: we act for the endpoint, which owns the msgbuf and is inside this call.
            let found = unsafe { regions::resolve(item.data) };
            data = found.ok_or(Dropped::Stale)?.as_ptr();
            let inline_len = item.inline_len as usize;
            let long = inline_len + data_len > self.ring.longest() as usize;
            if long || data_len >= self.by_reference as usize {
                // SAFETY: the bytes were just found.
                let bytes = unsafe { std::slice::from_raw_parts(data, data_len) };
                if let Some(name) = self.name(item.data, bytes, bounce) {
                    return self.push_reference(item, name);
                }
            }
        }
        let inline_len = item.inline_len as usize;
        // SAFETY: the bytes stay as they are until the endpoint learns that we are done, and a
        // msgbuf never lies in a ring. Without data nothing is read.
        unsafe {
            if inline_len == HEADER_LEN {
                // A copy of this constant length is three moves.
                self.ring.push(&item.inline[..HEADER_LEN], data, data_len)?;
            } else {
                let inline = item.inline.get(..inline_len).ok_or(Refused::TooLong)?;
                self.ring.push(inline, data, data_len)?;
            }
        }
        Ok(inline_len + data_len)
    }

    /// The name by which the peer finds these bytes, or a copy of them. `None`: the peer wants the
    /// bytes in the ring, or cannot learn the name now.
    #[inline]
    fn name(&mut self, data: BufRef, bytes: &[u8], bounce: &mut Bounce) -> Option<BufRef> {
        if self.ring.wants_copies() {
            return None;
        }
        let line = self.channel.line();
        if self.told.tell(line, data) {
            return Some(data);
        }
        let copy = bounce.copy(bytes)?;
        self.told.tell(line, copy).then_some(copy)
    }

    /// Puts a packet into the ring without its data, which stays where it is. The packet is done
    /// immediately, because the receiver notices if the data is withdrawn.
    #[inline(never)]
    fn push_reference(&mut self, item: &TxItem, name: BufRef) -> Result<usize, Dropped> {
        let inline = item.inline.get(..item.inline_len as usize);
        let inline = inline.ok_or(Refused::TooLong)?;
        let len = inline.len() + name.len();
        if len > self.longest as usize {
            return Err(Refused::TooLong.into());
        }
        self.ring.push_reference(inline, &name.to_bytes())?;
        self.references += 1;
        Ok(len)
    }

    #[cold]
    fn ring_bell(&self, counters: &mut Counters) {
        let is_asleep = self.bell.ring(self.bit);
        // Other peers can write into the doorbell, but not into this ring.
        if self.ring.takes_asleep() || is_asleep {
            ffi::wake(self.channel.line());
            counters.wakeups_sent += 1;
            counters.syscalls += 1;
        }
    }
}

#[cold]
fn count_dropped(counters: &mut Counters, dropped: Dropped) {
    match dropped {
        Dropped::Stale => counters.tx_dropped_stale += 1,
        Dropped::Refused(Refused::Full) => counters.tx_dropped_full += 1,
        Dropped::Refused(Refused::TooLong) => counters.tx_dropped_size += 1,
        Dropped::Refused(Refused::Broken) => counters.tx_dropped_peer += 1,
    }
}

impl From<Refused> for Dropped {
    fn from(refused: Refused) -> Self {
        Self::Refused(refused)
    }
}

const _: () = assert!(MAX_INLINE == ONE_CELL);
