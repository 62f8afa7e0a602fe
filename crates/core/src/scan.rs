//! What time does: lost packets, passed deadlines, probes, CANCELs of zombies, acknowledgements
//! of slow requests, responses whose hold has ended, silent peers (rules S4 to S6, S8, S9, S11).
//!
//! No packet and no call has a timer entry. The tables are scanned in parts, at most
//! [`SCAN_LIMIT`] calls an interval and a 64th of the held responses, so the cost is small and
//! nothing can refer to a call that is over. An endpoint without calls and held responses does not
//! wake up.

use crate::call::{CallIdx, CallState};
use crate::config::{Config, SCAN_LIMIT, SWEEP_PARTS};
use crate::error::{CloseReason, RpcError};
use crate::proto::Proto;
use crate::time::Nanos;
use crate::work::{WorkIdx, WorkState};

/// Doublings of the timeout after which it stays as it is.
const MAX_BACKOFF: u8 = 6;
/// Attempts before silence can mean that the peer has failed.
const MIN_ATTEMPTS: u8 = 3;
/// An endpoint that did not scan for so many intervals was away, and blames nobody for it.
const AWAY_INTERVALS: u64 = 8;

/// When what is looked at next.
#[derive(Debug)]
pub(crate) struct Schedule {
    /// Nothing is due before this.
    due: Nanos,
    next_scan: Nanos,
    scan_cursor: usize,
    last_scan: Nanos,
    /// Since then this endpoint has been running without a gap.
    present_since: Nanos,
    next_sweep: Nanos,
    sweep_cursor: usize,
    sweep_interval: Nanos,
}

impl Schedule {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            due: Nanos::MAX,
            next_scan: Nanos::MAX,
            scan_cursor: 0,
            last_scan: Nanos::ZERO,
            present_since: Nanos::ZERO,
            next_sweep: Nanos::MAX,
            sweep_cursor: 0,
            sweep_interval: Nanos((config.response_hold.0 / SWEEP_PARTS as u64 / 4).max(1000)),
        }
    }

    /// A call was made: it must be looked at one interval from now at the latest.
    #[inline]
    pub(crate) fn on_call(&mut self, now: Nanos, interval: Nanos) {
        let scan = now + interval;
        if self.next_scan > scan {
            self.next_scan = scan;
            self.at_latest(scan);
        }
    }

    /// Something new is due at `at`.
    #[inline]
    pub(crate) fn at_latest(&mut self, at: Nanos) {
        self.due = self.due.min(at);
    }

    /// When something is due without a packet coming in. [`Nanos::MAX`]: never.
    #[inline]
    pub(crate) fn due(&self) -> Nanos {
        self.due
    }
}

impl Proto {
    /// Does everything that is due, except the user's timers, which the loop delivers before it
    /// finds out what is due next.
    /// `queue_empty`: the RX queue was seen empty, so what has not arrived is not merely waiting.
    pub(crate) fn on_time(&mut self, queue_empty: bool) {
        self.acknowledge_due();
        while let Some(session) = self.controls.pop_due(self.now) {
            self.wake_live(session);
        }
        if self.schedule.next_scan <= self.now {
            if queue_empty {
                self.scan_calls();
            } else {
                self.schedule.next_scan = self.now + self.config.scan_interval;
            }
        }
        if self.schedule.next_sweep <= self.now {
            self.sweep_responses();
        }
    }

    /// Finds out what is due next.
    pub(crate) fn find_due(&mut self) {
        let acks = self.ack_due.front().map_or(Nanos::MAX, |(at, _)| *at);
        self.schedule.due = self
            .schedule
            .next_scan
            .min(self.schedule.next_sweep)
            .min(acks)
            .min(self.timers.next_due())
            .min(self.controls.next_due());
    }

    fn wake_live(&mut self, session: u32) {
        if self
            .sessions
            .get(session)
            .is_some_and(crate::session::SessionState::is_open)
        {
            self.wake(session);
        }
    }

