//! Packets that are alike: those of a lane, and those of a large message. Work that is the same for
//! all is done once: their headers differ in the checksum alone, and the loop over them only copies
//! and sums.

use dunlin_core::transport::{MAX_INLINE, TxItem};
use dunlin_wire::HEADER_LEN;

use super::Leaving;
use crate::device::SHORT;
use crate::ways::Way;

/// Fewest data bytes of a packet that is one of many, for example of a large message.
const LONG: usize = 512;

/// A line of a lane, without the transport's bytes.
pub(crate) type Line = [u8; MAX_INLINE];

impl Leaving {
    /// Sends packets of `len` bytes, each of which fits a line, in datagrams of their own, up to
    /// the first packet for which `line_of` returns `None`. Returns the number of packets sent.
    #[inline]
    pub(crate) fn send_short<'l, T>(
        &mut self,
        way: &mut Way,
        len: usize,
        packets: &'l [T],
        line_of: impl Fn(&'l T) -> Option<&'l Line>,
    ) -> usize {
        let stamp = *way.stamp(len);
        let (frame, payload) = (stamp.bytes() + stamp.payload(), stamp.payload());
        let payload = u32::try_from(payload).expect("it fits a line");
        let mut done = 0;
        loop {
            self.make_room(packets.len() - done);
            let at = self.packets.len();
            let count = self.packets.fill(frame, &packets[done..], |bytes, packet| {
                let line = line_of(packet);
                if let Some(line) = line {
                    // Zeros follow a packet that is shorter than its line.
                    stamp.fill(bytes, line);
                }
                line.is_some()
            });
            self.loads[at..at + count].fill((1, payload));
            let packets_now = u32::try_from(count).expect("32");
            self.load.0 += packets_now;
            self.load.1 += packets_now * payload;
            done += count;
            match packets.get(done) {
                Some(next) if line_of(next).is_some() => {}
                _ => return done,
            }
            if count == 0 {
                self.on_pool_empty(1);
                return done + 1;
            }
        }
    }

    /// Puts a packet of `len` bytes, which fits a line, into a datagram of its own.
    #[inline]
    pub(crate) fn send_line(&mut self, way: &mut Way, len: usize, line: &Line) {
        let Some(mut packet) = self.empty() else {
            return self.on_pool_empty(1);
        };
        let stamp = way.stamp(len);
        let room = packet.bytes_mut().first_chunk_mut::<SHORT>();
        // Zeros follow a packet that is shorter than its line.
        stamp.fill(room.expect("each packet has it"), line);
        packet.truncate(stamp.bytes() + len);
        self.push(packet, 1, u32::try_from(len).expect("it fits a line"));
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

    /// Like [`Self::append`], for packets of `len` bytes that fit a line each. Adds as many as
    /// share one datagram, up to the first packet for which `line_of` returns `None`. Returns their
    /// number.
    #[inline]
    pub(crate) fn append_short<'l, T>(
        &mut self,
        way: &mut Way,
        len: usize,
        packets: &'l [T],
        line_of: impl Fn(&'l T) -> Option<&'l Line>,
    ) -> usize {
        let limit = way.limit as usize;
        let Some(open) = self.open_for(way, len) else {
            return 1;
        };
        let others = limit.saturating_sub(open.payload as usize) / len;
        let (mut at, mut sum, mut count) = (open.at, open.sum, 0);
        let bytes = open.packet.bytes_mut();
        let most = packets.len().min(1 + others);
        for line in packets[..most].iter().map_while(line_of) {
            let room = &mut bytes[at..];
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
