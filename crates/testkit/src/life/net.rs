//! The world's network: frames wait until a step moves them. Like a slow device, the sending half
//! reads a msgbuf only when a step makes it do so, and notices if the msgbuf has changed in the
//! meantime.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::atomic::AtomicU32;

use dunlin_msgbuf::PeerBytes;
use dunlin_wire::{Flags, Header};

use super::record::{Fact, Recorder, is_headless};
use crate::packet::{bytes_of, front_of, packets_alike};
use dunlin_core::transport::{
    Frame, Lane, LanePacket, Messages, PeerId, RX_BURST, Rx, Transport, Tx, TxItem, TxSeq,
};

/// The transport of both hosts, and how it takes staged packets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Device {
    /// The most data bytes in one packet.
    pub(super) data_size: u32,
    /// Longest packet that it takes from a lane.
    pub(super) longest_staged: usize,
    /// Whether it takes lanes whose packets are alike without a list of them.
    pub(super) rows: bool,
}

/// The data bytes per packet: few, so that many messages have several packets, or as many as the
/// longest staged packet has.
pub(super) const DATA_SIZES: [u32; 2] = [128, 1024];
/// The largest message; some steps ask for more.
pub(super) const MAX_MESSAGE: u32 = 1900;
/// The number by which each of the two endpoints names the other.
pub(super) const PEER: PeerId = PeerId(5);
/// Jobs that the workers of a host take before they are full.
pub(super) const JOBS: usize = 3;
/// Requests in a group of consecutive numbers. Groups alternate: the data of the first group
/// travels in packets, the data of the second group stays with the sender, and so on.
const REFERRED: u32 = 64;
/// Shortest data that stays with its sender.
pub(super) const REFERRED_LEN: usize = 24;
/// If the first byte of the data is a multiple of this, the sender revokes the data before the
/// receiver first reads it.
const REVOKED: u8 = 16;
/// The number of past frames that a host keeps, so that a step can send one again.
const HISTORY: usize = 32;

#[derive(Clone, Debug)]
pub(super) struct Datagram {
    pub(super) bytes: Vec<u8>,
    pub(super) congestion: bool,
}

/// The transport of both endpoints.
pub(super) struct Net;

impl Transport for Net {
    type Rx = NetRx;
    type Tx = NetTx;
}

pub(super) type Inbox = Rc<RefCell<VecDeque<Datagram>>>;

pub(super) struct NetRx {
    pub(super) inbox: Inbox,
    pub(super) burst: Vec<Datagram>,
    /// The generation of all data that stays with its sender.
    pub(super) generation: AtomicU32,
}

impl Rx for NetRx {
    fn burst(&mut self) -> usize {
        let mut inbox = self.inbox.borrow_mut();
        let count = inbox.len().min(RX_BURST);
        self.burst.clear();
        self.burst.extend(inbox.drain(..count));
        count
    }

    fn frame(&self, index: usize) -> Frame<'_> {
        let Datagram { bytes, congestion } = &self.burst[index];
        let lead = self.by_reference(bytes);
        Frame {
            bytes: &bytes[..lead.unwrap_or(bytes.len())],
            congestion: *congestion,
            elsewhere: lead.map(|lead| {
                let revoked = bytes[1] & Flags::RETRANSMISSION.0 == 0 && bytes[lead] % REVOKED == 0;
                let lent = 1 + u32::from(revoked);
                PeerBytes::of(&bytes[lead..], &self.generation, lent)
            }),
        }
    }
}

impl NetRx {
    /// The length of the part before the data, if the data stays with its sender.
    fn by_reference(&self, bytes: &[u8]) -> Option<usize> {
        let header = Header::decode(bytes).ok()?;
        let lead = front_of(bytes)?;
        let referred = header.req.0 / REFERRED % 2 == 1 && bytes.len() >= lead + REFERRED_LEN;
        referred.then_some(lead)
    }
}

