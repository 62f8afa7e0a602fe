//! The machine: brings each event to the parts that it concerns, and returns the driver's next
//! actions.
//!
//! | file | events |
//! |---|---|
//! | `machine.rs` | calls, times, actions |
//! | `machine/attempts.rs` | attempts: where they go, how they end, which are repeated |
//! | `machine/links.rs` | lists of addresses, links, drain |
//!
//! Called by the driver: [`Machine::poll`] after each event and at [`Machine::next_wakeup`], until
//! it returns no further action.

mod attempts;
mod links;

use std::collections::VecDeque;

use dunlin_core::{Nanos, Rng};
use dunlin_wire::Ran;

use crate::addresses::{Addresses, Around};
use crate::budget::Budget;
use crate::call::{Call, Calls, Stage};
use crate::config::Config;
use crate::counters::Counters;
use crate::handle::CallId;
use crate::lookups::Lookups;
#[cfg(feature = "mutants")]
use crate::mutant::Mutant;
use crate::pick::Picker;
use crate::types::{Action, AddressView, CallEnd, Failure, Full, State, Terms, Why};

/// A channel without input and output. The crate's page describes its driver.
///
/// ```
/// use dunlin_channel::{Action, Config, Machine, Terms};
/// use dunlin_core::Nanos;
///
/// let mut machine = Machine::new(Config::DEFAULT, 7, Nanos::ZERO);
/// machine.on_addresses(["host:31850"], Nanos::ZERO);
/// let connect = machine.poll(Nanos::ZERO);
/// assert!(matches!(connect, Some(Action::Connect { .. })));
/// let call = machine.on_call(Terms::default(), Nanos::ZERO).unwrap();
/// assert_eq!(machine.poll(Nanos::ZERO), None, "it waits for the server");
/// machine.on_cancel(call, Nanos::ZERO);
/// ```
#[derive(Clone, Debug)]
pub struct Machine {
    config: Config,
    rng: Rng,
    addresses: Addresses,
    calls: Calls,
    picker: Picker,
    budget: Budget,
    lookups: Lookups,
    actions: VecDeque<Action>,
    counters: Counters,
    is_closed: bool,
}

impl Machine {
    /// Makes a channel without addresses. `seed` decides all random choices.
    ///
    /// # Panics
    /// If the factor of one of the pauses is less than 2.
    pub fn new(config: Config, seed: u64, now: Nanos) -> Self {
        config.retry.pause.check();
        config.reconnect.check();
        Self {
            rng: Rng::new(seed),
            addresses: Addresses::new(),
            calls: Calls::new(),
            picker: Picker::new(&config),
            budget: Budget::full(now),
            lookups: Lookups::new(&config, now),
            actions: VecDeque::new(),
            counters: Counters::default(),
            is_closed: false,
            config,
        }
    }

    // Questions.

    /// The state of the channel.
    pub fn state(&self) -> State {
        self.addresses.state()
    }

