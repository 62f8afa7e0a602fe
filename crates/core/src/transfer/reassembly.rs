//! Reassembly: partly arrived large requests of peers, and the CRs that are due for them (rules S7,
//! S14).
//!
//! Invariants: a request under assembly has a buffer of its whole size, and the budgets of its
//! session and its endpoint count that size; `bytes` is the sum of `bytes_of`.

mod runs;

use std::collections::VecDeque;

use dunlin_msgbuf::MsgBuf;
use dunlin_wire::{Bitmap, Header, PktNum};

use crate::config::Config;
use crate::handle::{AssemblyIdx, RequestIdx, SessionIdx};
use crate::observe::counters::DropReason;
use crate::ordered::Map;
use crate::packet::receive::Data;
use crate::slab::Slab;
use crate::transfer::arrivals::{Arrivals, Novelty};

/// A partly arrived request.
#[derive(Debug, Default)]
struct Assembly {
    arrivals: Arrivals,
    packets: u32,
    size: u32,
    /// The whole message; `None` if the entry is free.
    message: Option<MsgBuf>,
    /// The latest packet, which the next CR answers.
    trigger: u32,
    /// A CR is due at the end of the burst.
    is_credit_due: bool,
    congestion: bool,
    /// A packet was a duplicate; the next CR reports that.
    duplicate: bool,
}

/// A complete request on its way to its handler.
#[derive(Debug)]
pub(crate) struct Arrived {
    /// The request's index at the server side.
    pub(crate) request: RequestIdx,
    pub(crate) message: MsgBuf,
}

/// Whether a packet is new to its request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Taken {
    /// The packet is new, and others are still missing.
    New,
    /// The packet is new and completes the request.
    Last,
    /// The packet is a duplicate.
    Again,
}

/// The contents of a CR to a request under assembly.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CreditReturn {
    /// All packets before this one have arrived.
    pub(crate) cumulative: PktNum,
    /// The later packets that have arrived. A second bitmap has the packets that do not fit into
    /// the first.
    pub(crate) bitmaps: (Bitmap, Option<Bitmap>),
    /// The packet that the CR answers.
    pub(crate) trigger: PktNum,
    pub(crate) congestion: bool,
    pub(crate) duplicate: bool,
}

/// All large requests of an endpoint that have arrived in part, or that are complete and wait for
/// their handlers.
#[derive(Debug, Default)]
pub(crate) struct Reassembly {
    assemblies: Slab<AssemblyIdx, Assembly>,
    bytes: u64,
    /// Bytes of the requests under assembly, for each session that ever had any.
    bytes_of: Map<SessionIdx, u64>,
    /// Requests for which a CR is due.
    pending_credit_returns: Vec<RequestIdx>,
    complete: VecDeque<Arrived>,
}

impl Reassembly {
    /// Bytes of the requests under assembly.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes of one session's requests under assembly.
    pub(crate) fn bytes_of(&self, session: SessionIdx) -> u64 {
        self.bytes_of.get(&session).copied().unwrap_or(0)
    }

    /// Whether the bytes of all sessions and of all requests have the same sum, which is the budget
    /// in use, and whether each entry in use has a request.
    pub(crate) fn is_sum_right(&self) -> bool {
        let bytes: u64 = self.bytes_of.values().sum();
        let all = self
            .assemblies
            .iter()
            .filter(|assembly| assembly.message.is_some());
        let (count, sum) = all.fold((0, 0), |(count, sum), assembly| {
            (count + 1, sum + u64::from(assembly.size))
        });
        bytes == self.bytes && sum == bytes && count == self.assemblies.live()
    }

    /// Bytes of the whole request at `place`.
    pub(crate) fn size_at(&self, place: AssemblyIdx) -> u64 {
        u64::from(self.assemblies.at(place).size)
    }

    /// Whether a complete request or a CR waits for the loop.
    pub(crate) fn is_waiting(&self) -> bool {
        !(self.pending_credit_returns.is_empty() && self.complete.is_empty())
    }

    /// Whether the budgets have room for a request of `size` bytes (rule S14).
    pub(crate) fn has_room(&self, session: SessionIdx, size: u32, config: &Config) -> bool {
        let size = u64::from(size);
        self.bytes_of(session) + size <= config.session_receive_budget
            && self.bytes + size <= config.receive_budget
    }

    /// Begins a request of `packets` packets, in a buffer of its whole size. Returns its place.
    pub(crate) fn begin(
        &mut self,
        session: SessionIdx,
        packets: u32,
        size: u32,
        message: MsgBuf,
    ) -> AssemblyIdx {
        self.bytes += u64::from(size);
        *self.bytes_of.get_or_insert(session, 0) += u64::from(size);
        let place = self.assemblies.take();
        *self.assemblies.at_mut(place) = Assembly {
            packets,
            size,
            message: Some(message),
            ..Assembly::default()
        };
        place
    }

