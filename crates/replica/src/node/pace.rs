//! Election time-outs from the caller's generator.
//!
//! Raft draws a time-out whenever it resets its clock, which it also does when its term or its part
//! changes. `Pace` draws another at each such change, and sets it again whenever Raft has drawn its
//! own. So the time-out depends on the generator alone. Called by `node` after each step of Raft.

use dunlin_core::Rng;
use raft::{Raft, StateRole, Storage};

use crate::options::Options;

#[derive(Debug, Default)]
pub(super) struct Pace {
    /// Term and part since the last draw.
    seen: Option<(u64, StateRole)>,
    /// Ticks of the time-out.
    ticks: usize,
}

impl Pace {
    /// Whether term and part are those of the last step, and the time-out is the one drawn then.
    #[inline]
    pub(super) fn is_kept<T: Storage>(&self, raft: &Raft<T>) -> bool {
        self.seen == Some((raft.term, raft.state))
            && raft.randomized_election_timeout() == self.ticks
    }

    /// Returns whether term or part have changed.
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
