//! What time does: lost packets, passed deadlines, probes, CANCELs of zombies, acknowledgements
//! of slow requests, responses whose hold has ended, silent peers (rules S4 to S6, S8, S9, S11).
//!
//! No packet and no call has a timer entry. The tables are scanned in parts, at most
//! [`SCAN_LIMIT`] calls an interval and a 64th of the held responses, so the cost is small and
//! nothing can refer to a call that is over. An endpoint without calls and held responses does not
//! wake up.

use dunlin_wire::ErrorCode;

use crate::client::call::{CallIdx, CallState};
use crate::config::{SCAN_LIMIT, SWEEP_LIMIT, SWEEP_PARTS};
use crate::endpoint::proto::Proto;
use crate::error::{CloseReason, RpcError};
use crate::server::work::{WorkIdx, WorkState};
use crate::time::Nanos;

/// Doublings of the timeout after which it stays as it is.
const MAX_BACKOFF: u8 = 6;
/// Attempts before silence can mean that the peer has failed.
const MIN_ATTEMPTS: u8 = 3;
/// An endpoint that scans so many intervals late was away, and blames nobody for that time.
const AWAY_INTERVALS: u64 = 8;
/// Intervals for which a full RX queue, which may hold the answers, excuses everybody.
const PATIENT_INTERVALS: u64 = 4;
/// Parts of `response_hold` in which all held responses are looked at once.
const SWEEPS_PER_HOLD: u64 = 4;

/// When what is looked at next.
#[derive(Debug)]
pub(crate) struct Schedule {
    /// Nothing is due before this.
    due: Nanos,
    next_scan: Nanos,
    scan_cursor: usize,
    /// When loss was looked for last.
    last_blame: Nanos,
    /// How long this endpoint has not run while it should have: its own absence is nobody's
    /// silence.
    absent: Nanos,
    /// When something is due for the first of the large messages on their way.
    transfers: Nanos,
    next_sweep: Nanos,
    sweep_cursor: usize,
    /// This round of the sweep has seen a held response.
    sweep_found: bool,
}

