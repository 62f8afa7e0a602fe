//! The common path at the server: ordinary short requests and their replies. The code here does the
//! same as the general path (`packets.rs`, `answers.rs`), in fewer steps.

use super::{InboundRequest, Marks, RequestState, Requests};
use crate::context::Context;
use crate::handle::{RequestId, RequestIdx, Session};
use crate::packet::words::{Words, low};
use crate::session::proof::Known;
use crate::session::table::Sessions;
use crate::transport::{Lane, Source};
#[cfg(feature = "mutants")]
use dunlin_wire::ReqNum;

impl Requests {
    /// Accepts a new request; returns it with its session. The caller runs its handler.
    #[inline(always)]
    pub(crate) fn on_plain_request(
        &mut self,
        words: &Words,
        sessions: &mut Sessions,
        context: &mut Context,
    ) -> Option<(Session, RequestIdx)> {
        let known = sessions.known(words)?;
        let idx = self.accept_plain(&known, words[2], context)?;
        Some((known.session(), idx))
    }

    /// Makes the request the slot's current one, if it has the slot's next number, the slot's last
    /// request is over, and the transport has released the last response.
    #[inline(always)]
    fn accept_plain(
        &mut self,
        known: &Known<'_>,
        word: u64,
        context: &mut Context,
    ) -> Option<RequestIdx> {
        let (at, req, window) = (known.slot(), known.req(), known.window());
        let (session, answer) = (known.index(), known.answer_template());
        let idx = self.entry_for(at, session, (word, window), answer)?;
        let request = self.table.get_mut(idx)?;
        if !request.precedes(word, window) {
            let is_next = request.req.next(window) == req && low(word) == 0;
            #[cfg(feature = "mutants")]
            let is_next = is_next || request.is_mistaken(req, context);
            if !is_next || !request.is_free(context) {
                return None;
            }
        }
        request.begin(req, Marks::NONE, context.moment.at_burst().0);
        Some(idx)
    }

    /// Answers with a response of one packet, in the iteration in which the request came.
    ///
    /// # Errors
    /// `write`, unused, if the request or the reply is not ordinary, or the lane has no room.
    #[inline(always)]
    pub(crate) fn reply_plain<W: FnOnce(&mut [u8])>(
        &mut self,
        idx: RequestIdx,
        len: usize,
        write: W,
        context: &mut Context,
    ) -> Result<(), W> {
        let is_open = |request: &InboundRequest| request.is_plainly(RequestState::Dispatched);
        self.reply_if(is_open, idx, len, write, context)
    }

    /// Like [`Self::reply_plain`], for the request that a handle names. It is not ordinary if it
    /// was already answered or its entry now has another request.
    #[inline(always)]
    pub(crate) fn reply_named<W: FnOnce(&mut [u8])>(
        &mut self,
        id: RequestId,
        len: usize,
        write: W,
        context: &mut Context,
    ) -> Result<(), W> {
        let is_it = |request: &InboundRequest| request.is_plainly_open(id);
        self.reply_if(is_it, id.index, len, write, context)
    }

    #[inline(always)]
    fn reply_if<W: FnOnce(&mut [u8])>(
        &mut self,
        is_open: impl FnOnce(&InboundRequest) -> bool,
        idx: RequestIdx,
        len: usize,
        write: W,
        context: &mut Context,
    ) -> Result<(), W> {
        let Some(request) = self.table.get_mut(idx) else {
            return Err(write);
        };
        if !is_open(request) || !request.is_usual(len, context) {
            return Err(write);
        }
        let Some(response) = &mut request.response else {
            return Err(write);
        };
        // The room is checked first, so that the case without room is separate code.
        let Some(room) = context.outbox.room(len) else {
            return Err(write);
        };
        let Ok(message) = response.resized(len) else {
            return Err(write);
        };
        write(message);
        let (words, peer) = (request.answer.words(len, request.req), request.answer.peer);
        match Lane::is_long(len) {
            true => {
                let source = Source::of_request(idx, request.req);
                let outbox = &mut context.outbox;
                outbox.stage_header::<false>(room, peer, words, (len, source));
            }
            false => context.outbox.stage::<false>(room, peer, words, message),
        }
        request.enter(RequestState::Done);
        self.expect_sweep(context);
        Ok(())
    }
}

impl InboundRequest {
    /// Whether a response of this length is an ordinary single packet. The request must be open and
    /// without marks.
    #[inline(always)]
    fn is_usual(&self, len: usize, context: &Context) -> bool {
        let is_usual = len <= self.answer.single as usize;
        debug_assert!(
            !is_usual || self.arrived == context.moment.burst_time(),
            "a request without marks is answered in the iteration in which it came"
        );
        is_usual
    }

    /// Whether this is the request with that handle, a dispatch handler has it, and it has no
    /// marks: two comparisons.
    #[inline(always)]
    fn is_plainly_open(&self, id: RequestId) -> bool {
        let word = u64::from(id.req.0) << 32 | RequestState::Dispatched as u64;
        self.word() == word && self.generation == id.generation
    }

    /// Planted bugs: mistakes a duplicate, or a future request, for the slot's next one.
    #[cfg(feature = "mutants")]
    fn is_mistaken(&self, req: ReqNum, context: &Context) -> bool {
        use crate::mutant::Mutant;
        match context.config.mutant {
            Some(Mutant::DuplicateCheckDropped) => req == self.req,
            Some(Mutant::FutureAccepted) => self.req.is_before(req),
            _ => false,
        }
    }

    /// Whether the entry can take another request: this one is over, and the transport no longer
    /// reads its response, which may then be overwritten.
    #[inline(always)]
    fn is_free(&mut self, context: &Context) -> bool {
        let is_done = context.held.is_done(self.tx_end);
        #[cfg(feature = "mutants")]
        let is_done = is_done || context.shows(crate::mutant::Mutant::SkippedFlush);
        let is_free = self.state.is_over() && is_done;
        if is_free && let Some(response) = &mut self.response {
            response.revoke();
        }
        is_free
    }
}
