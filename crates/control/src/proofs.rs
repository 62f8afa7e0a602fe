//! Unanswered challenges: when each is due again, and how many times it may still be sent (rule
//! C13).
//!
//! Invariants: at most three challenges are sent for a session; a session has one entry in each of
//! the three tables, or none in any. Owned by `plane.rs`, used by `plane/proofs.rs`.

use dunlin_core::Nanos;
use dunlin_core::ordered::{Map, Set};

use super::types::{LinkId, Proving};

#[cfg(test)]
mod tests;

/// The most challenges that are sent for a session. Together they have 96 bytes, and the Connect or
/// Accept that offered the address has at least 75: so this side sends fewer than three times the
/// bytes that it received. The other side answers at most this number of challenges.
pub(super) const SENDINGS: u8 = 3;

/// The failure timeout is this many times as long as the time between two challenges.
const PARTS: u64 = 8;

/// An unanswered challenge.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Awaited {
    link: LinkId,
    secret: u64,
    /// How many challenges may still be sent.
    left: u8,
    due: Nanos,
}

/// The next step for a challenge that has waited long enough.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Turn {
    /// Send a challenge with these bytes.
    Send(Proving, u64),
    /// The time for the proof is over.
    GiveUp(Proving),
}

/// All unanswered challenges.
#[derive(Debug, Default)]
pub(super) struct Proofs {
    awaited: Map<Proving, Awaited>,
    by_secret: Map<(LinkId, u64), Proving>,
    due: Set<(Nanos, Proving)>,
}

impl Proofs {
    /// Begins to wait for the return of these bytes over a connection. The first challenge is due
    /// now.
    pub(super) fn begin(&mut self, proving: Proving, link: LinkId, secret: u64, now: Nanos) {
        self.forget(proving);
        self.enter(
            proving,
            Awaited {
                link,
                secret,
                left: SENDINGS,
                due: now,
            },
        );
    }

    /// Stops waiting, because the session is open or has ended. True if it was waiting.
    pub(super) fn forget(&mut self, proving: Proving) -> bool {
        let Some(awaited) = self.awaited.remove(&proving) else {
            return false;
        };
        self.by_secret.remove(&(awaited.link, awaited.secret));
        self.due.remove(&(awaited.due, proving));
        true
    }

    /// Takes bytes that came over a connection. Returns the session whose challenge had these
    /// bytes, if there is one.
    pub(super) fn on_proof(&mut self, link: LinkId, secret: u64) -> Option<Proving> {
        let proving = self.by_secret.get(&(link, secret)).copied()?;
        self.forget(proving);
        Some(proving)
    }

    /// The next step that is due by now. All challenges of a session, with the time for an answer
    /// to the last one, take one failure timeout.
    pub(super) fn next_turn(&mut self, timeout: Nanos, now: Nanos) -> Option<Turn> {
        let (_, proving) = *self.due.first().filter(|(at, _)| *at <= now)?;
        let awaited = self.awaited.get(&proving).copied()?;
        self.forget(proving);
        let Some(left) = awaited.left.checked_sub(1) else {
            return Some(Turn::GiveUp(proving));
        };
        let parts = match left {
            0 => PARTS - u64::from(SENDINGS) + 1,
            _ => 1,
        };
        let due = now + Nanos(timeout.0 / PARTS * parts);
        self.enter(
            proving,
            Awaited {
                left,
                due,
                ..awaited
            },
        );
        Some(Turn::Send(proving, awaited.secret))
    }

    /// When the next step is due.
    pub(super) fn next_due(&self) -> Nanos {
        self.due.first().map_or(Nanos::MAX, |(at, _)| *at)
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.awaited.is_empty() && self.by_secret.is_empty() && self.due.is_empty()
    }

    fn enter(&mut self, proving: Proving, awaited: Awaited) {
        let name = (awaited.link, awaited.secret);
        self.by_secret.insert(name, proving);
        self.due.insert((awaited.due, proving));
        self.awaited.insert(proving, awaited);
    }
}