    /// Takes a packet of the request at `place`.
    ///
    /// # Errors
    /// The reason why the packet must be dropped; the request is unchanged.
    pub(crate) fn take(
        &mut self,
        place: AssemblyIdx,
        header: &Header,
        data: Data<'_>,
        data_size: usize,
        congestion: bool,
    ) -> Result<Taken, DropReason> {
        let assembly = self.assemblies.at_mut(place);
        if header.size != assembly.size {
            return Err(DropReason::Size);
        }
        let packet = header.pkt.0;
        let found = assembly.arrivals.find(packet);
        match found {
            Novelty::TooFar => return Err(DropReason::PacketNumber),
            Novelty::Duplicate => assembly.duplicate = true,
            Novelty::New => {
                let start = packet as usize * data_size;
                let end = start + data.len();
                let message = assembly.message.as_mut().map(|message| {
                    message.prepare(end);
                    message.data_mut()
                });
                // The packet exists, and its data has the right length (rule W8).
                let place = message.and_then(|bytes| bytes.get_mut(start..end));
                if !place.is_some_and(|place| data.copy_to(place)) {
                    return Err(DropReason::Revoked);
                }
                assembly.arrivals.insert(packet);
            }
        }
        assembly.congestion |= congestion;
        assembly.trigger = packet;
        let complete = assembly.arrivals.cumulative() == assembly.packets;
        Ok(match found {
            _ if complete => Taken::Last,
            Novelty::New => Taken::New,
            _ => Taken::Again,
        })
    }

    /// Whether the network has marked a packet of the request at `place` that no CR has answered
    /// yet.
    pub(crate) fn is_marked(&self, place: AssemblyIdx) -> bool {
        self.assemblies.at(place).congestion
    }

    /// Notes that a CR for the request at `place` is due at the end of the burst.
    pub(crate) fn on_credit_due(&mut self, place: AssemblyIdx, request: RequestIdx) {
        let assembly = self.assemblies.at_mut(place);
        if !assembly.is_credit_due {
            assembly.is_credit_due = true;
            self.pending_credit_returns.push(request);
        }
    }

    /// The next request for which a CR may be due. A request may come up twice, if a later packet
    /// has queued it again.
    pub(crate) fn pop_pending(&mut self) -> Option<RequestIdx> {
        self.pending_credit_returns.pop()
    }

    /// Takes the CR that is due for the request at `place`, if any.
    pub(crate) fn take_credit_return(&mut self, place: AssemblyIdx) -> Option<CreditReturn> {
        let assembly = self.assemblies.at_mut(place);
        if !std::mem::take(&mut assembly.is_credit_due) {
            return None;
        }
        Some(CreditReturn {
            cumulative: PktNum(assembly.arrivals.cumulative()),
            bitmaps: assembly.arrivals.bitmaps(),
            trigger: PktNum(assembly.trigger),
            congestion: std::mem::take(&mut assembly.congestion),
            duplicate: std::mem::take(&mut assembly.duplicate),
        })
    }

    /// Forgets the request at `place`; returns its bytes.
    pub(crate) fn end(&mut self, place: AssemblyIdx, session: SessionIdx) -> Option<MsgBuf> {
        let assembly = self.assemblies.at_mut(place);
        let message = assembly.message.take();
        let size = u64::from(assembly.size);
        self.bytes -= size;
        *self.bytes_of.get_or_insert(session, 0) -= size;
        self.assemblies.release(place);
        message
    }

    /// Forgets a session that has closed; its requests have ended.
    pub(crate) fn forget_session(&mut self, session: SessionIdx) {
        let left = self.bytes_of.remove(&session);
        debug_assert!(matches!(left, None | Some(0)));
    }

    /// Keeps a complete request until its handler runs.
    pub(crate) fn on_complete(&mut self, request: RequestIdx, message: MsgBuf) {
        self.complete.push_back(Arrived { request, message });
    }

    /// The next complete request.
    pub(crate) fn pop_complete(&mut self) -> Option<Arrived> {
        self.complete.pop_front()
    }

    /// A planted bug: takes a place that belongs to no request.
    #[cfg(feature = "mutants")]
    pub(crate) fn leak_place(&mut self) {
        self.assemblies.take();
    }

    /// A planted bug: the request's bytes stay in the budget.
    #[cfg(feature = "mutants")]
    pub(crate) fn leak(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
    }
}

#[cfg(test)]
mod tests;
