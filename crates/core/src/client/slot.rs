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
    /// Upper half: the number of the current request, or of the next one if the slot is free. Lower
    /// half: one of the three values above. Thus a response of one packet ends the call if and only
    /// if the last word of its header equals this word.
    word: u64,
    /// The call in the slot. While the slot is free: the entry that it keeps for its next call, or
    /// [`CallIdx::NONE`].
    call: CallIdx,
    /// The last request whose response the server knows to have arrived here. If there is none, the
    /// number before the slot's first request.
    acked: ReqNum,
}

impl Slot {
    /// A free slot whose next request has this number.
    pub(super) const fn new(req: ReqNum, window: u32) -> Self {
        Self {
            word: word(req, FREE),
            call: CallIdx::NONE,
            acked: req.previous(window),
        }
    }

    /// The free slot's last request, unless the server knows that its response has arrived.
    pub(super) fn to_acknowledge(self, window: u32) -> Option<ReqNum> {
        let last = self.req().previous(window);
        (self.is_free() && self.acked != last).then_some(last)
    }

    /// Notes that the server gets an acknowledgement of this request.
    pub(super) fn acknowledge(&mut self, req: ReqNum) {
        debug_assert!(self.is_free());
        self.acked = req;
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

    /// The entry of the slot's call, or the entry that the free slot keeps.
    #[inline(always)]
    pub(super) fn entry(self) -> Option<CallIdx> {
        (self.call != CallIdx::NONE).then_some(self.call)
    }

    /// The call that ends with a packet whose header has this last word.
    #[inline(always)]
    pub(super) fn awaited(self, word: u64) -> Option<CallIdx> {
        (self.word == word).then_some(self.call)
    }

    /// The entry that the free slot keeps for its next call.
    #[inline(always)]
    pub(super) fn kept(self) -> Option<CallIdx> {
        debug_assert!(self.is_free());
        self.entry()
    }

    /// Like [`Self::kept`], but [`CallIdx::NONE`], an index that is in no table, instead of `None`.
    #[inline(always)]
    pub(super) const fn kept_or_none(self) -> CallIdx {
        debug_assert!(self.is_free());
        self.call
    }

    /// Makes this the entry of the slot's call, or of its next one.
    #[inline(always)]
    pub(super) fn keep(&mut self, call: CallIdx) {
        let before = std::mem::replace(&mut self.call, call);
        debug_assert!(before == CallIdx::NONE || before != call || self.is_free());
    }

    /// Occupies the free slot with the call of its entry. A whole response will end the call.
    #[inline(always)]
    pub(super) fn occupy(&mut self) {
        debug_assert!(self.is_free() && self.call != CallIdx::NONE);
        self.word -= u64::from(FREE - PLAIN);
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

    /// Ends the awaited request, which has this number, and advances the slot to its next number.
    #[inline(always)]
    pub(super) fn vacate_awaited(&mut self, req: ReqNum, window: u32) {
        debug_assert_eq!(self.word, word(req, PLAIN));
        self.word = word(req.next(window), FREE);
    }

    /// A planted bug: the slot's next request has this number.
    #[cfg(feature = "mutants")]
    pub(super) fn repeat(&mut self, req: ReqNum) {
        self.word = word(req, FREE);
    }

    /// A planted bug: request numbers stop instead of wrapping.
    #[cfg(feature = "mutants")]
    pub(super) fn stop_number(&mut self, req: ReqNum, window: u32, context: &Context) {
        if context.shows(crate::mutant::Mutant::WrongWrap) {
            self.word = word(ReqNum(req.0.saturating_add(window)), FREE);
        }
    }
}

const fn word(req: ReqNum, mark: u32) -> u64 {
    (req.0 as u64) << 32 | mark as u64
}
