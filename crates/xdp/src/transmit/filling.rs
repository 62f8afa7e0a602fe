//! Datagrams that several packets share: those of a lane that are alike are copied in one loop.
//!
//! A datagram is open only while one peer's packets of a burst are sent. A way's headers are copied
//! for that time, and the copy's last headers are kept for the next burst, which often needs the
//! same ones.

use std::ops::Range;

use dunlin_core::transport::{Lane, LanePacket, PeerId};

use super::XdpTx;
use super::burst::Burst;
use super::frames::Open;
use crate::ways::Form;

impl XdpTx {
    /// Sends the first packets of a lane to one peer, as far as they fit lines, if packets share
    /// datagrams. Returns their number.
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
        // The next one ends in another frame of the datagram.
        if count == 0 && !self.frames.append_line(filling, lane.line(first), len) {
            self.discard(open);
        }
        count.max(1)
    }

    /// Opens a datagram, unless the open one has room for `len` more bytes. False, and the packet
    /// is counted, if no frame is free.
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
