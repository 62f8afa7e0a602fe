//! The end of requests: their responses go back to the pool once they have arrived, were held long
//! enough, or have no client any more (rules S6, S9, S12).

use std::ops::Range;

use dunlin_wire::ErrorCode;

use super::{Marks, RequestState, Requests};
use crate::config::{Config, SWEEP_LIMIT, SWEEP_PARTS};
use crate::context::Context;
use crate::handle::{RequestIdx, SessionIdx, SlotIdx};
use crate::server::inbound::Effect;
use crate::session::table::Sessions;
use crate::time::Nanos;
use crate::transport::Source;

/// How many times per `response_hold` the sweep visits all requests.
const SWEEPS_PER_HOLD: u64 = 4;

/// Parts in which the memory of a large table is given back, so that no sweep takes long.
const GIVING_BACK_PARTS: usize = 16;
/// Entries whose memory one sweep can give back without taking long: 2 MiB.
const GIVING_BACK_LIMIT: usize = 16 << 10;

/// Requests that are over.
impl Requests {
    /// Frees a finished request and its response; the slot keeps its number.
    #[inline(never)]
    pub(super) fn free(&mut self, idx: RequestIdx, context: &mut Context) {
        self.vacate(self.at(idx).at);
        self.release(idx, context);
    }

    /// Frees a request of a closed session, when its handler lets go of it.
    pub(super) fn free_orphan(&mut self, idx: RequestIdx, context: &mut Context) {
        self.release(idx, context);
    }

    fn release(&mut self, idx: RequestIdx, context: &mut Context) {
        self.set_response_aside(idx, context);
        let request = self.at_mut(idx);
        request.enter(RequestState::Free);
        request.marks = Marks::NONE;
        let step = 1;
        #[cfg(feature = "mutants")]
        let step = step - u32::from(context.shows(crate::mutant::Mutant::GenerationReused));
        request.generation = request.generation.wrapping_add(step);
        self.table.release(idx);
    }

    /// Gives the response to the context, which keeps it until the transport has read it.
    #[cold]
    #[inline(never)]
    pub(super) fn set_response_aside(&mut self, idx: RequestIdx, context: &mut Context) {
        let request = self.at_mut(idx);
        let tx_end = std::mem::take(&mut request.tx_end);
        if let Some(response) = request.response.take() {
            let source = Source::of_request(idx, request.req);
            context.outbox.keep(source, &response);
            context.recycle_sent(response, tx_end);
        }
    }

    /// Handles the end of the slot's session: frees a finished request, and makes a running one an
    /// orphan.
    pub(crate) fn on_session_closed(&mut self, at: SlotIdx, context: &mut Context) -> Effect {
        let Some(idx) = self.request_at(at) else {
            return Effect::None;
        };
        let (id, given_up) = (self.id(idx), self.given_up(idx));
        let request = self.at_mut(idx);
        if !request.state.is_open() {
            self.free(idx, context);
            return given_up;
        }
        if request.state == RequestState::Detached && !request.marks.has(Marks::CANCELLED) {
            context.tell_given_up(id);
        }
        request.marks.set(Marks::ORPHAN);
        self.vacate(at);
        given_up
    }
}

impl Requests {
    /// Drops the packets that the client of a closing session has asked for.
    pub(crate) fn forget_asked(&mut self, session: SessionIdx) {
        self.asked.forget(session);
        self.limited.forget(session);
    }
}

/// Responses that are held (rule S9).
impl Requests {
    /// Makes sure that the sweep runs, because it must later free a held response, or end a request
    /// whose sender stops.
    #[inline]
    pub(super) fn expect_sweep(&self, context: &mut Context) {
        let interval = || self.sweep_interval(&context.config);
        context.agenda.expect_sweep(interval, context.moment.now());
    }

    /// The indexes of the requests that the next sweep visits.
    pub(crate) fn sweep_part(&self, context: &Context) -> Range<usize> {
        context
            .agenda
            .sweep_part(self.table.len(), self.sweep_parts())
    }

    /// Notes that a part was swept, up to `end`. After a round that finds no held response, the
    /// memory of unused entries goes back to the system, step by step; in the last step, the pool's
    /// unused memory follows.
    pub(crate) fn on_swept(&mut self, end: usize, context: &mut Context) {
        let next = context.moment.now() + self.sweep_interval(&context.config);
        let rests = context.agenda.on_swept(end, self.table.len(), next);
        self.gives_back |= rests;
        if !self.gives_back {
            return;
        }
        self.gives_back = self.give_back();
        if self.gives_back {
            self.expect_sweep(context);
        } else {
            context.pool.trim();
        }
    }

    /// Gives back the memory of some unused entries at the end of the table. True if there are
    /// more.
    fn give_back(&mut self) -> bool {
        let (len, entries) = (self.table.len(), self.table.iter().rev());
        let step = (len / GIVING_BACK_PARTS).max(GIVING_BACK_LIMIT);
        let unused = entries.take_while(|request| request.state == RequestState::Free);
        let mut count = 0;
        for entry in unused.take(len.saturating_sub(SWEEP_LIMIT).min(step)) {
            let later = entry.generation.wrapping_add(1);
            self.first_generation = self.first_generation.max(later);
            count += 1;
        }
        self.table.shorten(len - count);
        count == step
    }

    /// Frees one request if its response was held for long enough, or rejects it if it has arrived
    /// in part and its sender has stopped.
    pub(crate) fn sweep(
        &mut self,
        idx: RequestIdx,
        sessions: &Sessions,
        context: &mut Context,
    ) -> Effect {
        let request = self.at(idx);
        let (now, hold) = (context.moment.now(), context.config.response_hold);
        let is_old = now.since(request.held_since()) >= hold;
        #[cfg(feature = "mutants")]
        if now.since(request.answered) >= hold
            && context.shows(crate::mutant::Mutant::TimerAfterCompletion)
            && request.state == RequestState::Detached
            && !request.marks.has(Marks::ORPHAN)
            && request.answered != Nanos::ZERO
        {
            self.free(idx, context);
            return Effect::None;
        }
        match request.state {
            RequestState::Done if is_old => self.free(idx, context),
            RequestState::Receiving if is_old => {
                // The sender has stopped, and gets an error. A later sweep frees that answer.
                let given_up = self.given_up(idx);
                self.reject(idx, ErrorCode::OVERLOADED, sessions, context);
                context.agenda.on_held();
                return given_up;
            }
            RequestState::Done | RequestState::Receiving => context.agenda.on_held(),
            RequestState::Free | RequestState::Dispatched | RequestState::Detached => {}
        }
        Effect::None
    }

    /// The number of parts in which the table of requests is swept: a short table has few.
    fn sweep_parts(&self) -> usize {
        self.table.len().div_ceil(SWEEP_LIMIT).clamp(1, SWEEP_PARTS)
    }

    fn sweep_interval(&self, config: &Config) -> Nanos {
        let round = config.response_hold.0 / SWEEPS_PER_HOLD;
        Nanos((round / self.sweep_parts() as u64).max(1))
    }
}
