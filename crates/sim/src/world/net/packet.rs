//! A packet that waits until its NIC reads it: an endpoint's item, or a copy of a staged packet.
//!
//! Invariant: an item with bytes of its own names no msgbuf. Made by `transport` from items and the
//! packets of a lane, kept by `port`.

use std::cell::Cell;
use std::ops::AddAssign;

use dunlin_core::transport::{
    LANE_COPIED, LANE_WORD, Lane, LanePacket, MAX_INLINE, Messages, PeerId, Source, TxItem,
};
use dunlin_msgbuf::{BufRef, regions};
use dunlin_wire::{HEADER_LEN, Header};

/// A packet on its way to the NIC.
#[derive(Clone, Debug)]
pub(super) struct Packet {
    pub(super) item: TxItem,
    /// Bytes that follow the item's inline bytes, if they are not in a msgbuf.
    copied: Vec<u8>,
    /// The fault, if the packet's msgbuf had changed before the NIC read it.
    pub(super) problem: Option<String>,
}

/// Staged packets, by their length and by the way in which they were handed over.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StagedPackets {
    /// All of them.
    pub all: u64,
    /// Those that were handed over in a row of several packets that are alike.
    pub in_rows: u64,
    /// Those that are longer than a line, with a message that is always copied into the lane.
    pub middle: u64,
    /// Those whose message is longer than the lane always copies, and may be copied or lent.
    pub long: u64,
    /// Those counted in `long` that were handed over singly or in rows.
    pub long_alike: u64,
    /// Those counted in `long_alike` whose message was copied from its msgbuf.
    pub from_msgbufs: u64,
}

impl AddAssign for StagedPackets {
    fn add_assign(&mut self, other: Self) {
        self.all += other.all;
        self.in_rows += other.in_rows;
        self.middle += other.middle;
        self.long += other.long;
        self.long_alike += other.long_alike;
        self.from_msgbufs += other.from_msgbufs;
    }
}

impl From<TxItem> for Packet {
    fn from(item: TxItem) -> Self {
        Self {
            item,
            copied: Vec::new(),
            problem: None,
        }
    }
}

impl Packet {
    /// A packet of a lane, from its header and its message.
    fn staged(peer: PeerId, header: &[u8], message: &[u8]) -> Self {
        let mut inline = [0; MAX_INLINE];
        let is_short = header.len() + message.len() <= MAX_INLINE;
        let (near, far) = message.split_at(if is_short { message.len() } else { 0 });
        let inline_len = header.len() + near.len();
        inline[..header.len()].copy_from_slice(header);
        inline[header.len()..inline_len].copy_from_slice(near);
        Self {
            item: TxItem {
                peer,
                inline_len: u32::try_from(inline_len).expect("it fits into the inline bytes"),
                inline,
                data: BufRef::EMPTY,
            },
            copied: far.to_vec(),
            problem: None,
        }
    }

    /// The number of its bytes.
    pub(super) fn len(&self) -> usize {
        self.item.inline_len as usize + self.after_item()
    }

    fn after_item(&self) -> usize {
        self.copied.len() + self.item.data.len()
    }

    /// The header, wherever the packet's data lies.
    pub(super) fn header(&self) -> &[u8] {
        &self.inline()[..(self.item.inline_len as usize).min(HEADER_LEN)]
    }

    fn inline(&self) -> &[u8] {
        &self.item.inline[..self.item.inline_len as usize]
    }

    /// Bytes of a message in the packet: in its data, or, for a short message, after the header.
    pub(super) fn data_len(&self) -> usize {
        let inline = self.inline();
        let front =
            Header::decode(inline).map_or(HEADER_LEN, |header| HEADER_LEN + header.extension_len());
        inline.len().saturating_sub(front) + self.after_item()
    }

    /// Copies the data from its msgbuf, which the packet then no longer needs.
    pub(super) fn read(&mut self) {
        let data = std::mem::replace(&mut self.item.data, BufRef::EMPTY);
        if data.is_empty() {
            return;
        }
        if let Err(why) = regions::read(data, &mut self.copied) {
            self.problem = Some(format!("msgbuf released before done: {why}"));
        }
    }

    /// Appends its bytes, which have been read, to a frame.
    pub(super) fn append_to(&self, frame: &mut Vec<u8>) {
        frame.extend_from_slice(self.inline());
        frame.extend_from_slice(&self.copied);
    }
}

/// Appends the packets of a lane, which are listed and whole.
pub(super) fn add_listed(lane: &Lane, row: &mut Vec<Packet>) -> StagedPackets {
    let mut counted = StagedPackets::default();
    for packet in lane.packets() {
        let (header, message) = lane.bytes(*packet).split_at(HEADER_LEN);
        row.push(Packet::staged(packet.peer(), header, message));
        counted.add(packet.size());
    }
    counted
}

/// Appends the packets of a lane, which are all like the first. Long messages come from
/// [`Lane::message`].
pub(super) fn add_alike<'a>(
    lane: &'a Lane,
    first: LanePacket,
    messages: impl Messages<'a>,
    row: &mut Vec<Packet>,
) -> StagedPackets {
    let (mut counted, taken) = (StagedPackets::default(), Cell::new(0));
    let messages = Counting {
        messages,
        taken: &taken,
    };
    let (lines, size) = (lane.all_lines(), first.size());
    for (place, lines) in lines.chunks_exact(lines.len() / lane.len()).enumerate() {
        let (header, own) = lines.as_flattened()[LANE_WORD..].split_at(HEADER_LEN);
        let len = size - HEADER_LEN;
        let message = match size {
            ..=LANE_COPIED => &own[..len],
            _ => lane.message(place, messages),
        };
        counted.add(size);
        row.push(match message.len() == len {
            true => Packet::staged(first.peer(), header, message),
            // The message is gone, so the packet leaves without a header.
            false => Packet::staged(first.peer(), &[0; HEADER_LEN], &vec![0; len]),
        });
    }
    counted.from_msgbufs = taken.get();
    counted.long_alike = counted.long;
    if lane.len() > 1 {
        counted.in_rows = counted.all;
    }
    counted
}

/// Finds messages, and counts them.
#[derive(Clone, Copy)]
struct Counting<'c, M> {
    messages: M,
    taken: &'c Cell<u64>,
}

impl<'a, M: Messages<'a>> Messages<'a> for Counting<'_, M> {
    fn message(self, source: Source) -> &'a [u8] {
        self.taken.set(self.taken.get() + 1);
        self.messages.message(source)
    }
}

impl StagedPackets {
    fn add(&mut self, size: usize) {
        self.all += 1;
        match (size <= MAX_INLINE, size <= LANE_COPIED) {
            (true, _) => {}
            (false, true) => self.middle += 1,
            (false, false) => self.long += 1,
        }
    }
}
