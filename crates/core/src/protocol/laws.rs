//! The endpoint checks its own laws (`law.rs`): between sessions, calls, requests, transfers,
//! reassembly and pacer.

use crate::error::CloseReason;
use crate::handle::NONE;
use crate::law::{Check, Law};
use crate::protocol::Core;

/// Frames after which everything is checked ([`Check::Event`]).
const EVENTS: u32 = 1000;

/// How far checking has come.
#[derive(Debug, Default)]
pub(crate) struct Laws {
    /// The session that the next sweep looks at.
    next: u32,
    /// Frames since everything was checked.
    events: u32,
    /// Laws that were found broken. Each ends the sessions once: those that come after would pay
    /// for what is left of it.
    broken: u32,
}

impl Core {
    /// A sweep: one session, and after the last one what holds over all of them.
    pub(crate) fn check_at_sweep(&mut self) {
        match self.context.config.check {
            Check::Never => return,
            Check::Sweep => {}
            Check::Event => return self.enforce(self.check()),
        }
        let session = self.laws.next;
        let found = match session < self.sessions.len() {
            true => {
                self.laws.next += 1;
                self.check_session(session)
            }
            false => {
                self.laws.next = 0;
                self.check_all()
            }
        };
        self.enforce(found);
    }

    /// A burst brought packets for these sessions.
    #[cold]
    #[inline(never)]
    pub(crate) fn check_after_burst(&mut self, sessions: impl Iterator<Item = u32>) {
        let mut found = Ok(());
        for session in sessions {
            self.laws.events += 1;
            found = found.and_then(|()| self.check_session(session));
        }
        if self.laws.events >= EVENTS {
            self.laws.events = 0;
            found = found.and_then(|()| self.check());
        }
        self.enforce(found);
    }

    /// Every law of every session, and over all sessions.
    ///
    /// # Errors
    /// The first law that is broken.
    fn check(&self) -> Result<(), Law> {
        (0..self.sessions.len()).try_for_each(|session| self.check_session(session))?;
        self.check_all()
    }

    /// A broken law ends the endpoint's sessions.
    fn enforce(&mut self, found: Result<(), Law>) {
        let Err(law) = found else { return };
        if self.laws.broken & law.bit() != 0 {
            return;
        }
        self.laws.broken |= law.bit();
        self.context.stats.on_broken_law();
        for session in 0..self.sessions.len() {
            let session = self.sessions.handle(session);
            self.close(session, CloseReason::Inconsistent(law), true);
        }
    }

    fn check_session(&self, session: u32) -> Result<(), Law> {
        let Some(line) = self.sessions.get(session).filter(|line| line.is_live()) else {
            return Ok(());
        };
        let slots = line.slots();
        let holds = |law: Law, holds: bool| if holds { Ok(()) } else { Err(law) };
        holds(Law::Prepared, line.is_settled())?;
        let is_free = |at: u32| self.calls.call_at(at).is_none();
        let mut all = slots.clone();
        holds(
            Law::Slots,
            all.all(|at| line.is_slot_free(at) == is_free(at)),
        )?;
        holds(
            Law::Awaited,
            self.calls.are_slots_settled(slots.clone(), session),
        )?;
        let held = self.calls.in_slots(slots.clone());
        let held: u32 = held.map(|idx| self.credits_held(idx)).sum();
        let missing = line.terms().credits.checked_sub(line.credits());
        holds(Law::Credits, missing == Some(held))?;
        let waiting = self.calls.count_waiting(session);
        holds(
            Law::Backlog,
            waiting.is_some_and(|count| line.has_waiting() == (count != 0)),
        )?;
        let receiving = self
            .requests
            .receiving(slots.clone(), |place| self.reassembly.size_at(place));
        holds(
            Law::Receiving,
            receiving == self.reassembly.bytes_of(session),
        )?;
        let template = line.answer_template();
        holds(Law::Answers, self.requests.are_prepared(slots, &template))?;
        holds(
            Law::Flows,
            line.flow() == NONE || self.pacer.has(line.flow()),
        )
    }

    /// Checks the laws over all sessions.
    fn check_all(&self) -> Result<(), Law> {
        let live = || {
            let all = (0..self.sessions.len()).map(|session| self.sessions.at(session));
            all.filter(|line| line.is_live())
        };
        let holds = |law: Law, holds: bool| if holds { Ok(()) } else { Err(law) };
        let (mut calls, mut transfers) = (0, 0);
        for session in 0..self.sessions.len() {
            if self.sessions.at(session).is_live() {
                calls += self.calls.waiting(session) as usize;
            }
        }
        for idx in live().flat_map(|line| self.calls.in_slots(line.slots())) {
            calls += 1;
            transfers += usize::from(self.calls.transfer_of(idx).is_some());
        }
        holds(Law::Calls, calls == self.calls.live())?;
        holds(Law::Transfers, transfers == self.transfers.live())?;
        let flows = live().filter(|line| line.flow() != NONE).count();
        holds(Law::Flows, flows == self.pacer.live())?;
        holds(Law::Promises, self.sessions.are_promises_kept())?;
        holds(Law::SlotRanges, self.sessions.are_slots_known())?;
        holds(Law::Receiving, self.reassembly.is_sum_right())?;
        holds(Law::Requests, self.requests.is_count_right())
    }
}
