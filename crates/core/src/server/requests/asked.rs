//! Packets of responses that clients have asked for by RFR, until they are sent (rule S13).
//! Sessions take turns, so a session that asks for more than its share delays only itself.
//!
//! Invariants: a session has at most as many packets here as it has credits, which an honest client
//! never exceeds; no packet is here twice; a session waits for its turn if and only if it has
//! packets here. Queues keep their memory, so after a while an RFR allocates nothing.
//!
//! Owned by [`Requests`](super::Requests), which knows whether the response is still there.

use std::collections::VecDeque;
use std::ops::Range;

use dunlin_wire::{Flags, Header, PktNum};

use crate::handle::{RequestId, SessionIdx};
use crate::time::Nanos;

/// Bytes of queued packets that leave in one iteration; at least one packet leaves. Over loopback
/// UDP, sending them takes some 20 µs, and a request that arrives meanwhile has to wait.
pub(super) const ITERATION_BYTES: usize = 64 << 10;

/// The most bytes that a session sends in one turn; at least one packet. A turn also ends with the
/// last packet of a response.
const TURN_BYTES: usize = 16 << 10;

/// The same, if the packets wait for the NIC. Messages of this length then end one after the other.
/// So their clients also begin their next requests one after the other, which keeps both directions
/// of the link busy.
const LIMITED_TURN_BYTES: usize = 64 << 10;

/// A packet counts as at least this number of bytes, because handling it takes time even if it is
/// short.
pub(super) const LEAST_CHARGE: usize = 1 << 10;

/// The most parts in the queue of one session. A paced client asks for at most 512 packets ahead,
/// four per RFR, so it sends at most this number of RFRs. The limit is low because each RFR is
/// compared with all parts.
const MOST_PARTS: usize = 128;

/// The most parts that one RFR may overlap or add, for the same reason.
const MOST_STEPS: usize = 8;

/// Consecutive packets of one response that one RFR has asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Asking {
    request: RequestId,
    /// The first packet that has not been sent.
    next: u32,
    /// One more than the last packet.
    after: u32,
    /// The flags of the answering packets.
    flags: Flags,
    /// When the RFR came.
    came: Nanos,
}

/// The packets that one session has asked for.
#[derive(Debug, Default)]
struct Queue {
    parts: VecDeque<Asking>,
    packets: u32,
    /// Bytes that the session may still send in its turn; 0 if its turn has not begun. A session
    /// that asks packet by packet keeps its turn although its queue is empty between two packets.
    left: usize,
}

/// The packets that sessions have asked for.
#[derive(Debug)]
pub(super) struct Asked {
    /// Bytes that a session may send in a turn.
    turn: usize,
    turns: VecDeque<SessionIdx>,
    /// The queues, by session index.
    queues: Vec<Queue>,
}

impl Asking {
    /// The packets that an RFR asks for. The RFR came at `came`.
    pub(super) fn new(request: RequestId, packets: Range<u32>, flags: Flags, came: Nanos) -> Self {
        Self {
            request,
            next: packets.start,
            after: packets.end,
            flags,
            came,
        }
    }

    /// Completes the header of the first unsent packet.
    pub(super) fn mark(&self, answer: &mut Header) {
        answer.flags = self.flags;
        answer.pkt = PktNum(self.next);
    }

    /// When the RFR came, if the next packet is the last one that it asked for: the header of that
    /// packet states how long the RFR stayed in the server.
    pub(super) fn measured_from(&self) -> Option<Nanos> {
        (self.next + 1 == self.after).then_some(self.came)
    }
}

impl Asked {
    /// The queues of sessions whose packets leave without waiting for the NIC.
    pub(super) fn free() -> Self {
        Self::with(TURN_BYTES)
    }

    /// The queues of sessions whose packets wait for the NIC.
    pub(super) fn limited() -> Self {
        Self::with(LIMITED_TURN_BYTES)
    }

    fn with(turn: usize) -> Self {
        Self {
            turn,
            turns: VecDeque::new(),
            queues: Vec::new(),
        }
    }

