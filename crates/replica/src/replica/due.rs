//! When a seat has work, and the work that a follower does between two messages.
//!
//! A follower answers an append before it applies the entries that the append commits
//! (`node/applying.rs`). If nothing else has arrived by its next turn, it only applies them,
//! without a whole run. Called by `replica`.

use dunlin_core::Nanos;

use super::seat::Seat;

impl Seat {
    #[inline]
    pub(super) fn is_due(&self, now: Nanos) -> bool {
        self.has_come(now) || self.node.has_more()
    }

    /// Whether there is input, or timed work is due.
    #[inline]
    fn has_come(&self, now: Nanos) -> bool {
        let has_news = self.disk.as_ref().is_some_and(|it| it.has_news(now));
        self.is_stirred || now >= self.next_tick || has_news
    }

    /// Applies the entries that this follower has left, if there is nothing else to do. False:
    /// there is other work, which needs a run.
    #[inline]
    pub(super) fn catch_up(&mut self, own: u64, now: Nanos) -> bool {
        if self.has_come(now) || self.node.has_other_work() || self.node.leads() {
            return false;
        }
        self.node.apply_left(&mut self.output);
        self.meet(own);
        // The next run ends these sessions.
        self.is_stirred |= !self.ended.is_empty();
        true
    }

    pub(super) fn next_wakeup(&self) -> Nanos {
        let news = self.disk.as_ref().map_or(Nanos::MAX, |it| it.next_news());
        match self.is_stirred || self.node.has_more() {
            true => Nanos::ZERO,
            false => self.next_tick.min(self.lanes.next_wish()).min(news),
        }
    }
}
