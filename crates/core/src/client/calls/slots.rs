//! The slots in which this side issues requests (rule S1).

use dunlin_wire::{AckVector, ReqNum};

use super::{CallMarks, CallState, Calls};
use crate::client::slot::Slot;
#[cfg(feature = "mutants")]
use crate::context::Context;
use crate::handle::{CallIdx, SessionIdx, SlotIdx};
use crate::session::line::Line;
use crate::session::slots::SlotRange;
use crate::time::Nanos;

impl Calls {
    /// Gives a session these slots, whose request numbers start at `first_req`. `all`: the number
    /// of slots of all sessions; `sessions`: one more than the highest index of a session so far.
    pub(crate) fn open_slots(
        &mut self,
        slots: SlotRange,
        first_req: ReqNum,
        all: usize,
        sessions: u32,
    ) {
        let empty = Slot::new(ReqNum(0), slots.len());
        self.slots.resize(all.max(self.slots.len()), empty);
        self.make_waiting(sessions as usize);
        self.kept.make_room(self.slots.len());
        for (number, at) in (0..).zip(slots.iter()) {
            let req = ReqNum(first_req.0.wrapping_add(number));
            self.slots[at.index()] = Slot::new(req, slots.len());
        }
    }

    /// Requests of free slots whose responses have arrived, although the server does not know it
    /// yet.
    pub(super) fn to_acknowledge(&self, line: &Line) -> impl Iterator<Item = ReqNum> {
        let window = line.window();
        let slots = line.slots().iter();
        slots.filter_map(move |at| self.slots[at.index()].to_acknowledge(window))
    }

    /// Takes four of these requests. They count as acknowledged from now on.
    pub(super) fn take_acks(&mut self, line: &mut Line, now: Nanos) -> AckVector {
        line.on_acks_sent(now);
        AckVector(std::array::from_fn(|_| {
            let req = self.to_acknowledge(line).next();
            let req = req.expect("the caller has checked that there are four");
            self.slots[line.slot_at(req).index()].acknowledge(req);
            req
        }))
    }

    /// The call in the slot, if its request has this number.
    #[inline]
    pub(crate) fn in_slot(&self, at: SlotIdx, req: ReqNum) -> Option<CallIdx> {
        let slot = self.slots[at.index()];
        slot.call().filter(|_| slot.req() == req)
    }

    /// The call in the slot at this place, if there is one.
    pub(crate) fn call_at(&self, at: SlotIdx) -> Option<CallIdx> {
        self.slots[at.index()].call()
    }

    /// The calls in these slots.
    pub(crate) fn in_slots(&self, slots: SlotRange) -> impl Iterator<Item = CallIdx> {
        slots.iter().filter_map(|at| self.call_at(at))
    }

    /// Number of the current request of the slot, or of the next one if the slot is free.
    #[inline]
    pub(crate) fn req_at(&self, at: SlotIdx) -> ReqNum {
        self.slots[at.index()].req()
    }

    /// Number of the request of a call that has a slot.
    #[inline]
    pub(crate) fn req_of(&self, idx: CallIdx) -> ReqNum {
        self.req_at(self.at(idx).at())
    }

    /// Takes the entries out of the slots of a session that has ended.
    pub(crate) fn close_slots(&mut self, slots: SlotRange) {
        self.kept.forget(slots);
        for at in slots.iter() {
            let slot = &mut self.slots[at.index()];
            let entry = slot.entry();
            slot.keep(CallIdx::NONE);
            if let Some(idx) = entry.filter(|idx| !self.at(*idx).marks.has(CallMarks::LOOSE)) {
                self.table.release(idx);
            }
        }
    }

    /// Puts the call into the free slot. If the slot kept an entry for its next call, it now keeps
    /// this call's entry, and any other entry is freed.
    #[inline(always)]
    pub(super) fn occupy(&mut self, at: SlotIdx, idx: CallIdx) {
        let slot = &mut self.slots[at.index()];
        let kept = slot.kept();
        slot.keep(idx);
        slot.occupy();
        self.at_mut(idx).marks.set(CallMarks::LOOSE, kept.is_none());
        if let Some(kept) = kept.filter(|kept| *kept != idx) {
            self.table.release(kept);
        }
    }

