//! Packets that are alike: those of a lane, and those of a large message. Work that is the same for
//! all is done once: their headers differ in the checksum alone, and the loop over them only copies
//! and sums.

use dunlin_core::transport::{Lane, LanePacket, TxItem};
use dunlin_wire::HEADER_LEN;

use super::Leaving;
use crate::ways::Way;

/// Fewest data bytes of a packet that is one of many, for example of a large message.
const LONG: usize = 512;

impl Leaving {
    /// Sends packets, each of which fits a line of the lane, in datagrams of their own: the first
    /// one and those after it that have the same peer and length. Returns their number.
    #[inline]
    pub(crate) fn send_short(
        &mut self,
        way: &mut Way,
        lane: &Lane,
        first: LanePacket,
        packets: &[LanePacket],
    ) -> usize {
        let stamp = *way.stamp(first.size());
        let (frame, payload) = (stamp.bytes() + stamp.payload(), stamp.payload());
        let payload = u32::try_from(payload).expect("it fits a line");
        let mut done = 0;
        loop {
            self.make_room(packets.len() - done);
            let at = self.packets.len();
            let count = self.packets.fill(frame, &packets[done..], |bytes, packet| {
                let is_alike = packet.is_like(first);
                if is_alike {
                    // Zeros follow a packet that is shorter than its line.
                    stamp.fill(bytes, lane.line(*packet));
                }
                is_alike
            });
            self.loads[at..at + count].fill((1, payload));
            let packets_now = u32::try_from(count).expect("32");
            self.load.0 += packets_now;
            self.load.1 += packets_now * payload;
            done += count;
            match packets.get(done) {
                Some(next) if next.is_like(first) => {}
                _ => return done,
            }
            if count == 0 {
                self.on_pool_empty(1);
                return done + 1;
            }
        }
    }

    /// Sends packets in datagrams of their own: the first one, which has a bare header and `len`
    /// bytes of data, and those after it that are like it. `data_of` gives the data of each; the
    /// packets end where it gives none. Returns their number.
    #[inline]
    pub(crate) fn send_long<'d>(
        &mut self,
        way: &mut Way,
        items: &[TxItem],
        len: usize,
        data_of: impl Fn(&TxItem) -> Option<&'d [u8]>,
    ) -> usize {
        // Packets keep their order.
        self.close(way);
        let stamp = *way.stamp(HEADER_LEN + len);
        let payload = u32::try_from(stamp.payload()).expect("it fits a datagram");
        self.make_room(items.len());
        let at = self.packets.len();
        let frame = stamp.bytes() + stamp.payload();
        let first = &items[0];
        let count = self.packets.fill_long(frame, items, |bytes, item| {
            let is_alike = item.peer == first.peer
                && item.inline_len == first.inline_len
                && item.data.len() == len;
            let Some(data) = data_of(item).filter(|_| is_alike) else {
                return false;
            };
            let header = item.inline.first_chunk::<HEADER_LEN>();
            stamp.fill_long(bytes, header.expect("a packet has a header"), data);
            true
        });
        self.loads[at..at + count].fill((1, payload));
        let packets = u32::try_from(count).expect("32");
        self.load.0 += packets;
        self.load.1 += packets * payload;
        count
    }

    /// Whether packets with this number of data bytes are copied in a loop of their own.
    #[inline]
    pub(crate) fn copies_long(&self, len: usize) -> bool {
        (LONG..self.lend).contains(&len)
    }

    /// As [`Self::append`], for packets that fit lines of the lane: the first one, and those after
    /// it that have the same peer and length and share its datagram. Returns their number.
    #[inline]
    pub(crate) fn append_short(
        &mut self,
        way: &mut Way,
        lane: &Lane,
        first: LanePacket,
        packets: &[LanePacket],
    ) -> usize {
        let (len, limit) = (first.size(), way.limit as usize);
        let Some(open) = self.open_for(way, len) else {
            return 1;
        };
        let others = limit.saturating_sub(open.payload as usize) / len;
        let (mut at, mut sum, mut count) = (open.at, open.sum, 0);
        let bytes = open.packet.bytes_mut();
        let most = packets.len().min(1 + others);
        for packet in packets[..most].iter().take_while(|it| it.is_like(first)) {
            let (line, room) = (lane.line(*packet), &mut bytes[at..]);
            match room.first_chunk_mut() {
                // Zeros follow a packet that is shorter than its line.
                Some(room) => sum.copy_block(line, room, len),
                None => sum.copy(&line[..len], &mut room[..len]),
            }
            at += len;
            count += 1;
        }
        // The first one is counted.
        let more = u32::try_from(count - 1).expect("32");
        open.payload += more * u32::try_from(len).expect("it fits a line");
        open.packets += more;
        (open.at, open.sum) = (at, sum);
        count
    }
}
