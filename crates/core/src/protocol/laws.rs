//! The endpoint checks its own laws (`law.rs`), which relate sessions, calls, requests, transfers,
//! reassembly and pacer to each other.

use crate::client::calls::Calls;
use crate::congestion::pacer::Pacer;
use crate::handle::{FlowIdx, SessionIdx, SlotIdx};
use crate::law::{Check, Law};
use crate::protocol::Core;
use crate::server::requests::Requests;
use crate::session::table::Sessions;
use crate::transfer::reassembly::Reassembly;
use crate::transfer::transfers::Transfers;

/// Frames after which everything is checked ([`Check::Event`]).
const EVENTS: u32 = 1000;

/// The progress of the checks.
#[derive(Debug)]
pub(crate) struct Laws {
    /// The session that the next sweep checks.
    next: SessionIdx,
    /// Frames since everything was checked.
    events: u32,
    /// Broken laws, one bit each. A broken law ends the sessions only once: state that stays broken
    /// must not end later sessions.
    broken: u32,
}

/// A share of the laws: what one check covers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Share {
    /// The laws of one session.
    Session(SessionIdx),
    /// The laws over all sessions.
    Sums,
    All,
}

impl Default for Laws {
    fn default() -> Self {
        Self {
            next: SessionIdx(0),
            events: 0,
            broken: 0,
        }
    }
}

impl Laws {
    /// The share that a sweep checks: one session, or after the last session the laws over all
    /// sessions.
    pub(crate) fn on_sweep(&mut self, check: Check, sessions: u32) -> Option<Share> {
        match check {
            Check::Never => return None,
            Check::Sweep => {}
            Check::Event => return Some(Share::All),
        }
        let session = self.next;
        if session.0 < sessions {
            self.next = SessionIdx(session.0 + 1);
            return Some(Share::Session(session));
        }
        self.next = SessionIdx(0);
        Some(Share::Sums)
    }

    /// Counts a frame. True if everything must be checked after its burst.
    pub(crate) fn on_frame(&mut self) -> bool {
        self.events += 1;
        let is_all = self.events >= EVENTS;
        if is_all {
            self.events = 0;
        }
        is_all
    }

    /// Notes a broken law. False if it was broken before.
    pub(crate) fn on_broken(&mut self, law: Law) -> bool {
        let is_new = self.broken & law.bit() == 0;
        self.broken |= law.bit();
        is_new
    }
}

/// All parts, for reading.
pub(crate) struct Parts<'a> {
    sessions: &'a Sessions,
    calls: &'a Calls,
    requests: &'a Requests,
    transfers: &'a Transfers,
    reassembly: &'a Reassembly,
    pacer: &'a Pacer,
}

impl<'a> Parts<'a> {
    pub(crate) fn of(core: &'a Core) -> Self {
        Self {
            sessions: &core.sessions,
            calls: &core.calls,
            requests: &core.requests,
            transfers: &core.transfers,
            reassembly: &core.reassembly,
            pacer: &core.pacer,
        }
    }

    /// Checks the laws of this share.
    ///
    /// # Errors
    /// The first law of this share that is broken.
    pub(crate) fn check(&self, share: Share) -> Result<(), Law> {
        match share {
            Share::Session(session) => self.check_session(session),
            Share::Sums => self.check_sums(),
            Share::All => {
                let mut sessions = self.sessions.indexes();
                sessions.try_for_each(|session| self.check_session(session))?;
                self.check_sums()
            }
        }
    }

    fn check_session(&self, session: SessionIdx) -> Result<(), Law> {
        let Some(line) = self.sessions.get(session).filter(|line| line.is_live()) else {
            return Ok(());
        };
        let slots = line.slots();
        let holds = |law: Law, holds: bool| if holds { Ok(()) } else { Err(law) };
        holds(Law::Prepared, line.is_settled())?;
        let is_free = |at: SlotIdx| self.calls.call_at(at).is_none();
        holds(
            Law::Slots,
            slots.iter().all(|at| line.is_slot_free(at) == is_free(at)),
        )?;
        holds(Law::Awaited, self.calls.are_slots_settled(slots, session))?;
        let held = self.calls.in_slots(slots);
        let held: u32 = held
            .map(|idx| self.transfers.credits_of(idx, self.calls))
            .sum();
        let missing = line.terms().credits.checked_sub(line.credits());
        holds(Law::Credits, missing == Some(held))?;
        let waiting = self.calls.count_waiting(session);
        holds(
            Law::Backlog,
            waiting.is_some_and(|count| line.has_waiting() == (count != 0)),
        )?;
        let receiving = self
            .requests
            .receiving(slots, |place| self.reassembly.size_at(place));
        holds(
            Law::Receiving,
            receiving == self.reassembly.bytes_of(session),
        )?;
        let template = line.answer_template();
        holds(Law::Answers, self.requests.are_prepared(slots, &template))?;
        holds(
            Law::Flows,
            line.flow() == FlowIdx::NONE || self.pacer.has(line.flow()),
        )
    }

    /// Checks the laws over all sessions.
    fn check_sums(&self) -> Result<(), Law> {
        let live = || {
            let all = self.sessions.indexes();
            let all = all.map(|session| self.sessions.at(session));
            all.filter(|line| line.is_live())
        };
        let holds = |law: Law, holds: bool| if holds { Ok(()) } else { Err(law) };
        let (mut calls, mut transfers) = (0, 0);
        for session in self.sessions.indexes() {
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
        let flows = live().filter(|line| line.flow() != FlowIdx::NONE).count();
        holds(Law::Flows, flows == self.pacer.live())?;
        holds(Law::Promises, self.sessions.are_promises_kept())?;
        holds(Law::SlotRanges, self.sessions.are_slots_known())?;
        holds(Law::Receiving, self.reassembly.is_sum_right())?;
        holds(Law::Requests, self.requests.is_count_right())
    }
}

#[cfg(test)]
mod tests;
