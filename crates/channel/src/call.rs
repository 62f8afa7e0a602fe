//! Calls and their attempts, and for each call the time of its next event.
//!
//! | stage | it waits for | next stage |
//! |---|---|---|
//! | waiting | a ready server | server ready: flying; patience over: ended |
//! | pausing | the end of a pause before a repeat | pause over: flying or waiting |
//! | flying | the end of an attempt | answer: ended; failure: any stage |
//! | ended | the driver to take its end | end taken: gone |
//!
//! In every stage before the last, the deadline ends the call. A call is removed when it is
//! cancelled, and its attempts become orphans.
//!
//! Invariant: a call that is flying has a live attempt; a call in another stage has none.

use dunlin_core::Nanos;
use dunlin_wire::Ran;

use crate::config::MAX_ATTEMPTS;
use crate::handle::{AddressId, AttemptId, CallId, Handle, LinkId};
use crate::queue::Queue;
use crate::slab::Slab;
use crate::timers::Timers;
use crate::types::{CallEnd, Terms};

/// The event for which a call waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stage {
    Waiting { until: Nanos },
    Pausing { until: Nanos },
    Flying { hedge: Option<Nanos> },
    Ended(CallEnd),
}

#[derive(Clone, Debug)]
pub(crate) struct Call {
    terms: Terms,
    /// The number of calls that began before this one.
    order: u64,
    stage: Stage,
    /// The number of attempts that have begun, except the free ones.
    begun: usize,
    /// The number of free attempts since the last one that was not free. A free attempt ended
    /// before it was transmitted, or was refused by a draining server.
    free: usize,
    /// A free attempt that ends at this time or later ends the call, if `free` has reached the
    /// limit of attempts.
    patient_until: Option<Nanos>,
    live: [Option<AttemptId>; MAX_ATTEMPTS],
    /// Whether the call ran, as far as its ended attempts prove it.
    ran: Ran,
    /// The address of the last attempt.
    last: Option<AddressId>,
}

impl Call {
    pub(crate) const fn terms(&self) -> &Terms {
        &self.terms
    }

    pub(crate) const fn stage(&self) -> Stage {
        self.stage
    }

    pub(crate) const fn begun(&self) -> usize {
        self.begun
    }

    pub(crate) const fn free(&self) -> usize {
        self.free
    }

    pub(crate) fn is_patient(&self, now: Nanos) -> bool {
        self.patient_until.is_none_or(|until| now < until)
    }

    pub(crate) const fn ran(&self) -> Ran {
        self.ran
    }

    pub(crate) const fn last(&self) -> Option<AddressId> {
        self.last
    }

    pub(crate) fn live(&self) -> impl Iterator<Item = AttemptId> + use<> {
        self.live.into_iter().flatten()
    }

    /// The time of the call's next event.
    fn wakeup(&self) -> Option<Nanos> {
        let own = match self.stage {
            Stage::Waiting { until } | Stage::Pausing { until } => Some(until),
            Stage::Flying { hedge } => hedge,
            Stage::Ended(_) => return None,
        };
        let deadline = self.terms.deadline;
        own.into_iter().chain(deadline).min()
    }
}

/// One request of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attempt {
    /// `None`: the attempt is an orphan, whose end has no effect on a call.
    pub(crate) call: Option<CallId>,
    pub(crate) address: AddressId,
    pub(crate) link: LinkId,
    /// The time at which the machine began it.
    pub(crate) since: Nanos,
    /// The number of attempts that were outstanding at the server at that time, including this
    /// attempt.
    pub(crate) outstanding: u32,
    /// The driver has taken the attempt.
    pub(crate) is_out: bool,
    /// The driver has issued the attempt, so its request may leave at any moment.
    pub(crate) is_issued: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Calls {
    calls: Slab<CallId, Call>,
    attempts: Slab<AttemptId, Attempt>,
    /// The number of calls so far.
    all: u64,
    waiting: Queue,
    due: Timers,
}

impl Calls {
    pub(crate) const fn new() -> Self {
        Self {
            calls: Slab::new(),
            attempts: Slab::new(),
            all: 0,
            waiting: Queue::new(),
            due: Timers::new(),
        }
    }

    // Questions.

    pub(crate) fn len(&self) -> usize {
        self.calls.len()
    }

    pub(crate) fn get(&self, id: CallId) -> Option<&Call> {
        self.calls.get(id)
    }

    pub(crate) fn attempt(&self, id: AttemptId) -> Option<&Attempt> {
        self.attempts.get(id)
    }

