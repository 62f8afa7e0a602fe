//! The agenda: which work is due at which time, and whether anything waits for the loop at all
//! (rules S4, S8, S9).
//!
//! No packet and no call has a timer entry. The agenda knows when the endpoint must look at calls,
//! held responses and large messages next; `protocol/timeouts.rs` does so. An endpoint without
//! calls and held responses has no work due and does not wake up.
//!
//! Invariant: `due` is never later than the earliest entry.

use std::collections::VecDeque;

use crate::context::user_timers::UserTimers;
use crate::handle::{RequestId, SessionIdx, TimerToken};
use crate::time::Nanos;

/// If the RX queue is not empty, the missing answers may be in it. That excuses every peer, for at
/// most this number of intervals.
const PATIENT_INTERVALS: u64 = 4;
/// If a scan is late by more than this number of intervals, the endpoint was away. No peer is
/// blamed for that time.
const AWAY_INTERVALS: u64 = 8;
/// Entries for which `acks` has room from the start, one for each request that outlives its handler
/// within one `ack_delay`. The number of such requests varies, and a queue with less room would
/// allocate when it rises.
const ACKS_DUE: usize = 256;

/// The times at which the endpoint next looks at each kind of state.
#[derive(Debug)]
pub(crate) struct Agenda {
    /// No work is due before this time.
    due: Nanos,
    next_scan: Nanos,
    /// A call that begins before this time must be noted: it needs a scan earlier than `next_scan`,
    /// or begins between two iterations.
    calls_from: Nanos,
    scan_cursor: usize,
    /// When scans began to excuse every peer, because answers may wait in the RX queue.
    excused: Option<Nanos>,
    /// When the first of the large messages on their way is due.
    transfers: Nanos,
    /// When packets that clients have asked for may leave (rule S13).
    asked: Nanos,
    next_sweep: Nanos,
    sweep_cursor: usize,
    /// This round of the sweep has seen a request that a later round must visit.
    sweep_found: bool,
    /// An iteration must do more than handle its packets: `attention` is set, or a part outside of
    /// the core waits for the loop.
    alert: bool,
    /// A queue that the loop drains may hold entries.
    attention: bool,
    /// Accepted requests that wait for a worker thread, for their slow handler, or for the next
    /// turn of a batch handler that has not finished them.
    postponed: usize,
    /// Detached requests in order of the time at which they must be acknowledged (rule S4).
    acks: VecDeque<(Nanos, RequestId)>,
    timers: UserTimers,
    /// Sessions to look at before `tx.burst`: a slot or a credit may be free for their backlog.
    stalled: VecDeque<SessionIdx>,
}

impl Agenda {
    pub(crate) fn new() -> Self {
        Self {
            due: Nanos::MAX,
            next_scan: Nanos::MAX,
            calls_from: Nanos::MAX,
            scan_cursor: 0,
            excused: None,
            transfers: Nanos::MAX,
            asked: Nanos::MAX,
            next_sweep: Nanos::MAX,
            sweep_cursor: 0,
            sweep_found: false,
            alert: false,
            attention: false,
            postponed: 0,
            acks: VecDeque::with_capacity(ACKS_DUE),
            timers: UserTimers::default(),
            stalled: VecDeque::new(),
        }
    }

    /// When work is due even if no packet comes in. [`Nanos::MAX`]: never.
    #[inline]
    pub(crate) fn due(&self) -> Nanos {
        self.due
    }

    /// Makes the agenda due no later than `at`.
    #[inline]
    pub(crate) fn at_latest(&mut self, at: Nanos) {
        self.due = self.due.min(at);
    }

    /// Computes when work is next due. `paced`: when the next paced packet may leave.
    #[inline(never)]
    pub(crate) fn find_due(&mut self, paced: Nanos) {
        let acks = self.acks.front().map_or(Nanos::MAX, |(at, _)| *at);
        self.due = self
            .next_scan
            .min(self.next_sweep)
            .min(acks)
            .min(self.transfers)
            .min(self.asked)
            .min(self.timers.next_due())
            .min(paced);
    }

    /// How late this scan is, if so late that the endpoint must have been away.
    pub(crate) fn absence(&self, now: Nanos, interval: Nanos) -> Option<Nanos> {
        let late = now.since(self.next_scan.min(self.transfers));
        (late > interval.times(AWAY_INTERVALS)).then_some(late)
    }
}