/// Packets that a host has sent.
pub(super) struct Outgoing {
    device: Device,
    /// Packets that were handed over and not read yet: their bytes at that time, and the item if
    /// the device reads that later. Staged packets were copied.
    pending: VecDeque<(Option<TxItem>, Vec<u8>)>,
    taken: u64,
    /// Whether the host has got forged packets since its last burst. They may answer requests
    /// that have not left, which then leave without headers (`docs/decisions/lanes.md`).
    pub(super) attacked: bool,
    /// Whether the device reads nothing.
    pub(super) stuck: bool,
    /// Packets that are on their way.
    pub(super) flight: Vec<Datagram>,
    record: Recorder,
    /// The index of this host.
    host: usize,
    /// The last frames, delivered or not.
    pub(super) history: VecDeque<Vec<u8>>,
}

impl Outgoing {
    pub(super) fn new(host: usize, device: Device, record: Recorder) -> Self {
        Self {
            device,
            pending: VecDeque::new(),
            taken: 0,
            attacked: false,
            stuck: false,
            flight: Vec::new(),
            record,
            host,
            history: VecDeque::new(),
        }
    }

    /// Takes a packet, which has these bytes now.
    fn take(&mut self, peer: PeerId, item: Option<TxItem>, bytes: Vec<u8>) {
        assert_eq!(peer, PEER);
        assert!(self.attacked || !is_headless(&bytes), "a message is gone");
        self.record.note(|| Fact::Sent(self.host, bytes.clone()));
        self.pending.push_back((item, bytes));
        self.taken += 1;
    }

    /// Ends a burst, and returns the position after it.
    fn end_burst(&mut self) -> TxSeq {
        self.attacked = false;
        if !self.stuck {
            self.catch_up();
        }
        TxSeq(self.taken)
    }

    /// Makes the device read everything that was handed over.
    pub(super) fn catch_up(&mut self) {
        while let Some((item, then)) = self.pending.pop_front() {
            let now = item.map_or_else(|| then.clone(), |item| bytes_of(&item));
            assert_eq!(now, then, "a msgbuf changed before the transport was done");
            if item.is_none() && is_headless(&now) {
                // Its receiver would drop it.
                continue;
            }
            let header = Header::decode(&now).expect("an endpoint sends valid headers");
            let len = header
                .data_len(self.device.data_size)
                .expect("a packet exists") as usize;
            let lead = dunlin_wire::HEADER_LEN + header.extension_len();
            assert_eq!(lead + len, now.len(), "a packet is as long as it says");
            if self.history.len() == HISTORY {
                self.history.pop_front();
            }
            self.history.push_back(now.clone());
            self.flight.push(Datagram {
                bytes: now,
                congestion: false,
            });
        }
    }
}

pub(super) struct NetTx(pub(super) Rc<RefCell<Outgoing>>);

impl Tx for NetTx {
    fn burst(&mut self, items: &[TxItem]) -> TxSeq {
        let mut out = self.0.borrow_mut();
        for item in items {
            out.take(item.peer, Some(*item), bytes_of(item));
        }
        out.end_burst()
    }

    fn lane(&self) -> usize {
        self.0.borrow().device.longest_staged
    }

    fn takes_alike(&self, _packet: LanePacket) -> bool {
        self.0.borrow().device.rows
    }

    fn send_alike<'a>(
        &mut self,
        lane: &'a Lane,
        first: LanePacket,
        messages: impl Messages<'a>,
    ) -> TxSeq {
        if !self.takes_alike(first) {
            return self.send(lane, &[]);
        }
        let mut out = self.0.borrow_mut();
        for bytes in packets_alike(lane, first, messages) {
            out.take(first.peer(), None, bytes);
        }
        out.end_burst()
    }

    fn send(&mut self, lane: &Lane, items: &[TxItem]) -> TxSeq {
        for packet in lane.packets() {
            let bytes = lane.bytes(*packet).to_vec();
            self.0.borrow_mut().take(packet.peer(), None, bytes);
        }
        self.burst(items)
    }

    fn done(&mut self) -> TxSeq {
        let out = self.0.borrow();
        TxSeq(out.taken - out.pending.len() as u64)
    }

    fn flush(&mut self) {
        self.0.borrow_mut().catch_up();
    }
}
