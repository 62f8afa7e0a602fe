//! When a seat has work, and the work of a follower between two messages.
//!
//! A follower answers an append before it applies what the append commits (`node/applying.rs`). If
//! nothing else has come by its next turn, it does that alone, without a whole run. Called by
//! `replica`.

use dunlin_core::Nanos;

use super::seat::Seat;

impl Seat {
    #[inline]
    pub(super) fn is_due(&self, now: Nanos) -> bool {
        self.has_come(now) || self.node.has_more()
    }

    /// Whether something has come in, or its time has.
    #[inline]
    fn has_come(&self, now: Nanos) -> bool {
        let has_news = self.disk.as_ref().is_some_and(|it| it.has_news(now));
        self.is_stirred || now >= self.next_tick || has_news
    }

    /// Applies the entries that this follower has left, if there is nothing else to do. False:
    /// there is other work, for a run.
    #[inline]
    pub(super) fn catch_up(&mut self, own: u64, now: Nanos) -> bool {
        if self.has_come(now) || self.node.has_other_work() || self.node.leads() {
            return false;
        }
        self.node.apply_left(&mut self.output);
        self.meet(own);
        // The next run ends them.
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