/// Queues that the loop drains.
impl Agenda {
    /// Notes that a queue that the loop drains holds entries.
    #[inline]
    pub(crate) fn call_attention(&mut self) {
        self.attention = true;
        self.alert = true;
    }

    /// Whether anything may wait for the loop, apart from due work.
    #[inline(always)]
    pub(crate) fn is_alert(&self) -> bool {
        self.alert
    }

    /// Notes that the loop has looked at everything that may wait for it. `others`: something that
    /// the agenda does not know of still waits.
    pub(crate) fn lower_alert(&mut self, others: bool) {
        self.alert = self.attention || others || self.has_postponed();
    }

    #[inline]
    pub(crate) fn needs_attention(&self) -> bool {
        self.attention
    }

    /// Notes that a request waits for a worker thread or for a later turn of its handler. Until it
    /// comes back, the loop looks for it in each iteration.
    pub(crate) fn on_postponed(&mut self) {
        self.postponed += 1;
        self.call_attention();
    }

    /// Notes that a postponed request has come back: a worker is done with it, or its turn is here.
    pub(crate) fn on_resumed(&mut self) {
        self.postponed -= 1;
    }

    /// Whether postponed requests wait.
    #[inline]
    pub(crate) fn has_postponed(&self) -> bool {
        self.postponed != 0
    }

    /// Notes that the loop has drained the queues. `any_left`: the queue of another part still
    /// holds entries.
    pub(crate) fn on_drained(&mut self, any_left: bool) {
        self.attention = any_left || !self.stalled.is_empty();
    }

    /// Notes that calls of the session's backlog may be able to start.
    #[inline]
    pub(crate) fn on_stalled(&mut self, session: SessionIdx) {
        self.stalled.push_back(session);
        self.call_attention();
    }

    /// Takes out the session that has been in the queue longest.
    pub(crate) fn pop_stalled(&mut self) -> Option<SessionIdx> {
        self.stalled.pop_front()
    }
}

/// Calls, and large messages on their way.
impl Agenda {
    /// Whether a call that begins now must be noted.
    #[inline(always)]
    pub(crate) fn must_note_call(&self, now: Nanos) -> bool {
        now < self.calls_from
    }

    /// Notes a new call: a scan must look at it within one interval. `all`: later calls must be
    /// noted as well.
    pub(crate) fn on_call(&mut self, now: Nanos, interval: Nanos, all: bool) {
        self.scan_within(now, interval);
        self.calls_from = match all {
            true => Nanos::MAX,
            false => self.next_scan.since(interval),
        };
    }

    /// Makes a scan look at the calls within one interval.
    #[inline]
    pub(crate) fn scan_within(&mut self, now: Nanos, interval: Nanos) {
        let scan = now + interval;
        if self.next_scan > scan {
            self.next_scan = scan;
            self.at_latest(scan);
        }
    }

    /// From now on every call must be noted, until one is noted without `all`.
    pub(crate) fn note_calls(&mut self) {
        self.calls_from = Nanos::MAX;
    }

    pub(crate) fn scan_is_due(&self, now: Nanos) -> bool {
        self.next_scan <= now
    }

    /// Whether an unanswered request may count as lost. `queue_empty`: no answer can be waiting in
    /// the RX queue. A queue that is never empty excuses peers only for a while.
    pub(crate) fn may_blame(&mut self, now: Nanos, queue_empty: bool, interval: Nanos) -> bool {
        let patience = interval.times(PATIENT_INTERVALS);
        let since = *self.excused.get_or_insert(now);
        let blame = queue_empty || now.since(since) >= patience;
        if blame {
            self.excused = None;
        }
        blame
    }

    /// The part of `len` entries that the next scan visits: the index of the first, and their
    /// number, at most `limit`.
    pub(crate) fn next_part(&mut self, len: usize, limit: usize) -> (usize, usize) {
        if len <= limit {
            self.scan_cursor = 0;
            return (0, len);
        }
        let start = self.scan_cursor % len;
        self.scan_cursor = (start + limit) % len;
        (start, limit)
    }

    /// Notes that calls were scanned. `live`: the number of all calls; `all`: the scan has visited
    /// all of them. `due`: the earliest time at which a scanned call needs another look; `soonest`:
    /// the next scan is not before this time.
    pub(crate) fn on_scanned(&mut self, live: usize, all: bool, due: Nanos, soonest: Nanos) {
        if live == 0 {
            self.excused = None;
        }
        // The next call sets this again.
        self.calls_from = Nanos::MAX;
        self.next_scan = match live {
            0 => Nanos::MAX,
            _ if all => due.max(soonest),
            _ => soonest,
        };
    }

