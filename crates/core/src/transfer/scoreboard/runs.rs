//! Runs of packets of a message: those that leave together for the first time, and those that a CR
//! reports in order. For a run, the scoreboard does once what it otherwise does for each packet;
//! the tests compare both.
//!
//! Called by `transfer/transfers/sending.rs`.

use dunlin_wire::MAX_AHEAD;

use super::Transfer;
use crate::time::Nanos;

impl Transfer {
    /// The number of packets that may leave for the first time: none while others must leave again.
    pub(crate) fn unsent(&self) -> u32 {
        if self.has_lost() {
            return 0;
        }
        let room = MAX_AHEAD - (self.next - self.base);
        room.min(self.packets - self.next)
    }

    /// Notes that `count` packets leave now for the first time, at most [`Self::unsent`]. Returns
    /// the number of the first one.
    pub(crate) fn on_run_sent(&mut self, count: u32, now: Nanos) -> u32 {
        debug_assert!(count <= self.unsent());
        let first = self.next;
        for packet in first..first + count {
            self.sent[(packet % MAX_AHEAD) as usize] = now;
        }
        self.next += count;
        self.outstanding += count;
        first
    }

    /// Notes that all packets below `end`, which have all left, have arrived; returns when the last
    /// of them left. `None` if none of them is new, or if a packet in flight was sent again, counts
    /// as lost, or is known to have arrived. Then nothing changes, and the caller reports each
    /// packet.
    pub(crate) fn on_run_acked(&mut self, end: u32, now: Nanos) -> Option<Nanos> {
        let is_plain = self.probes.is_none()
            && self.lost_count == 0
            && self.acked.is_empty()
            && self.resent.is_empty();
        if end <= self.base || !is_plain {
            return None;
        }
        // They left in the order of their numbers. A last packet that may overtake others shows no
        // losses.
        let shown = end - u32::from(!self.shows_losses(end - 1));
        if shown > self.base {
            let newest = (self.sent_at(shown - 1), shown - 1);
            if newest > self.newest {
                self.newest = newest;
                self.newest_rtt = now.since(newest.0);
            }
        }
        self.outstanding -= end - self.base;
        self.base = end;
        self.probes.on_arrivals();
        Some(self.sent_at(end - 1))
    }
}

#[cfg(test)]
mod tests;