    pub(crate) fn handles(&self) -> impl Iterator<Item = CallId> + '_ {
        self.calls.handles()
    }

    pub(crate) fn next_wakeup(&self) -> Option<Nanos> {
        self.due.next()
    }

    /// The oldest call that waits.
    pub(crate) fn first_waiting(&self) -> Option<CallId> {
        self.calls.at(self.waiting.first()?)
    }

    /// The oldest waiting call after `id`.
    pub(crate) fn waiting_after(&self, id: CallId) -> Option<CallId> {
        self.calls.at(self.waiting.after(id.parts().0)?)
    }

    /// True if a live attempt may have left this side, so the call may have run or may still run.
    pub(crate) fn is_issued(&self, call: &Call) -> bool {
        let attempt = |id| self.attempts.get(id);
        call.live().filter_map(attempt).any(|it| it.is_issued)
    }

    // Events.

    pub(crate) fn begin(&mut self, terms: Terms) -> CallId {
        let order = self.all;
        self.all += 1;
        self.calls.insert(Call {
            terms,
            order,
            stage: Stage::Flying { hedge: None },
            begun: 0,
            free: 0,
            patient_until: None,
            live: [None; MAX_ATTEMPTS],
            ran: Ran::No,
            last: None,
        })
    }

    /// Takes a call whose next event is due.
    pub(crate) fn due(&mut self, now: Nanos) -> Option<CallId> {
        let index = self.due.due(now)?;
        self.calls.at(index)
    }

    pub(crate) fn enter(&mut self, id: CallId, stage: Stage) {
        let index = id.parts().0;
        let Some(call) = self.calls.get_mut(id) else {
            return;
        };
        call.stage = stage;
        let order = call.order;
        self.due.set(index, call.wakeup());
        match stage {
            Stage::Waiting { .. } => {
                let calls = &self.calls;
                let is_later = |other| {
                    let other = calls.at(other).and_then(|other| calls.get(other));
                    other.is_some_and(|other| other.order > order)
                };
                self.waiting.push(index, is_later);
            }
            _ => self.waiting.remove(index),
        }
    }

    /// Adds a new attempt at `id`.
    pub(crate) fn on_attempt(&mut self, id: CallId, attempt: Attempt) -> Option<AttemptId> {
        let call = self.calls.get_mut(id)?;
        let place = call.live.iter_mut().find(|place| place.is_none())?;
        let handle = self.attempts.insert(attempt);
        *place = Some(handle);
        call.begun += 1;
        call.last = Some(attempt.address);
        Some(handle)
    }

    /// Gives an attempt to the driver. False if the attempt was removed before.
    pub(crate) fn on_out(&mut self, id: AttemptId) -> bool {
        let attempt = self.attempts.get_mut(id);
        attempt.is_some_and(|attempt| {
            attempt.is_out = true;
            true
        })
    }

    /// Notes that the driver has issued an attempt.
    pub(crate) fn on_issued(&mut self, id: AttemptId) {
        if let Some(attempt) = self.attempts.get_mut(id) {
            attempt.is_issued = true;
        }
    }

    /// Notes the end of an attempt at the call that was not free.
    pub(crate) fn on_sent(&mut self, id: CallId) {
        if let Some(call) = self.calls.get_mut(id) {
            (call.free, call.patient_until) = (0, None);
        }
    }

    /// Notes the end of a free attempt at the call.
    pub(crate) fn on_free(&mut self, id: CallId, patient_until: Nanos) {
        if let Some(call) = self.calls.get_mut(id) {
            call.begun = call.begun.saturating_sub(1);
            call.free += 1;
            call.patient_until.get_or_insert(patient_until);
        }
    }

    /// Notes that an attempt was moved to another link.
    pub(crate) fn on_move(&mut self, id: AttemptId, link: LinkId) {
        if let Some(attempt) = self.attempts.get_mut(id) {
            attempt.link = link;
        }
    }

    /// Removes an attempt that has ended, or never left.
    pub(crate) fn on_attempt_end(&mut self, id: AttemptId) -> Option<Attempt> {
        let attempt = self.attempts.remove(id)?;
        if let Some(call) = attempt.call.and_then(|call| self.calls.get_mut(call)) {
            for live in &mut call.live {
                live.take_if(|live| *live == id);
            }
        }
        Some(attempt)
    }

    /// Removes an attempt that the driver has not taken, and does not count it as begun.
    pub(crate) fn take_back(&mut self, id: AttemptId) -> Option<Attempt> {
        let attempt = self.on_attempt_end(id)?;
        if let Some(call) = attempt.call.and_then(|call| self.calls.get_mut(call)) {
            call.begun -= 1;
        }
        Some(attempt)
    }

    /// Records whether the call ran, as far as an ended attempt proves it.
    pub(crate) fn on_ran(&mut self, id: CallId, ran: Ran) {
        if let Some(call) = self.calls.get_mut(id) {
            call.ran = call.ran.join(ran);
        }
    }

    /// Makes `attempt` an orphan.
    pub(crate) fn orphan(&mut self, attempt: AttemptId) {
        let entry = self.attempts.get_mut(attempt);
        let call = entry.and_then(|entry| entry.call.take());
        if let Some(call) = call.and_then(|call| self.calls.get_mut(call)) {
            for live in &mut call.live {
                live.take_if(|live| *live == attempt);
            }
        }
    }

    /// Removes the call.
    pub(crate) fn remove(&mut self, id: CallId) -> Option<Call> {
        let call = self.calls.remove(id)?;
        self.due.set(id.parts().0, None);
        self.waiting.remove(id.parts().0);
        Some(call)
    }

    /// Forgets the proofs of earlier attempts.
    #[cfg(feature = "mutants")]
    pub(crate) fn forget_ran(&mut self, id: CallId) {
        if let Some(call) = self.calls.get_mut(id) {
            call.ran = Ran::No;
        }
    }

    /// The attempt that now has the index of `id`.
    #[cfg(feature = "mutants")]
    pub(crate) fn in_place_of(&self, id: AttemptId) -> AttemptId {
        self.attempts.at(id.parts().0).unwrap_or(id)
    }
}