    /// Makes the next scan due now, if there are calls: they may ask earlier than it has found.
    pub(crate) fn hasten_scan(&mut self, now: Nanos) {
        if self.next_scan != Nanos::MAX {
            self.next_scan = self.next_scan.min(now);
            self.at_latest(now);
        }
    }

    /// Notes that a large message is due at `due`.
    pub(crate) fn on_transfer(&mut self, due: Nanos) {
        self.transfers = self.transfers.min(due);
        self.at_latest(due);
    }

    /// Notes that no large message is due before `due`.
    pub(crate) fn set_transfers(&mut self, due: Nanos) {
        self.transfers = due;
    }

    /// Whether large messages are due, and if so, whether silence may count as loss.
    pub(crate) fn transfers_due(
        &self,
        now: Nanos,
        queue_empty: bool,
        interval: Nanos,
    ) -> Option<bool> {
        let patience = interval.times(PATIENT_INTERVALS);
        let due = self.transfers <= now;
        due.then(|| queue_empty || now.since(self.transfers) >= patience)
    }
}

/// Requests of the peers.
impl Agenda {
    /// Notes that the request must be acknowledged at `at` if its handler has not answered before
    /// (rule S4).
    pub(crate) fn acknowledge_at(&mut self, at: Nanos, request: RequestId) {
        self.acks.push_back((at, request));
        self.at_latest(at);
    }

    /// Forgets the acknowledgement of a request that is answered, if it is the next one.
    pub(crate) fn on_answered(&mut self, request: RequestId) {
        self.acks.pop_front_if(|(_, id)| *id == request);
    }

    /// The next request whose acknowledgement is due.
    pub(crate) fn pop_acknowledgement(&mut self, now: Nanos) -> Option<RequestId> {
        self.acks
            .pop_front_if(|(at, _)| *at <= now)
            .map(|(_, id)| id)
    }

    /// Notes that the packets that clients have asked for may leave at `at`, and not earlier.
    /// [`Nanos::MAX`]: none waits for a time.
    pub(crate) fn send_asked_at(&mut self, at: Nanos) {
        self.asked = at;
        self.at_latest(at);
    }

    /// Makes the loop look at the packets that clients have asked for, if they may leave now.
    pub(crate) fn call_attention_to_asked(&mut self, now: Nanos) {
        if self.asked <= now {
            self.asked = Nanos::MAX;
            self.call_attention();
        }
    }

    /// If the sweep rests, makes it begin after one interval, because it must visit a request.
    #[inline]
    pub(crate) fn expect_sweep(&mut self, interval: impl FnOnce() -> Nanos, now: Nanos) {
        if self.next_sweep == Nanos::MAX {
            self.next_sweep = now + interval();
            self.at_latest(self.next_sweep);
        }
    }

    pub(crate) fn sweep_is_due(&self, now: Nanos) -> bool {
        self.next_sweep <= now
    }

    /// The part of a table of `len` requests that the next sweep visits.
    pub(crate) fn sweep_part(&self, len: usize, parts: usize) -> std::ops::Range<usize> {
        let start = self.sweep_cursor.min(len);
        start..(start + len.div_ceil(parts)).min(len)
    }

    /// Notes that the sweep has seen a request that a later round must visit.
    pub(crate) fn on_held(&mut self) {
        self.sweep_found = true;
    }

    /// Notes that requests up to `end` of `len` were swept. If a whole round has found no request
    /// that a later round must visit, the sweep rests, and this returns true.
    pub(crate) fn on_swept(&mut self, end: usize, len: usize, next: Nanos) -> bool {
        let round_over = end >= len;
        let rest = round_over && !self.sweep_found;
        if round_over {
            self.sweep_found = false;
        }
        self.sweep_cursor = if round_over { 0 } else { end };
        self.next_sweep = if rest { Nanos::MAX } else { next };
        rest
    }
}

/// The user's timers.
impl Agenda {
    pub(crate) fn set_timer(&mut self, at: Nanos, token: TimerToken) {
        self.timers.insert(at, token);
        self.at_latest(at);
    }

    /// The number of timers.
    pub(crate) fn timer_count(&self) -> usize {
        self.timers.len()
    }

    /// The next timer that is due.
    pub(crate) fn pop_timer(&mut self, now: Nanos) -> Option<TimerToken> {
        self.timers.pop_due(now)
    }
}

#[cfg(test)]
mod tests;