    /// The addresses, each with its state and its last error.
    pub fn addresses(&self) -> impl Iterator<Item = AddressView<'_>> {
        self.addresses.views()
    }

    /// A number that grows with each change of [`Self::state`] or of [`Self::addresses`], except
    /// changes of their outstanding requests.
    pub fn version(&self) -> u64 {
        self.addresses.version()
    }

    /// Its counters.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The time at which the driver must call [`Self::poll`], if no event comes before.
    pub fn next_wakeup(&self) -> Option<Nanos> {
        if !self.actions.is_empty() {
            return Some(Nanos::ZERO);
        }
        let times = [
            self.calls.next_wakeup(),
            self.addresses.next_wakeup(),
            self.lookups.next_wakeup(),
        ];
        times.into_iter().flatten().min()
    }

    // Events of calls.

    /// Begins a call.
    ///
    /// # Errors
    /// [`Full`] if the limit of calls that have not ended is reached.
    pub fn on_call(&mut self, terms: Terms, now: Nanos) -> Result<CallId, Full> {
        if self.calls.len() >= self.config.calls {
            self.counters.full += 1;
            return Err(Full);
        }
        self.counters.calls += 1;
        self.budget.on_call();
        let default = self.config.deadline.map(|span| now + span);
        let deadline = terms.deadline.or(default);
        let call = self.calls.begin(Terms { deadline, ..terms });
        match self.is_closed {
            true => self.fail(call, Why::Closed),
            false => self.dispatch(call, now),
        }
        Ok(call)
    }

    /// Counts a call that has ended at its deadline before the driver could begin it.
    pub const fn on_late(&mut self) {
        self.counters.calls += 1;
        self.counters.failed += 1;
        self.counters.expired += 1;
    }

    /// Cancels a call, even if it has ended already. The driver no longer gets the call's end, nor
    /// the attempts at the call that it has not taken yet.
    pub fn on_cancel(&mut self, id: CallId, now: Nanos) {
        let Some(call) = self.calls.get(id) else {
            return;
        };
        let has_ended = matches!(call.stage(), Stage::Ended(_));
        self.drop_attempts(id, now);
        #[cfg(feature = "mutants")]
        if has_ended && self.config.shows(Mutant::DeliveredAfterDrop) {
            return;
        }
        self.calls.remove(id);
        self.counters.cancelled += u64::from(!has_ended);
    }

    /// Ends the channel: every call that has not ended fails, and every link is disconnected. Later
    /// reports are ignored.
    pub fn close(&mut self, now: Nanos) {
        self.is_closed = true;
        let calls: Vec<CallId> = self.calls.handles().collect();
        for call in calls {
            self.end(call, Why::Closed, now);
        }
        let Self {
            addresses,
            config,
            rng,
            actions,
            counters,
            ..
        } = self;
        addresses.close(&mut Around {
            config,
            rng,
            actions,
            counters,
            now,
        });
        self.lookups = Lookups::new(&Config::DEFAULT, now);
    }

    // Time and actions.

    /// Takes the driver's next action; `None`: there is none before [`Self::next_wakeup`].
    pub fn poll(&mut self, now: Nanos) -> Option<Action> {
        loop {
            while let Some(action) = self.actions.pop_front() {
                if self.still_holds(&action, now) {
                    return Some(action);
                }
            }
            if !self.on_time(now) {
                return None;
            }
        }
    }

    /// False if an event has made the action invalid since it was queued.
    fn still_holds(&mut self, action: &Action, now: Nanos) -> bool {
        match *action {
            Action::Send { attempt, link, .. } if !self.addresses.may_send(link) => {
                self.take_back(attempt, now);
                false
            }
            Action::Send { attempt, .. } => self.calls.on_out(attempt),
            Action::Cancel { attempt } => self.calls.attempt(attempt).is_some(),
            Action::End { call, .. } => self.calls.remove(call).is_some(),
            _ => true,
        }
    }

    /// Handles one timer that is due. False if none is.
    fn on_time(&mut self, now: Nanos) -> bool {
        if let Some(call) = self.calls.due(now) {
            self.on_due(call, now);
            return true;
        }
        if self.lookups.begin(now) {
            self.counters.lookups += 1;
            self.actions.push_back(Action::LookUp);
            return true;
        }
        let is_tried = self.with_addresses(now, |addresses, around| addresses.try_one(around));
        if is_tried {
            self.wake(now);
        }
        is_tried
    }

    fn on_due(&mut self, id: CallId, now: Nanos) {
        let Some(call) = self.calls.get(id) else {
            return;
        };
        let is_over = call.terms().deadline.is_some_and(|end| end <= now);
        #[cfg(feature = "mutants")]
        if is_over && self.forgets_deadline(call) {
            return;
        }
        if is_over {
            self.counters.expired += 1;
            return self.end(id, Why::DeadlinePassed, now);
        }
        match call.stage() {
            Stage::Waiting { until } if until <= now => self.give_up_waiting(id, now),
            Stage::Pausing { until } if until <= now => self.dispatch(id, now),
            Stage::Flying { hedge: Some(at) } if at <= now => self.hedge(id, now),
            stage => self.calls.enter(id, stage),
        }
    }

    fn give_up_waiting(&mut self, id: CallId, now: Nanos) {
        #[cfg(feature = "mutants")]
        if self.config.shows(Mutant::PatienceForgotten) {
            return;
        }
        self.counters.no_server += 1;
        self.end(id, Why::NoServer, now);
    }

    #[cfg(feature = "mutants")]
    fn forgets_deadline(&self, call: &Call) -> bool {
        let waits = matches!(call.stage(), Stage::Waiting { .. });
        waits && self.config.shows(Mutant::DeadlineForgotten)
    }

    // Ends.

    /// Fails the call, and gives up its attempts.
    fn end(&mut self, id: CallId, why: Why, now: Nanos) {
        let Some(call) = self.calls.get(id) else {
            return;
        };
        if matches!(call.stage(), Stage::Ended(_)) {
            return;
        }
        if self.calls.is_issued(call) {
            self.calls.on_ran(id, Ran::Unknown);
        }
        self.drop_attempts(id, now);
        self.fail(id, why);
    }

    fn fail(&mut self, id: CallId, why: Why) {
        let ran = self.calls.get(id).map_or(Ran::No, Call::ran);
        self.finish(id, CallEnd::Failed(Failure { why, ran }));
    }

    fn finish(&mut self, id: CallId, end: CallEnd) {
        let counter = match end {
            CallEnd::Answered(_) => &mut self.counters.answered,
            CallEnd::Failed(_) => &mut self.counters.failed,
        };
        *counter += 1;
        self.calls.enter(id, Stage::Ended(end));
        self.actions.push_back(Action::End { call: id, end });
    }

    /// Runs an event of the addresses.
    fn with_addresses<R>(
        &mut self,
        now: Nanos,
        event: impl FnOnce(&mut Addresses, &mut Around<'_>) -> R,
    ) -> R {
        let mut around = Around {
            config: &self.config,
            rng: &mut self.rng,
            actions: &mut self.actions,
            counters: &mut self.counters,
            now,
        };
        event(&mut self.addresses, &mut around)
    }
}

#[cfg(test)]
mod tests;
