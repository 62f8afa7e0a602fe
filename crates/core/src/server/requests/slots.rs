//! Slots in which peers issue requests: the current request of each slot, and its next number
//! (rules S1, S2).

use dunlin_msgbuf::MsgBuf;
use dunlin_wire::ReqNum;
use dunlin_wire::control::Fate;

use super::{InboundRequest, RequestState, Requests, Template};
use crate::handle::{RequestIdx, SessionIdx, SlotIdx};
use crate::session::slots::SlotRange;

/// A slot. Its entry has the number of the last accepted request (rule S2).
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    /// The number of the last request, while the slot has no entry.
    last: ReqNum,
    /// The entry, or [`RequestIdx::NONE`] if the last response was given back.
    request: RequestIdx,
}

impl Requests {
    /// Gives a session these slots, whose request numbers start at `first_req`. `all`: the number
    /// of slots of all sessions together.
    pub(crate) fn open_slots(&mut self, slots: SlotRange, first_req: ReqNum, all: usize) {
        let empty = Slot {
            last: ReqNum(0),
            request: RequestIdx::NONE,
        };
        self.slots.resize(all.max(self.slots.len()), empty);
        for (number, at) in (0..).zip(slots.iter()) {
            let req = ReqNum(first_req.0.wrapping_add(number));
            self.slots[at.index()] = Slot {
                last: req.previous(slots.len()),
                request: RequestIdx::NONE,
            };
        }
    }

    /// Number of the last accepted request of the slot.
    #[inline]
    pub(super) fn last_at(&self, at: SlotIdx) -> ReqNum {
        match self.slots[at.index()].request {
            RequestIdx::NONE => self.slots[at.index()].last,
            request => self.table.at(request).req,
        }
    }

    /// The last accepted request of the slot, unless its entry was given back.
    #[inline]
    pub(super) fn request_at(&self, at: SlotIdx) -> Option<RequestIdx> {
        let request = self.slots[at.index()].request;
        (request != RequestIdx::NONE).then_some(request)
    }

    /// The number of slots that have a request.
    pub(super) fn count_in_slots(&self) -> usize {
        self.slots
            .iter()
            .filter(|slot| slot.request != RequestIdx::NONE)
            .count()
    }

    /// The slot's last request, if it has this number and this state.
    #[inline]
    pub(super) fn current(
        &self,
        at: SlotIdx,
        req: ReqNum,
        state: RequestState,
    ) -> Option<RequestIdx> {
        let idx = self.request_at(at).filter(|_| self.last_at(at) == req)?;
        (self.at(idx).state == state).then_some(idx)
    }

    /// The fate of the request that the peer has issued in the slot (rule C11).
    pub(crate) fn fate_at(&self, at: SlotIdx, req: ReqNum) -> Fate {
        let last = self.last_at(at);
        if req != last {
            return match req.is_before(last) {
                true => Fate::Gone,
                false => Fate::Unknown,
            };
        }
        let state = self.request_at(at).map(|idx| self.at(idx).state);
        match state.unwrap_or_default() {
            RequestState::Free => Fate::Gone,
            RequestState::Receiving => Fate::Arriving,
            RequestState::Dispatched | RequestState::Detached => Fate::Running,
            RequestState::Done => Fate::Answered,
        }
    }

    /// The slot's entry. A slot without one gets an entry if this is the slot's next request.
    #[inline(always)]
    pub(super) fn entry_for(
        &mut self,
        at: SlotIdx,
        session: SessionIdx,
        (word, window): (u64, u32),
        answer: impl FnOnce() -> Template,
    ) -> Option<RequestIdx> {
        let slot = self.slots.get(at.index())?;
        if slot.request != RequestIdx::NONE {
            return Some(slot.request);
        }
        // Only the first packet of a request gets an entry: an entry for a later packet would stay
        // unused.
        let is_next = word == u64::from(slot.last.next(window).0) << 32;
        is_next.then(|| self.furnish(at, session, answer()))
    }

    /// The entry for the slot's next request, whatever its number; `None` if the last request is
    /// not over.
    #[inline]
    pub(super) fn next_at(
        &mut self,
        at: SlotIdx,
        session: SessionIdx,
        answer: impl FnOnce() -> Template,
    ) -> Option<RequestIdx> {
        let idx = match self.request_at(at) {
            None => self.furnish(at, session, answer()),
            Some(idx) => idx,
        };
        self.at(idx).state.is_over().then_some(idx)
    }

    /// Gives the slot an entry, which keeps the slot's template until it is given back.
    #[cold]
    fn furnish(&mut self, at: SlotIdx, session: SessionIdx, answer: Template) -> RequestIdx {
        self.gives_back = false;
        let generation = self.first_generation;
        let index = self.table.take_or(|| InboundRequest {
            generation,
            ..InboundRequest::default()
        });
        let request = self.table.at_mut(index);
        request.answer = answer;
        request.session = session;
        request.at = at;
        request.req = self.slots[at.index()].last;
        self.slots[at.index()].request = index;
        index
    }

    /// Takes the entry out of the slot; the slot keeps the number of its last request.
    pub(super) fn vacate(&mut self, at: SlotIdx) {
        self.slots[at.index()] = Slot {
            last: self.last_at(at),
            request: RequestIdx::NONE,
        };
    }

    /// Prefetches the memory of a slot.
    #[inline]
    pub(crate) fn prefetch_slot(&self, at: SlotIdx) {
        dunlin_msgbuf::prefetch_slice(&self.slots, at.index());
    }

    /// Prefetches the part of a slot's request that an ordinary packet touches.
    #[inline]
    pub(crate) fn prefetch_request(&self, at: SlotIdx) -> Option<RequestIdx> {
        let request = self.slots.get(at.index())?.request;
        dunlin_msgbuf::prefetch_read(self.table.get(request)?);
        Some(request)
    }

    /// The response of a request: the buffer that the slot's next response overwrites.
    #[inline]
    pub(crate) fn response_to_overwrite(&self, request: RequestIdx) -> Option<&MsgBuf> {
        self.table.get(request)?.response.as_ref()
    }
}
