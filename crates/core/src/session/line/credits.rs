//! The slots and credits with which this side issues requests on a session, and the rate of
//! acknowledgement vectors (rules S1, S7, S9, W10).

use dunlin_wire::ReqNum;

use super::{Line, all_slots};
use crate::handle::{Session, SlotIdx};
use crate::session::marks::Marks;
use crate::time::Nanos;

/// Shortest time between two acknowledgement vectors of a session.
const ACK_INTERVAL: Nanos = Nanos::from_millis(1);

/// Slots and credits with which this side issues requests (rules S1, S7).
impl Line {
    /// Whether a request may be sent right now.
    #[inline]
    pub(crate) fn can_send(&self) -> bool {
        self.is_open() && self.free != 0 && self.credits() != 0
    }

    /// Takes the slot and the credit that [`Self::can_send`] has found; returns the slot's index.
    #[inline]
    pub(crate) fn take_slot(&mut self) -> SlotIdx {
        debug_assert!(self.can_send());
        let at = self.next_slot();
        self.free &= self.free - 1;
        at
    }

    /// Frees slot and credit of a request that has been answered.
    #[inline]
    pub(crate) fn release_slot(&mut self, req: ReqNum) {
        let bit = 1_u64 << (req.0 & u32::from(self.mask));
        debug_assert!(self.free & bit == 0, "a slot is released once");
        self.free |= bit;
    }

    /// Packets that may still be sent (rule S7): each slot in use holds a credit, and so does each
    /// packet of a large message beyond its first.
    #[inline]
    pub(crate) fn credits(&self) -> u32 {
        let held = u32::from(self.parts) + self.in_flight();
        u32::from(self.credit_limit).saturating_sub(held)
    }

    /// Takes credits for that many more packets of a large message.
    pub(crate) fn take_credits(&mut self, credits: u32) {
        let credits = u16::try_from(credits).expect("no more than are free");
        self.set_parts(self.parts + credits);
    }

    /// Returns the credits of packets of a large message.
    pub(crate) fn return_credits(&mut self, credits: u32) {
        let credits = u16::try_from(credits).expect("no more than were taken");
        self.set_parts(self.parts - credits);
    }

    fn set_parts(&mut self, parts: u16) {
        let before = self.has_credits_for_slots();
        self.parts = parts;
        if self.has_credits_for_slots() != before {
            self.settle();
        }
    }

    /// Whether all slots can have a request at the same time: then a short request need not check
    /// the credits.
    pub(super) fn has_credits_for_slots(&self) -> bool {
        u32::from(self.credit_limit) >= self.window() + u32::from(self.parts)
    }

    /// Whether this side may issue a request in the slot at this place of the slot table.
    pub(crate) fn is_slot_free(&self, at: SlotIdx) -> bool {
        self.free >> (at.0 - self.slots.0) & 1 != 0
    }

    /// Calls that hold a slot, zombies included.
    pub(crate) fn in_flight(&self) -> u32 {
        (all_slots(u32::from(self.mask) + 1) & !self.free).count_ones()
    }

    /// Notes that a call waits for a slot or a credit.
    pub(crate) fn begin_waiting(&mut self) {
        self.marks.set(Marks::WAITING, true);
        self.settle();
    }

    /// Notes that no call waits any more.
    pub(crate) fn end_waiting(&mut self) {
        self.marks.set(Marks::WAITING, false);
        self.settle();
    }

    #[inline]
    pub(crate) fn has_waiting(&self) -> bool {
        self.marks.has(Marks::WAITING)
    }

    /// Marks the session as being in the stall queue, if it has waiting calls that can move. True
    /// if the mark is new; then the caller must put the session there.
    #[inline]
    pub(crate) fn stall(&mut self) -> bool {
        let stalls = self.has_waiting() && !self.marks.has(Marks::STALLED) && self.can_send();
        if stalls {
            self.marks.set(Marks::STALLED, true);
        }
        stalls
    }

    /// Whether the session is in the stall queue.
    pub(crate) fn is_stalled(&self) -> bool {
        self.marks.has(Marks::STALLED)
    }

    /// Whether a short request may leave now without a further check.
    #[inline(always)]
    pub(in crate::session) fn is_plain(&self, session: Session, len: u32, now: Nanos) -> bool {
        self.handle == session && now < self.plain_until && self.free != 0 && len < self.limit
    }

    /// The index of the slot that the next request takes.
    #[inline(always)]
    pub(crate) fn next_slot(&self) -> SlotIdx {
        SlotIdx(self.slots.0 + self.free.trailing_zeros())
    }

    /// Notes that the session has left the stall queue.
    pub(crate) fn leave_stall_queue(&mut self) {
        self.marks.set(Marks::STALLED, false);
    }
}

/// Acknowledgement vectors (rules S9, W10).
impl Line {
    /// Whether the last acknowledgement vector left long enough ago for another one.
    #[inline]
    pub(crate) fn may_send_acks(&self, now: Nanos) -> bool {
        now.since(self.acked) >= ACK_INTERVAL
    }

    /// Notes that an acknowledgement vector leaves.
    pub(crate) fn on_acks_sent(&mut self, now: Nanos) {
        self.acked = now;
    }
}