    /// Queues packets for which a client asks. A packet that is already queued is not queued again,
    /// but will carry the flags of both RFRs. False if some were dropped, because the session has
    /// `limit` packets or too many parts here, or because the RFR overlaps too many parts.
    pub(super) fn ask(&mut self, session: SessionIdx, asking: &Asking, limit: u32) -> bool {
        let index = session.0 as usize;
        if self.queues.len() <= index {
            self.queues.resize_with(index + 1, Queue::default);
        }
        let queue = &mut self.queues[index];
        let was_empty = queue.parts.is_empty();
        let fits = queue.add(asking, limit);
        if was_empty && !queue.parts.is_empty() {
            match queue.left {
                0 => self.turns.push_back(session),
                _ => self.turns.push_front(session),
            }
        }
        fits
    }

    /// Whether no session waits for its turn.
    pub(super) fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }

    /// The session whose turn it is, and the next part of its queue: a request and packets of its
    /// response.
    pub(super) fn first(&self) -> Option<(SessionIdx, RequestId, Asking)> {
        let session = *self.turns.front()?;
        let part = self.queues[session.0 as usize].parts.front();
        part.map(|part| (session, part.request, *part))
    }

    /// Notes that the first packet of the session whose turn it is was sent, which counts as
    /// `bytes` bytes. `last`: no packet of its response follows, so the turn ends.
    pub(super) fn on_sent(&mut self, bytes: usize, last: bool) {
        let Some(&session) = self.turns.front() else {
            return;
        };
        let queue = &mut self.queues[session.0 as usize];
        queue.on_sent();
        let left = if queue.left == 0 {
            self.turn
        } else {
            queue.left
        };
        queue.left = if last { 0 } else { left.saturating_sub(bytes) };
        let (is_over, is_empty) = (queue.left == 0, queue.parts.is_empty());
        if is_over || is_empty {
            self.turns.pop_front();
        }
        if is_over && !is_empty {
            self.turns.push_back(session);
        }
    }

    /// Drops the first part of the session whose turn it is, because the response is gone.
    pub(super) fn on_gone(&mut self) {
        let Some(session) = self.turns.front() else {
            return;
        };
        let queue = &mut self.queues[session.0 as usize];
        if let Some(part) = queue.parts.pop_front() {
            queue.packets -= part.after - part.next;
        }
        if queue.parts.is_empty() {
            self.turns.pop_front();
        }
    }

    /// Drops the packets and the turn of a session that has ended.
    pub(super) fn forget(&mut self, session: SessionIdx) {
        let Some(queue) = self.queues.get_mut(session.0 as usize) else {
            return;
        };
        queue.left = 0;
        if !queue.parts.is_empty() {
            queue.parts.clear();
            queue.packets = 0;
            self.turns.retain(|other| *other != session);
        }
    }
}

impl Queue {
    /// Notes that the first packet was sent.
    fn on_sent(&mut self) {
        self.packets -= 1;
        let done = self.parts.front_mut().is_some_and(|part| {
            part.next += 1;
            part.next == part.after
        });
        if done {
            self.parts.pop_front();
        }
    }

    fn add(&mut self, asking: &Asking, limit: u32) -> bool {
        let mut next = asking.next;
        for _ in 0..MOST_STEPS {
            if next >= asking.after {
                break;
            }
            if let Some(part) = self.part_with(asking.request, next) {
                part.flags = part.flags.with(asking.flags);
                next = part.after;
                continue;
            }
            let room = limit.saturating_sub(self.packets);
            if room == 0 || self.parts.len() >= MOST_PARTS {
                break;
            }
            let same = |part: &&Asking| part.request == asking.request;
            let later = self.parts.iter().filter(same);
            let later = later.map(|part| part.next).filter(|start| *start > next);
            let after = later.min().unwrap_or(u32::MAX).min(asking.after);
            let after = after.min(next.saturating_add(room));
            self.packets += after - next;
            self.parts.push_back(Asking {
                next,
                after,
                ..*asking
            });
            next = after;
        }
        next >= asking.after
    }

    /// The part that has this packet of the request's response.
    fn part_with(&mut self, request: RequestId, packet: u32) -> Option<&mut Asking> {
        self.parts
            .iter_mut()
            .filter(|part| part.request == request)
            .find(|part| (part.next..part.after).contains(&packet))
    }
}

#[cfg(test)]
mod tests;
