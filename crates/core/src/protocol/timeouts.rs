//! Timeouts: retransmissions of calls, passed deadlines, probes of large messages, CANCELs of
//! zombies, acknowledgements of slow requests, responses whose hold has ended, silent peers (rules
//! S4 to S6, S8, S9, S11).
//!
//! The agenda knows when work is due; this file does the work. It visits the tables in parts: a
//! scan visits at most [`SCAN_LIMIT`] calls, and a sweep visits a part of the table of requests. So
//! the cost is small, and no timer can refer to a call that is over.

use crate::config::SCAN_LIMIT;
use crate::error::CloseReason;
use crate::handle::CallIdx;
use crate::law::Law;
use crate::protocol::Core;
use crate::protocol::laws::{Parts, Share};
use crate::time::Nanos;

impl Core {
    /// Does all work that is due, except the user's timers, which the loop delivers before it
    /// computes the next due time. `queue_empty`: the RX queue was seen empty, so no answer waits
    /// there.
    #[inline(never)]
    pub(crate) fn on_time(&mut self, queue_empty: bool) {
        let (now, interval) = (self.context.moment.now(), self.context.config.scan_interval);
        if let Some(span) = self.context.agenda.absence(now, interval) {
            self.context.moment.on_absence(span);
        }
        self.requests
            .acknowledge_due(&self.sessions, &mut self.context);
        self.release_paced();
        self.context.agenda.call_attention_to_asked(now);
        if self.context.agenda.scan_is_due(now) {
            self.scan_calls(queue_empty);
        }
        if self.context.agenda.sweep_is_due(now) {
            let (check, sessions) = (self.context.config.check, self.sessions.len());
            if let Some(share) = self.laws.on_sweep(check, sessions) {
                self.enforce(Parts::of(self).check(share));
            }
            self.server().sweep_responses();
        }
        if let Some(blame) = self
            .context
            .agenda
            .transfers_due(now, queue_empty, interval)
        {
            self.check_transfers(blame);
        }
    }

    /// Checks the laws of the sessions that the packets of these frames have named; of all
    /// sessions, if `is_all`.
    #[cold]
    #[inline(never)]
    pub(crate) fn check_after_event<'a>(
        &mut self,
        frames: impl Iterator<Item = &'a [u8]>,
        mut is_all: bool,
    ) {
        let mut found = Ok(());
        for mut frame in frames {
            is_all |= self.laws.on_frame();
            while let Some((session, rest)) = self.sessions.named_by(frame) {
                found = found.and_then(|()| Parts::of(self).check(Share::Session(session)));
                frame = rest;
            }
        }
        if is_all {
            found = found.and_then(|()| Parts::of(self).check(Share::All));
        }
        self.enforce(found);
    }

    /// Ends the endpoint's sessions because of a broken law, but only once: state that stays broken
    /// must not end later sessions.
    fn enforce(&mut self, found: Result<(), Law>) {
        let Err(law) = found else { return };
        if !self.laws.on_broken(law) {
            return;
        }
        self.context.stats.on_broken_law();
        for session in self.sessions.indexes() {
            let session = self.sessions.handle(session);
            self.close(session, CloseReason::Inconsistent(law), true);
        }
    }

    /// Visits the pending calls, and computes when a scan must visit them again.
    fn scan_calls(&mut self, queue_empty: bool) {
        let (now, interval) = (self.context.moment.now(), self.context.config.scan_interval);
        let blame = self.context.agenda.may_blame(now, queue_empty, interval);
        let len = self.calls.len();
        let (start, count) = self.context.agenda.next_part(len, SCAN_LIMIT);
        let mut due = Nanos::MAX;
        for i in 0..count {
            let index = (start + i) % len;
            let idx = CallIdx(u32::try_from(index).unwrap_or(u32::MAX));
            due = due.min(self.check_call(idx, blame));
        }
        let soonest = now + interval;
        let live = self.calls.live();
        self.context
            .agenda
            .on_scanned(live, count == len, due, soonest);
    }
}
