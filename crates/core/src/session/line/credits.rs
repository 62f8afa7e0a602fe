//! The slots and credits with which this side issues requests on a session, and the responses whose
//! arrival the server does not know yet (rules S1, S7, S9, W10).

use dunlin_wire::ReqNum;

use super::{Line, all_slots};
use crate::handle::{Session, SlotIdx};
use crate::session::marks::Marks;
use crate::time::Nanos;

/// An acknowledgement vector is sent once it would be full: this number of idle slots have a
/// response to acknowledge.
const ACKS_WORTH_SENDING: u32 = 4;
/// Shortest time between two acknowledgement vectors of a session.
const ACK_INTERVAL: Nanos = Nanos::from_millis(1);

/// Slots and credits with which this side issues requests (rules S1, S7).
impl Line {
    /// Whether a request may be sent right now.
    #[inline]
    pub(crate) fn can_send(&self) -> bool {
        self.is_open() && self.free != 0 && self.credits > 0
    }

    /// Takes the slot and the credit that [`Self::can_send`] has found; returns the index of the
    /// slot.
    #[inline]
    pub(crate) fn take_slot(&mut self) -> SlotIdx {
        debug_assert!(self.can_send());
        let at = self.next_slot();
        // The slot's bit in `answered` has no meaning until the slot is free again.
        self.free &= self.free - 1;
        self.credits -= 1;
        at
    }

    /// Frees slot and credit of a request that has been answered.
    #[inline]
    pub(crate) fn release_slot(&mut self, req: ReqNum) {
        let bit = 1_u64 << (req.0 & u32::from(self.mask));
        debug_assert!(self.free & bit == 0, "a slot is released once");
        self.free |= bit;
        self.answered |= bit;
        self.credits += 1;
    }

    /// Packets that may still be sent.
    #[inline]
    pub(crate) fn credits(&self) -> u32 {
        u32::from(self.credits)
    }

    pub(crate) fn take_credit(&mut self) {
        self.credits -= 1;
    }

    pub(crate) fn return_credits(&mut self, credits: u32) {
        self.credits += u16::try_from(credits).expect("no more than were taken");
    }

    /// Whether this side may issue a request in the slot at this place of the slot table.
    pub(crate) fn is_slot_free(&self, at: SlotIdx) -> bool {
        self.free >> (at.0 - self.slots.0) & 1 != 0
    }

    /// Calls that hold a slot, zombies included.
    pub(crate) fn in_flight(&self) -> u32 {
        (all_slots(u32::from(self.mask) + 1) & !self.free).count_ones()
    }

    /// Notes whether calls wait for a slot or a credit.
    pub(crate) fn set_waiting(&mut self, waiting: bool) {
        self.marks.set(Marks::WAITING, waiting);
        self.settle();
    }

    #[inline]
    pub(crate) fn has_waiting(&self) -> bool {
        self.marks.has(Marks::WAITING)
    }

    /// Marks the session as being in the stall queue, if it has waiting calls that can move. True
    /// if the mark is new, so that the caller must put the session there.
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
        self.handle == session
            && now < self.plain_until
            && self.free != 0
            && self.credits != 0
            && len < self.limit
    }

    /// The index of the slot that the next request takes.
    #[inline(always)]
    pub(in crate::session) fn next_slot(&self) -> SlotIdx {
        SlotIdx(self.slots.0 + self.free.trailing_zeros())
    }

    /// Notes that the session has left the stall queue.
    pub(crate) fn leave_stall_queue(&mut self) {
        self.marks.set(Marks::STALLED, false);
    }
}

/// Acknowledgement vectors (rules S9, W10).
impl Line {
    /// Whether the server should get an acknowledgement vector: enough responses of idle slots have
    /// arrived, and the last vector left long enough ago.
    #[inline]
    pub(crate) fn owes_acks(&self, now: Nanos) -> bool {
        let enough = (self.answered & self.free).count_ones() >= ACKS_WORTH_SENDING;
        enough && now.since(self.acked) >= ACK_INTERVAL
    }

    /// Takes four of the slots whose latest responses have arrived, which the server may not know.
    /// The four count as acknowledged from now on; [`Self::owes_acks`] has found that there are
    /// four.
    pub(crate) fn take_acks(&mut self, now: Nanos) -> [SlotIdx; ACKS_WORTH_SENDING as usize] {
        self.acked = now;
        std::array::from_fn(|_| {
            let slot = (self.answered & self.free).trailing_zeros();
            self.answered &= !(1 << slot);
            SlotIdx(self.slots.0 + slot)
        })
    }
}