    /// After a change of the call's state, notes whether a response of one packet ends the call.
    pub(super) fn settle(&mut self, idx: CallIdx) {
        let call = self.at(idx);
        let (at, plain) = (call.at(), is_plain(call.state));
        self.slots[at.index()].settle(plain);
    }

    /// Ends the request in the slot, and advances the slot to its next number. The slot keeps the
    /// call's entry for its next call, unless too many slots already keep one.
    pub(super) fn vacate(&mut self, at: SlotIdx, window: u32) {
        let slot = &mut self.slots[at.index()];
        slot.vacate(window);
        let Some(idx) = slot.entry() else { return };
        let call = self.table.at_mut(idx);
        if call.marks.has(CallMarks::LOOSE) {
            call.marks.set(CallMarks::LOOSE, !self.kept.add(at));
            if call.marks.has(CallMarks::LOOSE) {
                slot.keep(CallIdx::NONE);
            }
        }
    }

    /// The entry that the free slot at this place keeps.
    pub(super) fn kept_at(&self, at: SlotIdx) -> Option<CallIdx> {
        self.slots[at.index()].kept()
    }

    /// Ends the answered request of the slot: frees slot and credit, and advances the slot to its
    /// next number (rules S1, S7).
    #[inline(always)]
    pub(super) fn release(&mut self, line: &mut Line, req: ReqNum) {
        line.release_slot(req);
        self.vacate(line.slot_at(req), line.window());
    }

    /// A planted bug: request numbers stop instead of wrapping.
    #[cfg(feature = "mutants")]
    pub(crate) fn stop_numbers(
        &mut self,
        at: SlotIdx,
        req: ReqNum,
        window: u32,
        context: &Context,
    ) {
        self.slots[at.index()].stop_number(req, window, context);
    }

    /// A planted bug: the slot's next request has the number of its last one.
    #[cfg(feature = "mutants")]
    pub(super) fn repeat_number(&mut self, at: SlotIdx, req: ReqNum) {
        self.slots[at.index()].repeat(req);
    }

    /// A planted bug: the slot's flag for a plain response contradicts the state of its call.
    #[cfg(feature = "mutants")]
    pub(crate) fn spoil_slot(&mut self, idx: CallIdx, awaits: bool) {
        let at = self.at(idx).at();
        self.slots[at.index()].settle(awaits);
    }

    /// A planted bug: an entry belongs to no call.
    #[cfg(feature = "mutants")]
    pub(crate) fn leak(&mut self) {
        self.table.take();
    }

    /// Prefetches the memory of a slot.
    #[inline]
    pub(crate) fn prefetch_slot(&self, at: SlotIdx) {
        dunlin_msgbuf::prefetch_slice(&self.slots, at.index());
    }

    /// Prefetches the part of a slot's call that an ordinary answer touches.
    #[inline]
    pub(crate) fn prefetch_call(&self, at: SlotIdx) {
        let call = self.slots.get(at.index()).and_then(|slot| slot.call());
        if let Some(call) = call.and_then(|call| self.table.get(call)) {
            dunlin_msgbuf::prefetch_read(call);
        }
    }

    /// Whether the slots of a session refer to the right calls.
    pub(crate) fn are_slots_settled(&self, slots: SlotRange, session: SessionIdx) -> bool {
        let is_settled = |at: SlotIdx| {
            let slot = self.slots[at.index()];
            slot.entry().is_none_or(|call| {
                let call = self.table.at(call);
                let mut settled = slot;
                let is_settled = match slot.is_free() {
                    true => call.state == CallState::Free && !call.marks.has(CallMarks::LOOSE),
                    false => {
                        settled.settle(is_plain(call.state));
                        slot == settled
                    }
                };
                is_settled && call.session() == session && call.at() == at
            })
        };
        slots.iter().all(is_settled)
    }
}

/// Whether a response of one packet ends a call in this state.
fn is_plain(state: CallState) -> bool {
    matches!(state, CallState::Sent | CallState::Accepted)
}
