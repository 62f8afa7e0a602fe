//! The world's network: frames wait until a step moves them. Like a slow device, the sending half
//! reads a msgbuf only when a step makes it do so, and notices if the msgbuf has changed in the
//! meantime.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::atomic::AtomicU32;

use dunlin_msgbuf::PeerBytes;
use dunlin_wire::{Flags, Header};

use super::record::{Fact, Recorder};
use crate::packet::{bytes_of, front_of};
use dunlin_core::transport::{
    Frame, Lane, MAX_INLINE, PeerId, RX_BURST, Rx, Transport, Tx, TxItem, TxSeq,
};

pub(super) const DATA_SIZE: u32 = 128;
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
#[derive(Default)]
pub(super) struct Outgoing {
    /// Items that were handed over and not read yet, each with its bytes at that time.
    pending: VecDeque<(TxItem, Vec<u8>)>,
    taken: u64,
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
    pub(super) fn new(host: usize, record: Recorder) -> Self {
        Self {
            record,
            host,
            ..Self::default()
        }
    }

    /// Makes the device read everything that was handed over.
    pub(super) fn catch_up(&mut self) {
        while let Some((item, then)) = self.pending.pop_front() {
            let now = bytes_of(&item);
            assert_eq!(now, then, "a msgbuf changed before the transport was done");
            let header = Header::decode(&now).expect("an endpoint sends valid headers");
            let len = header.data_len(DATA_SIZE).expect("a packet exists") as usize;
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
            assert_eq!(item.peer, PEER);
            let bytes = bytes_of(item);
            out.record.note(|| Fact::Sent(out.host, bytes.clone()));
            out.pending.push_back((*item, bytes));
        }
        out.taken += items.len() as u64;
        if !out.stuck {
            out.catch_up();
        }
        TxSeq(out.taken)
    }

    fn lane(&self) -> usize {
        MAX_INLINE
    }

    fn send(&mut self, lane: &Lane, items: &[TxItem]) -> TxSeq {
        let staged = lane.packets().iter();
        let staged = staged.filter_map(|packet| lane.to_item(*packet));
        let all: Vec<_> = staged.chain(items.iter().copied()).collect();
        self.burst(&all)
    }

    fn done(&mut self) -> TxSeq {
        let out = self.0.borrow();
        TxSeq(out.taken - out.pending.len() as u64)
    }

    fn flush(&mut self) {
        self.0.borrow_mut().catch_up();
    }
}