impl Schedule {
    pub(crate) fn new() -> Self {
        Self {
            due: Nanos::MAX,
            next_scan: Nanos::MAX,
            scan_cursor: 0,
            last_blame: Nanos::ZERO,
            absent: Nanos::ZERO,
            transfers: Nanos::MAX,
            next_sweep: Nanos::MAX,
            sweep_cursor: 0,
            sweep_found: false,
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

    /// Something is due for a large message at `due`.
    pub(crate) fn on_transfer(&mut self, due: Nanos) {
        self.transfers = self.transfers.min(due);
        self.at_latest(due);
    }

    /// Nothing is due for any large message before `due`.
    pub(crate) fn set_transfers(&mut self, due: Nanos) {
        self.transfers = due;
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
    /// A time on a clock that stands still while this endpoint does not run. Silence is measured
    /// on it (rule S11).
    #[inline]
    pub(crate) fn present(&self, at: Nanos) -> Nanos {
        at.since(self.schedule.absent)
    }

    /// Does everything that is due, except the user's timers, which the loop delivers before it
    /// finds out what is due next.
    /// `queue_empty`: the RX queue was seen empty, so what has not arrived is not merely waiting.
    #[inline(never)]
    pub(crate) fn on_time(&mut self, queue_empty: bool) {
        let expected = self.schedule.next_scan.min(self.schedule.transfers);
        let late = self.now.since(expected);
        if late > self.config.scan_interval.times(AWAY_INTERVALS) {
            self.schedule.absent += late;
        }
        self.acknowledge_due();
        self.release_paced();
        if self.schedule.next_scan <= self.now {
            self.scan_calls(queue_empty);
        }
        if self.schedule.next_sweep <= self.now {
            self.sweep_responses();
        }
        if self.schedule.transfers <= self.now {
            let late = self.now.since(self.schedule.transfers);
            let patience = self.config.scan_interval.times(PATIENT_INTERVALS);
            self.check_transfers(queue_empty || late >= patience);
        }
    }

    /// Finds out what is due next.
    #[inline(never)]
    pub(crate) fn find_due(&mut self) {
        let acks = self.ack_due.front().map_or(Nanos::MAX, |(at, _)| *at);
        self.schedule.due = self
            .schedule
            .next_scan
            .min(self.schedule.next_sweep)
            .min(acks)
            .min(self.schedule.transfers)
            .min(self.timers.next_due())
            .min(self.wheel.next_due());
    }

    /// Looks at the pending calls, and finds out when they must be looked at again.
    fn scan_calls(&mut self, queue_empty: bool) {
        let interval = self.config.scan_interval;
        // A queue that is never empty must not excuse a lost packet for ever.
        let patience = interval.times(PATIENT_INTERVALS);
        let blame = queue_empty || self.now.since(self.schedule.last_blame) >= patience;
        if blame {
            self.schedule.last_blame = self.now;
        }
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
            due = due.min(self.check_call(idx, blame));
        }
        self.schedule.scan_cursor = (start + count) % len.max(1);
        let soonest = self.now + interval;
        self.schedule.next_scan = match self.calls.live() {
            0 => Nanos::MAX,
            _ if count == len => due.max(soonest),
            _ => soonest,
        };
    }

    /// Does what is due for one call; returns when it must be looked at again.
    fn check_call(&mut self, idx: CallIdx, blame: bool) -> Nanos {
        let call = self.calls.at(idx);
        match call.state {
            CallState::Free => Nanos::MAX,
            state if state.is_pending() && call.deadline <= self.now => {
                self.abort(idx, RpcError::DeadlinePassed);
                self.now
            }
            CallState::Queued | CallState::Sending | CallState::Receiving => call.deadline,
            _ if blame => self.check_sent(idx),
            _ => self.now,
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
        grown.min(self.config.longest_backoff().max(timeout))
    }

    /// The peer has not sent anything for the failure timeout, although it was asked several
    /// times while this endpoint was running (rule S11).
    pub(crate) fn is_silent(&self, idx: CallIdx) -> bool {
        let call = self.calls.at(idx);
        let heard = self.sessions.at(call.session).heard;
        let silence = self.present(self.now).since(heard.max(call.first_sent));
        call.attempts >= MIN_ATTEMPTS && silence >= self.config.failure_timeout
    }

    /// There is a response that must be given back some time.
    #[inline]
    pub(crate) fn expect_sweep(&mut self) {
        if self.schedule.next_sweep == Nanos::MAX {
            self.schedule.next_sweep = self.now + self.sweep_interval();
            self.schedule.at_latest(self.schedule.next_sweep);
        }
    }

    /// In how many parts the held responses are swept: few if they are few.
    fn sweep_parts(&self) -> usize {
        self.works.len().div_ceil(SWEEP_LIMIT).clamp(1, SWEEP_PARTS)
    }

    fn sweep_interval(&self) -> Nanos {
        let round = self.config.response_hold.0 / SWEEPS_PER_HOLD;
        Nanos((round / self.sweep_parts() as u64).max(1))
    }

    /// Gives back one part of the responses that were held for long enough (rule S9).
    fn sweep_responses(&mut self) {
        let len = self.works.len();
        let start = self.schedule.sweep_cursor;
        let end = (start + len.div_ceil(self.sweep_parts())).min(len);
        for index in start..end {
            self.sweep(WorkIdx(u32::try_from(index).unwrap_or(u32::MAX)));
        }
        let round_over = end >= len;
        let rest = round_over && !self.schedule.sweep_found;
        if round_over {
            self.schedule.sweep_found = false;
        }
        self.schedule.sweep_cursor = if round_over { 0 } else { end };
        self.schedule.next_sweep = match rest {
            true => Nanos::MAX,
            false => self.now + self.sweep_interval(),
        };
    }

    fn sweep(&mut self, idx: WorkIdx) {
        let work = self.works.at(idx);
        let held = self.now.since(work.answered) >= self.config.response_hold;
        #[cfg(feature = "mutants")]
        if held
            && self.shows(crate::mutant::Mutant::TimerAfterCompletion)
            && work.state == WorkState::Detached
            && !work.orphan
            && work.answered != Nanos::ZERO
        {
            return self.free_work(idx);
        }
        match work.state {
            WorkState::Done if held => self.free_work(idx),
            WorkState::Receiving if held => {
                // The sender has stopped; what it is told must be given back in its turn.
                self.give_up(idx);
                self.reject(idx, ErrorCode::OVERLOADED);
                self.schedule.sweep_found = true;
            }
            WorkState::Done | WorkState::Receiving => self.schedule.sweep_found = true,
            WorkState::Free | WorkState::Dispatched | WorkState::Detached => {}
        }
    }
}
