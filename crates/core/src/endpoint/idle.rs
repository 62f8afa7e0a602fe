//! Iterations without frames: whether they have work to do, and how often they read the clock.
//! Called by the event loop.

use crate::config::{IDLE_CLOCK_GAP, IDLE_CLOCK_MASK};
use crate::context::Context;
use crate::endpoint::rpc::Engine;
use crate::time::{Clock, Nanos};
use crate::transport::Tx;

impl<X: Tx, C: Clock, App> Engine<X, C, App> {
    /// Counts an iteration without frames. True if it certainly has no work to do, and need not
    /// read the clock.
    #[inline(always)]
    pub(super) fn may_rest(&mut self) -> bool {
        self.idle_iterations = self.idle_iterations.wrapping_add(1);
        let Context { agenda, outbox, .. } = &self.core.context;
        !agenda.is_alert() && outbox.is_empty() && self.idle_iterations & self.idle_mask != 0
    }

    /// True if an iteration without frames has work to do. Reads the clock now and then.
    pub(super) fn must_run(&mut self) -> bool {
        let Context { agenda, outbox, .. } = &self.core.context;
        if agenda.is_alert() && self.has_work() || !outbox.is_empty() {
            return true;
        }
        if self.idle_iterations & self.idle_mask != 0 {
            return false;
        }
        self.tx.settle();
        let now = self.clock.now();
        self.adapt_idle_mask(now.since(self.last_burst));
        self.last_burst = now;
        self.core.context.moment.advance(now);
        self.core.context.agenda.due() <= now
    }

    /// Whether anything waits for the loop, except for packets and what is due.
    #[inline(never)]
    fn has_work(&self) -> bool {
        let agenda = &self.core.context.agenda;
        agenda.needs_attention() || agenda.has_postponed() || self.dropped.any()
    }

    /// Sets how often idle iterations read the clock, so that the endpoint's time never lags far
    /// behind: an iteration that polls its RX queue with a system call takes longer than one over
    /// shared memory.
    fn adapt_idle_mask(&mut self, gap: Nanos) {
        if gap > IDLE_CLOCK_GAP {
            self.idle_mask /= 2;
        } else if gap.times(2) < IDLE_CLOCK_GAP && self.idle_mask < IDLE_CLOCK_MASK {
            self.idle_mask = self.idle_mask * 2 + 1;
        }
    }
}
