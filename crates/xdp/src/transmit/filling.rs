//! Fills datagrams that several packets share. Packets of a lane that are alike are copied in one
//! loop.
//!
//! A datagram is open only while one peer's packets of a burst are sent. For that time, this file
//! has a copy of the [`Form`] of the way to that peer. The headers of the last datagram go back
//! from the copy to the way, because the next burst often needs the same ones.

use std::ops::Range;

use dunlin_core::transport::{Lane, LanePacket, PeerId};

use super::XdpTx;
use super::burst::Burst;
use super::frames::Open;
use crate::ways::Form;

impl XdpTx {
    /// Sends packets of a lane to one peer in shared datagrams, up to the first that does not fit
    /// its line. Returns their number: 0 if packets to this peer share no datagrams.
    pub(super) fn send_packed(
        &mut self,
        burst: Burst<'_>,
        peer: PeerId,
        range: Range<usize>,
    ) -> usize {
        let end = range.end.min(burst.staged.len());
        let (Some(lane), Some(staged)) = (burst.lane, burst.staged.get(range.start..end)) else {
            return 0;
        };
        let form = self.ways.ready(peer).filter(|form| form.datagram != 0);
        let Some(mut form) = form.copied() else {
            return 0;
        };
        let (mut rest, mut open) = (staged, None);
        while let Some(&first) = rest.first() {
            let len = first.size();
            if !(1..=form.line).contains(&len) {
                break;
            }
            let count = match self.make_room(len, &mut form, &mut open) {
                true => self.append_alike(lane, rest, form.datagram, &mut open),
                false => 1,
            };
            rest = &rest[count..];
        }
        self.close_open(&mut open, &mut form);
        self.ways.keep_stamp(peer, &form);
        staged.len() - rest.len()
    }

    /// Adds the first of these packets, and those after it that are like it and share its datagram,
    /// which has room for one of them and holds up to `most` bytes. Returns their number.
    #[inline]
    fn append_alike(
        &mut self,
        lane: &Lane,
        packets: &[LanePacket],
        most: usize,
        open: &mut Option<Open>,
    ) -> usize {
        let Some(filling) = open else {
            return 1;
        };
        let (first, len) = (packets[0], packets[0].size());
        let fit = (most.saturating_sub(filling.payload()) / len).max(1);
        let packets = &packets[..fit.min(packets.len())];
        let count = self.frames.append_alike(filling, lane, first, packets);
        // The first packet does not fit the last frame of the datagram, so it ends in another one.
        if count == 0 && !self.frames.append_line(filling, lane.line(first), len) {
            self.discard(open);
        }
        count.max(1)
    }

    /// Opens a datagram, unless the open one has room for `len` more bytes. If no frame is free,
    /// counts the packet as dropped and returns false.
    #[inline]
    pub(super) fn make_room(
        &mut self,
        len: usize,
        form: &mut Form,
        open: &mut Option<Open>,
    ) -> bool {
        if let Some(full) = open.take_if(|open| open.payload() + len > form.datagram) {
            self.close(&full, form);
        }
        if open.is_none() {
            *open = self.frames.open(&form.header);
        }
        self.counters.tx_dropped_full += u64::from(open.is_none());
        open.is_some()
    }

    /// Drops the open datagram, for which no frame was free.
    #[cold]
    pub(super) fn discard(&mut self, open: &mut Option<Open>) {
        self.frames.discard();
        let packets = open.take().map_or(0, |open| open.packets());
        self.counters.tx_dropped_full += u64::from(packets);
    }

    #[inline]
    pub(super) fn close_open(&mut self, open: &mut Option<Open>, form: &mut Form) {
        if let Some(open) = open.take() {
            self.close(&open, form);
        }
    }

    #[inline]
    fn close(&mut self, open: &Open, form: &mut Form) {
        let packets = u64::from(open.packets());
        if self.frames.close(open, form.stamp(open.payload())) {
            self.counters.tx_packets += packets;
            self.counters.tx_bytes += open.payload() as u64;
            if packets > 1 {
                self.packed += packets;
            } else {
                self.alone += u64::from(open.has_data());
            }
        } else {
            self.counters.tx_dropped_full += packets;
        }
    }
}
