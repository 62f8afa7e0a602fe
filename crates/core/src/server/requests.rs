//! The server side's requests: the requests of peers, from acceptance until the response is known
//! to have arrived, or `response_hold` has passed (rule S9), and their slots.
//!
//! ```text
//! accept ─one packet─▶ Dispatched ──reply, reject, end of handler──▶ Done
//!   │                   ▲   └──kept──▶ Detached ──reply, reject──────▲
//!   └─first packet─▶ Receiving ──reject──────────────────────────────┘
//! Done ──next request, ack, hold──▶ Free
//! ```
//! A dispatch handler ends before the endpoint looks at the next packet; deferred and background
//! requests outlive the iteration. When a session closes while a handler has a request, the request
//! stays as an orphan until the handler lets go of it: a slot never has two live handlers.
//!
//! State is private. `requests/slots.rs` knows which request is a slot's current one,
//! `requests/packets.rs` handles packets, `requests/plain.rs` ordinary requests and their replies,
//! `requests/answers.rs` replies, `requests/parts.rs` messages of more than one packet,
//! `requests/asked.rs` the packets that clients ask for, `requests/endings.rs` the end of requests.
//! The endpoint's core routes events here. The only user code that runs here is the function that
//! writes a response.

mod answers;
mod asked;
mod endings;
mod laws;
mod packets;
mod parts;
mod plain;
mod slots;

use dunlin_msgbuf::MsgBuf;
use dunlin_wire::{ErrorCode, ReqNum, ReqType};

use crate::congestion::egress::Egress;
use crate::handle::{AssemblyIdx, RequestId, RequestIdx, SessionIdx, SlotIdx};
use crate::server::inbound::{Effect, Partial};
use crate::session::terms::Template;
use crate::slab::Slab;
use crate::time::Nanos;
use crate::transport::TxSeq;

use asked::Asked;
use slots::Slot;

/// The state of a request; see the diagram above.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
enum RequestState {
    #[default]
    Free,
    /// Some of its packets have arrived.
    Receiving,
    /// A dispatch or batch handler has it, within this iteration.
    Dispatched,
    /// A deferred request or a background job has it.
    Detached,
    /// Answered; the answer is kept for duplicates.
    Done,
}

impl RequestState {
    /// The table of transitions.
    fn may_become(self, next: Self) -> bool {
        use RequestState::{Detached, Dispatched, Done, Free, Receiving};
        matches!(
            (self, next),
            (Free | Done | Receiving, Dispatched)
                | (Dispatched, Receiving | Detached)
                | (Dispatched | Receiving | Detached, Done)
                | (Dispatched | Receiving | Detached | Done, Free)
        )
    }

    /// Whether a handler has the request and may answer it.
    #[inline]
    fn is_open(self) -> bool {
        matches!(self, Self::Dispatched | Self::Detached)
    }

    /// Whether another request may follow in its slot.
    #[inline]
    fn is_over(self) -> bool {
        matches!(self, Self::Free | Self::Done)
    }
}

/// Flags of a request, in one byte. Most requests have none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Marks(u8);

impl Marks {
    /// The client has asked to cancel.
    const CANCELLED: Self = Self(1);
    /// The request came with a congestion mark, which the answer echoes.
    const CONGESTION: Self = Self(2);
    /// The client wants to know how long the request stayed (rule S10).
    const SAMPLE: Self = Self(4);
    /// The session is gone: no client waits for the answer.
    const ORPHAN: Self = Self(8);
    /// It has more than one packet.
    const LARGE: Self = Self(16);
    /// The answer was an error.
    const FAILED: Self = Self(32);
    /// The transport reads the response in place, not a copy.
    const LENT: Self = Self(64);
    /// Only the general path may answer, because the common path is off, or the clock is read for
    /// each packet.
    const GENERAL: Self = Self(128);
    /// An ordinary request.
    const NONE: Self = Self(0);

    #[inline]
    const fn has(self, mark: Self) -> bool {
        self.0 & mark.0 != 0
    }

    #[inline]
    const fn with(self, mark: Self, on: bool) -> Self {
        match on {
            true => Self(self.0 | mark.0),
            false => Self(self.0 & !mark.0),
        }
    }