    /// Looks at the pending calls, and finds out when they must be looked at again.
    fn scan_calls(&mut self) {
        let gap = self.now.since(self.schedule.last_scan);
        if gap > self.config.scan_interval.times(AWAY_INTERVALS) {
            self.schedule.present_since = self.now;
        }
        self.schedule.last_scan = self.now;
        let len = self.calls.len();
        let count = len.min(SCAN_LIMIT);
        let start = if count == len {
            0
        } else {
            self.schedule.scan_cursor
        };
        let mut due = Nanos::MAX;
        for i in 0..count {
            let index = (start + i) % len.max(1);
            let idx = CallIdx(u32::try_from(index).unwrap_or(u32::MAX));
            due = due.min(self.check_call(idx));
        }
        self.schedule.scan_cursor = (start + count) % len.max(1);
        let soonest = self.now + self.config.scan_interval;
        self.schedule.next_scan = match self.calls.live() {
            0 => Nanos::MAX,
            // While calls are pending, the scan must not look like an absence.
            _ if count == len => due
                .max(soonest)
                .min(self.now + self.config.scan_interval.times(AWAY_INTERVALS / 2)),
            _ => soonest,
        };
    }

    /// Does what is due for one call; returns when it must be looked at again.
    fn check_call(&mut self, idx: CallIdx) -> Nanos {
        let call = self.calls.at(idx);
        match call.state {
            CallState::Free | CallState::Dropped => Nanos::MAX,
            CallState::Queued if call.deadline <= self.now => {
                self.abort(idx, RpcError::DeadlinePassed);
                Nanos::MAX
            }
            CallState::Queued => call.deadline,
            CallState::Sent | CallState::Accepted if call.deadline <= self.now => {
                self.abort(idx, RpcError::DeadlinePassed);
                self.now
            }
            CallState::Sent | CallState::Accepted | CallState::Zombie => self.check_sent(idx),
        }
    }

    /// Sends something for a call that has been without an answer for too long.
    fn check_sent(&mut self, idx: CallIdx) -> Nanos {
        let call = self.calls.at(idx);
        let due = call.sent + self.patience(idx);
        if due > self.now {
            return due.min(call.deadline);
        }
        if self.is_silent(idx) {
            let session = self.sessions.handle(call.session);
            self.close(session, CloseReason::PeerFailed, true);
            return Nanos::MAX;
        }
        match call.state {
            CallState::Sent => self.retransmit(idx),
            CallState::Accepted => {
                self.probe(idx);
            }
            _ => self.send_cancel(idx),
        }
        self.now
    }

    /// How long the call waits for an answer before it does something.
    fn patience(&self, idx: CallIdx) -> Nanos {
        let call = self.calls.at(idx);
        let rtt = &self.sessions.at(call.session).rtt;
        let timeout = rtt.timeout(self.config.rto_floor, self.config.rto_initial);
        let grown = timeout.times(1 << call.attempts.min(MAX_BACKOFF));
        // Several attempts must fit into the time after which a silent peer has failed.
        let cap = Nanos(self.config.failure_timeout.0 / 8).min(self.config.probe_max);
        grown.min(cap.max(timeout))
    }

    /// The peer has not sent anything for the failure timeout, although it was asked several
    /// times while this endpoint was running (rule S11).
    fn is_silent(&self, idx: CallIdx) -> bool {
        let call = self.calls.at(idx);
        let heard = self.sessions.at(call.session).heard;
        let since = heard.max(call.first_sent).max(self.schedule.present_since);
        call.attempts >= MIN_ATTEMPTS && self.now.since(since) >= self.config.failure_timeout
    }

    /// There is work whose response must be given back some time.
    #[inline]
    pub(crate) fn expect_sweep(&mut self) {
        if self.schedule.next_sweep == Nanos::MAX {
            self.schedule.next_sweep = self.now + self.schedule.sweep_interval;
            self.schedule.at_latest(self.schedule.next_sweep);
        }
    }

    /// Gives back one part of the responses that were held for long enough (rule S9).
    fn sweep_responses(&mut self) {
        let len = self.works.len();
        let part = len.div_ceil(SWEEP_PARTS);
        let start = if self.schedule.sweep_cursor >= len {
            0
        } else {
            self.schedule.sweep_cursor
        };
        let end = (start + part).min(len);
        for index in start..end {
            let idx = WorkIdx(u32::try_from(index).unwrap_or(u32::MAX));
            let work = self.works.at(idx);
            let held = self.now.since(work.answered) >= self.config.response_hold;
            #[cfg(feature = "mutants")]
            if held
                && self.shows(crate::mutant::Mutant::TimerAfterCompletion)
                && work.state == WorkState::Detached
                && !work.orphan
                && work.answered != Nanos::ZERO
            {
                self.free_work(idx);
                continue;
            }
            if work.state == WorkState::Done && held {
                self.free_work(idx);
            }
        }
        self.schedule.sweep_cursor = end;
        self.schedule.next_sweep = match self.works.live() {
            0 => Nanos::MAX,
            _ => self.now + self.schedule.sweep_interval,
        };
    }
}
