//! One slot in which this side issues requests (rule S1). A single 64-bit word holds the slot's
//! request number and whether it awaits the answer.

use dunlin_wire::ReqNum;

#[cfg(feature = "mutants")]
use crate::context::Context;
use crate::handle::CallIdx;
use crate::packet::words::{high, low};

/// A whole response to the slot's request ends its call.
const PLAIN: u32 = 0;
/// The slot is free.
const FREE: u32 = 1;
/// The slot has a call, but only the general path may end it.
const OTHER: u32 = 2;

/// A slot. One comparison tells whether a packet ends its call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Slot {
    /// In the upper half, the number of the current request, or of the next one if there is none;
    /// in the lower half one of the three values above. Thus a response of one packet ends the call
    /// if and only if the last word of its header equals this word.
    word: u64,
    /// The call in the slot.
    call: CallIdx,
}

impl Slot {
    /// A free slot whose next request has this number.
    pub(super) const fn new(req: ReqNum) -> Self {
        Self {
            word: word(req, FREE),
            call: CallIdx::NONE,
        }
    }

    #[inline]
    pub(super) const fn req(self) -> ReqNum {
        ReqNum(high(self.word))
    }

    #[inline]
    pub(super) const fn is_free(self) -> bool {
        low(self.word) == FREE
    }

    /// The call in the slot, if there is one.
    #[inline]
    pub(super) fn call(self) -> Option<CallIdx> {
        (!self.is_free()).then_some(self.call)
    }

    /// The call that ends with a packet whose header has this last word.
    #[inline(always)]
    pub(super) fn awaited(self, word: u64) -> Option<CallIdx> {
        (self.word == word).then_some(self.call)
    }

    /// Puts a request into the free slot. The request waits only for its answer.
    #[inline(always)]
    pub(super) fn occupy(&mut self, call: CallIdx) {
        debug_assert!(self.is_free());
        self.word -= u64::from(FREE - PLAIN);
        self.call = call;
    }

    /// Updates the slot after its call has changed: if `plain`, a whole response ends the call.
    pub(super) fn settle(&mut self, plain: bool) {
        debug_assert!(!self.is_free());
        self.word = word(self.req(), if plain { PLAIN } else { OTHER });
    }

    /// Ends the request, and advances the slot to its next number.
    #[inline(always)]
    pub(super) fn vacate(&mut self, window: u32) {
        self.word = word(self.req().next(window), FREE);
    }

    /// Ends an awaited request, and advances the slot to its next number.
    #[inline(always)]
    pub(super) fn vacate_awaited(&mut self, window: u32) {
        debug_assert_eq!(low(self.word), PLAIN);
        self.word = self.word.wrapping_add(u64::from(window) << 32) | u64::from(FREE);
    }

    /// A planted bug: request numbers stop instead of wrapping.
    #[cfg(feature = "mutants")]
    pub(super) fn stop_number(&mut self, req: ReqNum, window: u32, context: &Context) {
        if context.shows(crate::mutant::Mutant::WrongWrap) {
            *self = Self::new(ReqNum(req.0.saturating_add(window)));
        }
    }
}

const fn word(req: ReqNum, mark: u32) -> u64 {
    (req.0 as u64) << 32 | mark as u64
}