    #[inline]
    const fn set(&mut self, mark: Self) {
        self.0 |= mark.0;
    }
}

/// One request at the server: two cache lines, of which an ordinary request touches the first.
///
/// An ordinary request writes here four times: state and marks twice, its number, and its time of
/// arrival. `packets`, `place`, `error` and `tx_end` are valid only if state and marks show so.
#[derive(Debug, Default)]
#[repr(C, align(64))]
struct InboundRequest {
    answer: Template,
    /// The response. Its buffer stays here, for the next request of the slot.
    response: Option<MsgBuf>,
    /// When the request came.
    arrived: Nanos,
    /// The transport has released the response once its sequence has reached this number.
    tx_end: TxSeq,
    state: RequestState,
    marks: Marks,
    /// Padding: state, marks and number are read as one word.
    spare: u16,
    req: ReqNum,
    session: SessionIdx,
    /// How often the entry was given to a slot.
    generation: u32,

    /// When the request was answered; while it is `Receiving`, when the last packet came. A time
    /// before `arrived` means that it was answered in the iteration in which it came.
    answered: Nanos,
    /// The place of its slot; without meaning for an orphan.
    at: SlotIdx,
    /// Packets of a request with the mark `LARGE`.
    packets: u32,
    /// In `Receiving`: its place in reassembly.
    place: AssemblyIdx,
    /// With the mark `FAILED`: the error that was answered.
    error: Option<ErrorCode>,
    req_type: ReqType,
}

const _: () = {
    assert!(size_of::<InboundRequest>() == 128);
    assert!(std::mem::offset_of!(InboundRequest, answered) == 64);
};

impl InboundRequest {
    /// The only place where the state changes.
    #[inline(always)]
    fn enter(&mut self, next: RequestState) {
        debug_assert!(self.state.may_become(next), "{:?} to {next:?}", self.state);
        self.state = next;
    }

    /// Begins a request, which counts as one packet until more is known.
    #[inline(always)]
    fn begin(&mut self, req: ReqNum, marks: Marks, arrived: Nanos) {
        self.enter(RequestState::Dispatched);
        self.marks = marks;
        self.req = req;
        self.arrived = arrived;
    }

    /// The request's number in the upper half, marks and state in the lower.
    #[inline(always)]
    fn word(&self) -> u64 {
        let lower = u32::from(self.spare) << 16 | u32::from(self.marks.0) << 8 | self.state as u32;
        u64::from(self.req.0) << 32 | u64::from(lower)
    }

    /// Whether this request is over, and a packet whose header has this last word is the next
    /// ordinary request of the slot.
    #[inline(always)]
    fn precedes(&self, word: u64, window: u32) -> bool {
        let next = self.word().wrapping_add(u64::from(window) << 32);
        next == word.wrapping_add(RequestState::Done as u64)
    }

    /// Whether the request is in this state and has no marks: one comparison of two bytes.
    #[inline(always)]
    fn is_plainly(&self, state: RequestState) -> bool {
        let plain = [state as u8, Marks::NONE.0];
        u16::from_le_bytes([self.state as u8, self.marks.0]) == u16::from_le_bytes(plain)
    }

    /// Notes that an answer was sent. The transport may read the response until the transport's
    /// sequence reaches `end`. Zero: the transport has a copy.
    #[inline(always)]
    fn on_sent(&mut self, end: TxSeq) {
        if end != TxSeq(0) {
            self.tx_end = end;
            self.marks.set(Marks::LENT);
        }
    }

    /// Makes this error the answer.
    fn fail(&mut self, code: ErrorCode) {
        self.error = Some(code);
        self.marks.set(Marks::FAILED);
    }

    /// The error that was answered.
    fn error(&self) -> Option<ErrorCode> {
        self.error.filter(|_| self.marks.has(Marks::FAILED))
    }

    fn packets(&self) -> u32 {
        match self.marks.has(Marks::LARGE) {
            true => self.packets,
            false => 1,
        }
    }

    /// Since when the server has held its answer; while the request arrives, the time of its last
    /// new packet.
    fn held_since(&self) -> Nanos {
        match self.state {
            RequestState::Receiving => self.answered,
            _ => self.answered.max(self.arrived),
        }
    }

