//! Packets that are staged as in a lane, for the tests of the ring and for its models.

use dunlin_core::transport::LANE_COPIED;
use dunlin_wire::HEADER_LEN;

use super::super::cells::{CELL, ONE_CELL, WORD};
use super::super::staged::{MOST_LINES, Staged};
use super::Producer;
use super::lent::Lent;

/// A packet: its first line, and its length in bytes.
pub(super) type Packet = (usize, usize);

/// Staged packets.
pub(super) struct Row {
    lines: Vec<[u8; CELL]>,
    pub(super) packets: Vec<Packet>,
}

impl Row {
    /// Stages these packets. The bytes around them must never appear in a ring.
    pub(super) fn new<P: AsRef<[u8]>>(packets: &[P]) -> Self {
        let (mut lines, mut places) = (Vec::new(), Vec::new());
        for packet in packets.iter().map(AsRef::as_ref) {
            places.push((lines.len(), packet.len()));
            let mut own = vec![[0xEE; CELL]; (WORD + packet.len()).div_ceil(CELL)];
            own.as_flattened_mut()[WORD..][..packet.len()].copy_from_slice(packet);
            lines.append(&mut own);
        }
        let packets = places;
        Self { lines, packets }
    }
}

/// Sends the only packet of a burst, as the sending half does. False: nothing was sent.
pub(super) fn push_lone(producer: &mut Producer, row: &Row, packet: Packet) -> bool {
    if packet.1 > LANE_COPIED {
        let mut lines = [[0xEE; CELL]; MOST_LINES];
        lines[0] = row.head(packet);
        return producer.push_lone_message(&lines, packet.1, || row.message(packet));
    }
    match row.lines(&[packet]).len() {
        1 => {
            let cells = producer.lend();
            match cells.have(1) {
                true => push_in(producer, cells, row, &[packet]) == 1,
                false => producer.push_lone(row.line(packet), row.size(packet)),
            }
        }
        ..=MOST_LINES => {
            let mut lines = [[0xEE; CELL]; MOST_LINES];
            let own = row.lines(&[packet]);
            lines[..own.len()].copy_from_slice(own);
            match own.len() {
                2 => producer.push_lone_long::<true>(&lines, row.size(packet)),
                _ => producer.push_lone_long::<false>(&lines, row.size(packet)),
            }
        }
        _ => false,
    }
}

/// Sends packets of one cell each, one by one in lent cells, as long as cells are left. Returns
/// their number.
pub(super) fn push_lent(producer: &mut Producer, row: &Row) -> usize {
    let cells = producer.lend();
    push_in(producer, cells, row, &row.packets)
}

/// Sends packets one by one in a block, as long as cells are left. Returns their number.
pub(super) fn push_in_block(producer: &mut Producer, row: &Row) -> usize {
    let cells = producer.lend_block();
    push_in(producer, cells, row, &row.packets)
}

/// Sends packets in these cells, as long as cells are left, and gives the cells back. Returns the
/// packets' number.
pub(super) fn push_in(
    producer: &mut Producer,
    mut cells: Lent,
    row: &Row,
    packets: &[Packet],
) -> usize {
    for packet in packets {
        // SAFETY: the ring is alive, and its producer is not used meanwhile.
        if unsafe { row.push_to(&mut cells, *packet) }.is_none() {
            break;
        }
    }
    usize::try_from(producer.take_back(&cells)).expect("few")
}

/// Sends packets of one length, as many of the first as fit. Returns their number.
pub(super) fn push_row(producer: &mut Producer, row: &Row) -> usize {
    let lines = row.lines(&row.packets);
    match row.packets.first() {
        Some((_, len)) if *len > LANE_COPIED => {
            let mut heads = vec![[0xEE; CELL]; lines.len()];
            for packet in &row.packets {
                heads[packet.0] = row.head(*packet);
            }
            producer.push_messages(&heads, *len, |place| row.message(row.packets[place]))
        }
        Some((_, len)) => producer.push_row(lines, *len),
        None => 0,
    }
}

impl Row {
    /// Sends a packet in lent cells: see [`Lent::push_any`].
    ///
    /// # Safety
    /// As for that function.
    pub(super) unsafe fn push_to(&self, cells: &mut Lent, packet: Packet) -> Option<bool> {
        let (own, len) = (self.lines(&[packet]), self.size(packet));
        let mut lines = [[0xEE; CELL]; MOST_LINES];
        lines.get_mut(..own.len())?.copy_from_slice(own);
        // SAFETY: as the caller promises.
        unsafe {
            match (cells.are_block(), own.len()) {
                (false, 1) if cells.have(1) => Some(cells.push(self.line(packet), len)),
                (false, _) => None,
                (true, 1) => cells.push_any::<1>(&lines, len),
                (true, 2) => cells.push_any::<2>(&lines, len),
                (true, _) => cells.push_any::<0>(&lines, len),
            }
        }
    }

    /// Whether all packets have one length.
    pub(super) fn is_alike(&self) -> bool {
        let mut lens = self.packets.iter().map(|(_, len)| *len);
        let first = lens.next();
        lens.all(|len| Some(len) == first)
    }

    /// The first line of a packet of which only the header is there.
    fn head(&self, (line, _): Packet) -> [u8; CELL] {
        let mut head = self.lines[line];
        head[WORD + HEADER_LEN..].fill(0xEE);
        head
    }

    /// The message of a packet.
    fn message(&self, packet: Packet) -> &[u8] {
        let lines = self.lines(&[packet]).as_flattened();
        &lines[WORD..][..packet.1][HEADER_LEN..]
    }

    /// The first line of a packet, without its word.
    fn line(&self, (line, _): Packet) -> &[u8; ONE_CELL] {
        self.lines[line].last_chunk().expect("a line is longer")
    }
}

impl Staged for Row {
    type Packet = Packet;

    const LONGEST: u32 = u32::MAX;

    fn size(&self, (_, len): Packet) -> usize {
        len
    }

    fn lines(&self, packets: &[Packet]) -> &[[u8; CELL]] {
        let (first, last) = (packets.first(), packets.last());
        let Some((&(first, _), &(last, len))) = first.zip(last) else {
            return &[];
        };
        &self.lines[first..last + (WORD + len).div_ceil(CELL)]
    }
}
