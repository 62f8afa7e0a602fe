//! The slots in which this side issues requests (rule S1).

use std::ops::Range;

use dunlin_wire::ReqNum;

use super::{CallState, Calls};
use crate::client::slot::Slot;
#[cfg(feature = "mutants")]
use crate::context::Context;
use crate::handle::{CallIdx, SessionIdx};
use crate::session::line::Line;

impl Calls {
    /// Gives a session these slots, whose request numbers start at `first_req`. `all`: slots of all
    /// sessions; `sessions`: how many there ever were.
    pub(crate) fn open_slots(
        &mut self,
        slots: Range<u32>,
        first_req: ReqNum,
        all: usize,
        sessions: u32,
    ) {
        let empty = Slot::new(ReqNum(0));
        self.slots.resize(all.max(self.slots.len()), empty);
        self.make_waiting(sessions as usize);
        for (number, at) in slots.enumerate() {
            let number = u32::try_from(number).expect("at most 64 slots");
            let req = ReqNum(first_req.0.wrapping_add(number));
            self.slots[at as usize] = Slot::new(req);
        }
    }

    /// The call in the slot, if its request has this number.
    #[inline]
    pub(crate) fn in_slot(&self, at: usize, req: ReqNum) -> Option<CallIdx> {
        let slot = self.slots[at];
        slot.call().filter(|_| slot.req() == req)
    }

    /// The call in the slot at this place, if there is one.
    pub(crate) fn call_at(&self, at: u32) -> Option<CallIdx> {
        self.slots[at as usize].call()
    }

    /// The calls in these slots.
    pub(crate) fn in_slots(&self, slots: Range<u32>) -> impl Iterator<Item = CallIdx> {
        slots.filter_map(|at| self.call_at(at))
    }

    /// Number of the current request of the slot, or of the next one.
    #[inline]
    pub(crate) fn req_at(&self, at: usize) -> ReqNum {
        self.slots[at].req()
    }

    /// Number of the request of a call that has a slot.
    #[inline]
    pub(crate) fn req_of(&self, idx: CallIdx) -> ReqNum {
        self.req_at(self.at(idx).at() as usize)
    }

    /// Puts the call into the free slot.
    #[inline(always)]
    pub(super) fn occupy(&mut self, at: usize, idx: CallIdx) {
        self.slots[at].occupy(idx);
    }

    /// Notes whether a whole response ends the call, after its state has changed.
    pub(super) fn settle(&mut self, idx: CallIdx) {
        let call = self.at(idx);
        let (at, plain) = (call.at() as usize, is_plain(call.state));
        self.slots[at].settle(plain);
    }

    /// Ends the request in the slot, which steps to its next number.
    #[inline(always)]
    pub(super) fn vacate(&mut self, at: usize, window: u32) {
        self.slots[at].vacate(window);
    }

    /// Ends the answered request of the slot: frees slot and credit, and steps to the slot's next
    /// number (rules S1, S7).
    #[inline(always)]
    pub(super) fn release(&mut self, line: &mut Line, req: ReqNum) {
        line.release_slot(req);
        self.vacate(line.slot_at(req), line.window());
    }

    /// A planted bug: request numbers stop instead of wrapping.
    #[cfg(feature = "mutants")]
    pub(crate) fn stop_numbers(&mut self, at: usize, req: ReqNum, window: u32, context: &Context) {
        self.slots[at].stop_number(req, window, context);
    }

    /// A planted bug: the slot's next request has the number of its last one.
    #[cfg(feature = "mutants")]
    pub(super) fn repeat_number(&mut self, at: usize, req: ReqNum) {
        self.slots[at] = Slot::new(req);
    }

    /// A planted bug: the note whether a whole response ends the call contradicts its state.
    #[cfg(feature = "mutants")]
    pub(crate) fn spoil_slot(&mut self, idx: CallIdx, awaits: bool) {
        let at = self.at(idx).at() as usize;
        self.slots[at].settle(awaits);
    }

    /// A planted bug: an entry belongs to no call.
    #[cfg(feature = "mutants")]
    pub(crate) fn leak(&mut self) {
        self.table.take();
    }

    /// Prefetches the memory of a slot.
    #[inline]
    pub(crate) fn prefetch_slot(&self, at: usize) {
        dunlin_msgbuf::prefetch_slice(&self.slots, at);
    }

    /// Prefetches the memory of the call in a slot.
    #[inline]
    pub(crate) fn prefetch_call(&self, at: usize) {
        let call = self.slots.get(at).and_then(|slot| slot.call());
        if let Some(call) = call.and_then(|call| self.table.get(call)) {
            dunlin_msgbuf::prefetch_lines(call, 2);
        }
    }

    /// Whether the slots of a session name the right calls.
    pub(crate) fn are_slots_settled(&self, slots: Range<u32>, session: SessionIdx) -> bool {
        let is_settled = |at: u32| {
            let slot = self.slots[at as usize];
            slot.call().is_none_or(|call| {
                let call = self.table.at(call);
                let mut settled = slot;
                settled.settle(is_plain(call.state));
                call.session() == session && call.at() == at && slot == settled
            })
        };
        { slots }.all(is_settled)
    }
}

/// Whether a whole response ends a call in this state.
fn is_plain(state: CallState) -> bool {
    matches!(state, CallState::Sent | CallState::Accepted)
}
