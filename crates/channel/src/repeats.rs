//! Repeats for clients whose requests have one server each, such as the owner of a key: the rules,
//! pauses, limit and budget of a machine, without its choice of a server.
//!
//! An attempt that a machine would repeat at once, at another server, is repeated here after a
//! pause, because the same server gets it. Repeats that are free of charge end with the deadline of
//! the request, which the client keeps.
//!
//! An attempt whose session has ended counts, but its repeat is free of charge. It waits for
//! another session, as new requests do meanwhile, so the server gets only the new requests and
//! those that were in flight.

use dunlin_core::{Nanos, Rng};

use crate::budget::Budget;
use crate::config::Retry;
use crate::fault::Fault;
use crate::repeat::{Repeat, repeat};

/// The failures of one request.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub struct Failures {
    /// Attempts that may have run, or that an overloaded server refused; they are limited.
    paid: u8,
    all: u32,
}

/// Decides about failed attempts of many requests, which share a budget.
///
/// ```
/// use dunlin_channel::{Config, Failures, Fault, Repeats};
/// use dunlin_core::{Nanos, RpcError};
/// use dunlin_wire::Ran;
///
/// let mut repeats = Repeats::new(Config::DEFAULT.retry, 7);
/// let (mut failures, now) = (Failures::default(), Nanos::from_secs(1));
/// let fault = Fault::Sent(RpcError::PeerFailed(Ran::Unknown));
/// assert!(repeats.on_failure(&mut failures, &fault, true, now) > Some(now));
/// assert_eq!(repeats.on_failure(&mut failures, &fault, false, now), None);
/// ```
#[derive(Clone, Debug)]
pub struct Repeats {
    retry: Retry,
    budget: Budget,
    rng: Rng,
}

impl Repeats {
    /// Starts with a full budget. `seed` spreads the pauses: clients that failed at the same time
    /// do not try again at the same time.
    ///
    /// # Panics
    /// If the factor of the pause is less than 2.
    #[must_use]
    pub fn new(retry: Retry, seed: u64) -> Self {
        retry.pause.check();
        Self {
            retry,
            budget: Budget::full(Nanos::ZERO),
            rng: Rng::new(seed),
        }
    }

    /// Notes a new request, which adds to the budget.
    #[inline]
    pub fn on_request(&mut self) {
        self.budget.on_call();
    }

    /// When a failed attempt is repeated; `None`: never. `idempotent`: the request may run twice.
    pub fn on_failure(
        &mut self,
        failures: &mut Failures,
        fault: &Fault,
        idempotent: bool,
        now: Nanos,
    ) -> Option<Nanos> {
        failures.all = failures.all.saturating_add(1);
        match repeat(fault, idempotent) {
            Repeat::Never => return None,
            Repeat::AtOnce | Repeat::Later => {}
            Repeat::Paid => {
                failures.paid = failures.paid.saturating_add(1);
                let may_repeat = failures.paid < self.retry.attempts
                    && (fault.closes().is_some() || self.budget.take(now));
                if !may_repeat {
                    return None;
                }
            }
        }
        Some(now + self.retry.pause.pause(failures.all, &mut self.rng))
    }
}

#[cfg(test)]
mod tests;
