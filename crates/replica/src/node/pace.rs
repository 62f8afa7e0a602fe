//! Election timeouts from the caller's generator.
//!
//! Raft draws a timeout whenever it resets its clock, which includes each change of its term or
//! role. `Pace` draws another timeout at each such change, and sets it again whenever Raft has
//! drawn its own. So the timeout depends only on the caller's generator. Called by `node` after
//! each step of Raft.

use dunlin_core::Rng;
use raft::{Raft, StateRole, Storage};

use crate::options::Options;

#[derive(Debug, Default)]
pub(super) struct Pace {
    /// Term and role at the last draw.
    seen: Option<(u64, StateRole)>,
    /// The timeout in ticks.
    ticks: usize,
}

impl Pace {
    /// Whether term and role have not changed since the last step, and Raft still has the timeout
    /// drawn then.
    #[inline]
    pub(super) fn is_kept<T: Storage>(&self, raft: &Raft<T>) -> bool {
        self.seen == Some((raft.term, raft.state))
            && raft.randomized_election_timeout() == self.ticks
    }

    /// Sets the timeout, and returns whether term or role has changed.
    pub(super) fn on_step<T: Storage>(&mut self, raft: &mut Raft<T>, rng: &mut Rng) -> bool {
        let now = Some((raft.term, raft.state));
        let has_changed = self.seen != now;
        if has_changed {
            self.seen = now;
            let spread = u32::try_from(Options::ELECTION_TICKS).expect("a few");
            self.ticks = Options::ELECTION_TICKS + rng.below(spread) as usize;
        }
        if raft.randomized_election_timeout() != self.ticks {
            raft.set_randomized_election_timeout(self.ticks);
        }
        has_changed
    }
}
