//! The queues of one endpoint at its NIC: frames received and frames being sent.
//!
//! Invariant: bursts are read from memory in order, some time after the endpoint handed them over,
//! and `done` advances only then. The port reports a msgbuf that has changed before it was read,
//! because the endpoint released it too early (design §12). Called by `net` and `transport`.

use std::collections::VecDeque;

use dunlin_core::Nanos;
use dunlin_core::transport::TxSeq;

use crate::world::clock::SimClock;
use crate::world::net::channels::port_of;
use crate::world::net::packet::Packet;
use crate::world::net::{HostId, PortId};

/// One endpoint's NIC queues.
#[derive(Debug)]
pub(super) struct Port {
    pub(super) host: HostId,
    pub(super) clock: SimClock,
    /// Whether a process listens here.
    pub(super) alive: bool,
    /// Counts the processes that have listened here, so that events of dead ones are ignored.
    pub(super) life: u32,
    /// Frames for the endpoint, with their congestion marks.
    pub(super) rx: VecDeque<(Vec<u8>, bool)>,
    tx: VecDeque<Pending>,
    /// Packets handed over by the present process.
    handed: TxSeq,
    /// Packets read from memory.
    pub(super) done: TxSeq,
    /// When the last burst handed over will be read.
    last_dma: Nanos,
    pub(super) traffic: Traffic,
}

/// Frames that a port has sent and received. Bytes count message data, without headers and
/// extensions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Traffic {
    /// Frames that left its memory.
    pub sent: u64,
    /// Bytes of these frames.
    pub sent_bytes: u64,
    /// Bytes of its frames that reached an RX queue, including second copies.
    pub delivered_bytes: u64,
    /// Frames that reached its own RX queue.
    pub received: u64,
    /// Bytes of these frames.
    pub received_bytes: u64,
}

#[derive(Debug)]
struct Pending {
    packet: Packet,
    due: Nanos,
    /// Whether the packet goes into the same frame as the previous one.
    joins: bool,
}

/// A frame as it leaves the host.
#[derive(Debug)]
pub(super) struct Outgoing {
    pub(super) to: PortId,
    pub(super) bytes: Vec<u8>,
    /// Number of its bytes that are data of messages.
    pub(super) data: u32,
    /// Msgbufs that had changed before they were read.
    pub(super) problems: Vec<String>,
}

impl Port {
    pub(super) fn new(host: HostId, clock: SimClock) -> Self {
        Self {
            host,
            clock,
            alive: false,
            life: 0,
            rx: VecDeque::new(),
            tx: VecDeque::new(),
            handed: TxSeq(0),
            done: TxSeq(0),
            last_dma: Nanos::ZERO,
            traffic: Traffic::default(),
        }
    }

    /// A new process listens here.
    pub(super) fn start(&mut self) {
        self.kill();
        self.alive = true;
    }

    pub(super) fn kill(&mut self) {
        self.alive = false;
        self.life += 1;
        self.rx.clear();
        self.tx.clear();
        self.handed = TxSeq(0);
        self.done = TxSeq(0);
    }

    /// Whether any packet that was handed over has not left yet.
    pub(super) fn is_sending(&self) -> bool {
        !self.tx.is_empty()
    }

    /// Whether the next frame could be read now.
    pub(super) fn is_due(&self, now: Nanos) -> bool {
        self.tx.front().is_some_and(|pending| pending.due <= now)
    }

    /// The position after the last packet that was handed over.
    pub(super) fn handed(&self) -> TxSeq {
        self.handed
    }

    /// Takes a burst, which leaves at `due`, but not before earlier bursts. The msgbufs are read at
    /// that time, or, with `at_once`, now. Returns the position after the burst, and when the burst
    /// leaves.
    pub(super) fn hand_over(
        &mut self,
        row: impl IntoIterator<Item = Packet>,
        due: Nanos,
        (frame_bytes, at_once): (usize, bool),
    ) -> (TxSeq, Nanos) {
        self.last_dma = self.last_dma.max(due);
        let mut room: Option<(u32, usize)> = None;
        for mut packet in row {
            let (len, peer) = (packet.len(), packet.item.peer.0);
            let joins = matches!(room, Some((to, left)) if to == peer && len <= left);
            let left = match room {
                Some((_, left)) if joins => left - len,
                _ => frame_bytes.saturating_sub(len),
            };
            room = Some((peer, left));
            if at_once {
                packet.read();
            }
            self.tx.push_back(Pending {
                packet,
                due: self.last_dma,
                joins,
            });
            self.handed.0 += 1;
        }
        if at_once {
            self.done = self.handed;
        }
        (self.handed, self.last_dma)
    }

    /// Reads the next frame that is due by `until` into `bytes`.
    pub(super) fn next_frame(&mut self, until: Nanos, mut bytes: Vec<u8>) -> Option<Outgoing> {
        let first = self.tx.front().filter(|pending| pending.due <= until)?;
        let to = PortId(port_of(first.packet.item.peer));
        bytes.clear();
        let mut out = Outgoing {
            to,
            bytes,
            data: 0,
            problems: Vec::new(),
        };
        let mut take = true;
        while take && let Some(pending) = self.tx.pop_front() {
            out.append(pending.packet);
            self.done = self.done.max(TxSeq(self.handed.0 - self.tx.len() as u64));
            take = self
                .tx
                .front()
                .is_some_and(|next| next.joins && next.due <= until);
        }
        Some(out)
    }
}

impl Outgoing {
    fn append(&mut self, mut packet: Packet) {
        self.data += u32::try_from(packet.data_len()).unwrap_or(u32::MAX);
        packet.read();
        packet.append_to(&mut self.bytes);
        self.problems.extend(packet.problem);
    }
}