    /// Whether no client still waits for the answer.
    #[inline]
    fn is_unwanted(&self) -> bool {
        self.marks.has(Marks(Marks::CANCELLED.0 | Marks::ORPHAN.0))
    }
}

/// The requests of peers, until their entries are freed, and the slots of all sessions.
#[derive(Debug)]
pub(crate) struct Requests {
    table: Slab<RequestIdx, InboundRequest>,
    slots: Vec<Slot>,
    asked: Asked,
    /// Packets that clients of sessions with a declared path have asked for.
    limited: Asked,
    egress: Egress,
    /// The generation of new entries. It is higher than that of every entry whose memory was given
    /// back, so an old handle never finds a later request.
    first_generation: u32,
    /// Memory of unused entries is being given back, because the sweep has found no held response
    /// since a slot last got an entry.
    gives_back: bool,
    /// The request whose handler is running, if the request lies in a msgbuf of its own.
    lying_apart: Option<LyingApart>,
}

/// A request that lies in a msgbuf of its own and whose handler is running.
#[derive(Clone, Copy, Debug)]
struct LyingApart {
    request: RequestIdx,
    /// The handler has answered with that msgbuf.
    is_echoed: bool,
}

impl Default for Requests {
    fn default() -> Self {
        Self {
            table: Slab::default(),
            slots: Vec::new(),
            asked: Asked::free(),
            limited: Asked::limited(),
            egress: Egress::default(),
            first_generation: 0,
            gives_back: false,
            lying_apart: None,
        }
    }
}

/// Questions about a request.
impl Requests {
    #[inline]
    pub(crate) fn id(&self, idx: RequestIdx) -> RequestId {
        let request = self.at(idx);
        RequestId {
            index: idx,
            generation: request.generation,
            req: request.req,
        }
    }

    /// The response to the request with this number; no bytes if the entry has another one now.
    #[inline(always)]
    pub(crate) fn staged(&self, idx: RequestIdx, req: ReqNum) -> &[u8] {
        let request = self.table.get(idx).filter(|request| request.req == req);
        let response = request.and_then(|request| request.response.as_ref());
        response.map_or(&[], MsgBuf::data)
    }

    /// The request that a handle names, if it is still unanswered.
    pub(crate) fn find(&self, id: RequestId) -> Option<RequestIdx> {
        let request = self.table.get(id.index)?;
        let is_it = request.generation == id.generation && request.req == id.req;
        (is_it && request.state.is_open()).then_some(id.index)
    }

    /// Whether a dispatch or batch handler has the request, and has neither answered nor kept it.
    #[inline]
    pub(crate) fn is_dispatched(&self, idx: RequestIdx) -> bool {
        let request = self.table.get(idx);
        request.is_some_and(|request| request.state == RequestState::Dispatched)
    }

    /// Whether no client still waits for the answer.
    pub(crate) fn is_unwanted(&self, idx: RequestIdx) -> bool {
        self.at(idx).is_unwanted()
    }

    /// The session and the type of the request.
    pub(crate) fn origin(&self, idx: RequestIdx) -> (SessionIdx, ReqType) {
        let request = self.at(idx);
        (request.session, request.req_type)
    }

    /// The request, if it has arrived in part.
    pub(crate) fn partial(&self, idx: RequestIdx) -> Option<Partial> {
        let request = self.at(idx);
        (request.state == RequestState::Receiving).then_some(Partial {
            request: idx,
            session: request.session,
            place: request.place,
        })
    }

    /// The number of requests that handlers have and have not answered.
    pub(crate) fn under_way(&self) -> usize {
        let all = self.table.iter();
        all.filter(|request| request.state.is_open()).count()
    }

    /// The effect that the end of the request has on reassembly.
    fn given_up(&self, idx: RequestIdx) -> Effect {
        self.partial(idx).map_or(Effect::None, Effect::GivenUp)
    }

    #[inline]
    fn at(&self, idx: RequestIdx) -> &InboundRequest {
        self.table.at(idx)
    }

    #[inline]
    fn at_mut(&mut self, idx: RequestIdx) -> &mut InboundRequest {
        self.table.at_mut(idx)
    }
}

#[cfg(test)]
mod tests;
