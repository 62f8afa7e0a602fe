//! DCQCN: the rate falls with the share of marked packets and recovers in steps (DCQCN, SIGCOMM
//! 2015, §3.1). Answers carry the marks (rule W6); the paper has separate packets for them, CNPs.
//!
//! Invariant: least ≤ rate ≤ line rate, and rate ≤ target except in the last step to the line rate.
//! No timer is needed: with each answer, and before a packet is paced, the scheme makes the steps
//! that timers make in the paper.

use super::constants::LEAST_RATE_DIVISOR;
use super::constants::dcqcn::{
    ALPHA_TIMER, BYTE_COUNTER, CNP_INTERVAL, FAST_STEPS, G, HYPER_STEPS, RATE_TIMER, STEP,
    TIMEOUT_CUT,
};
use super::{CongestionControl, Link, Sample};
use crate::scheme::BytesPerSec;
use crate::time::Nanos;

/// The maximum number of missed timer steps that one call makes. By then, the rate has doubled or
/// is the line rate.
const MOST_STEPS: u64 = 1 << 12;

/// One session's state.
#[derive(Clone, Debug)]
pub(crate) struct Dcqcn {
    line: f64,
    /// R_C, the current rate.
    rate: f64,
    /// R_T, the rate to which fast recovery returns.
    target: f64,
    /// α: how congested the network is, from 0 to 1.
    alpha: f64,
    packet: u64,
    /// The last measured round trip.
    rtt: Nanos,
    /// The time of the last decrease; `marked` is the time of the last mark that counted.
    decreased: Nanos,
    marked: Nanos,
    /// When α falls next, if no mark comes.
    alpha_due: Nanos,
    /// When the timer makes the next step.
    step_due: Nanos,
    /// Steps of the timer since the last decrease; `by_bytes` counts the steps of the byte counter.
    by_time: u32,
    by_bytes: u32,
    /// Bytes since the last step of the byte counter.
    bytes: u64,
    /// An answer without a mark came since the last step of the timer.
    clear: bool,
}

impl Dcqcn {
    /// A new session: it sends at line rate until a mark comes.
    pub(crate) fn new(link: &Link) -> Self {
        let line = link.line_rate.as_f64();
        Self {
            line,
            rate: line,
            target: line,
            alpha: 1.0,
            packet: u64::from(link.packet),
            rtt: Nanos::ZERO,
            decreased: Nanos::ZERO,
            marked: Nanos::ZERO,
            alpha_due: Nanos::MAX,
            step_due: Nanos::MAX,
            by_time: 0,
            by_bytes: 0,
            bytes: 0,
            clear: false,
        }
    }

    /// Takes a mark (the paper's "CNP"): equation 1. For one round trip after a decrease, marks
    /// still result from the earlier rate, so they count only for α.
    fn on_mark(&mut self, now: Nanos) {
        let first = self.alpha_due == Nanos::MAX;
        if !first && now.since(self.marked) < CNP_INTERVAL {
            return;
        }
        if first || now.since(self.decreased) >= self.rtt {
            self.begin_recovery(self.alpha / 2.0, now);
            self.decreased = now;
        } else {
            self.clear = false;
        }
        self.alpha += G * (1.0 - self.alpha);
        self.marked = now;
        self.alpha_due = now + ALPHA_TIMER;
    }

    /// Lowers the rate, which from now on recovers to its old value and beyond.
    fn begin_recovery(&mut self, part: f64, now: Nanos) {
        self.target = self.rate;
        self.cut(part);
        self.step_due = now + RATE_TIMER;
        (self.by_time, self.by_bytes, self.bytes) = (0, 0, 0);
        self.clear = false;
    }

    fn cut(&mut self, part: f64) {
        self.rate = (self.rate * (1.0 - part)).max(self.line / LEAST_RATE_DIVISOR);
    }

    /// Makes the timer's steps that are due. A sender whose packets are further apart than the
    /// timer's period makes the steps that it has missed, but stops when its rate has doubled. With
    /// one step per packet, the sender would stay at the least rate; with all missed steps at once,
    /// a sender that shares the link with a thousand others would exceed its share.
    fn catch_up(&mut self, now: Nanos) {
        let doubled = 2.0 * self.rate;
        let missed = now.since(self.step_due).0 / RATE_TIMER.0;
        for _ in 0..missed.clamp(1, MOST_STEPS) {
            self.by_time = self.by_time.saturating_add(1);
            self.step();
            if self.rate >= doubled {
                return;
            }
        }
    }

    /// Makes one step of the increase: fast recovery, then additive, then hyper (§3.1, Figure 7).
    fn step(&mut self) {
        let (least, most) = (
            self.by_time.min(self.by_bytes),
            self.by_time.max(self.by_bytes),
        );
        let steps = match (least > FAST_STEPS, most > FAST_STEPS) {
            (true, _) => HYPER_STEPS * f64::from(least - FAST_STEPS),
            (false, true) => 1.0,
            (false, false) => 0.0,
        };
        self.target = (self.target + steps * STEP * self.line).min(self.line);
        self.rate = f64::midpoint(self.rate, self.target);
        // Steps that halve the distance never reach the target.
        if self.line - self.rate < STEP * self.line {
            self.rate = self.line;
        }
    }
}

impl CongestionControl for Dcqcn {
    fn on_answer(&mut self, sample: Sample) {
        self.on_time(sample.now);
        self.rtt = sample.rtt.unwrap_or(self.rtt);
        if sample.congestion {
            return self.on_mark(sample.now);
        }
        self.clear = true;
        self.bytes += u64::from(sample.packets) * self.packet;
        while self.bytes >= BYTE_COUNTER && self.rate < self.line {
            self.bytes -= BYTE_COUNTER;
            self.by_bytes += 1;
            self.step();
        }
    }

    fn on_timeout(&mut self, now: Nanos) {
        self.begin_recovery(TIMEOUT_CUT, now);
    }

    fn on_time(&mut self, now: Nanos) {
        let mut steps = 0;
        while self.alpha_due <= now && steps < MOST_STEPS {
            self.alpha *= 1.0 - G;
            self.alpha_due += ALPHA_TIMER;
            steps += 1;
        }
        if self.step_due <= now && self.clear {
            self.clear = false;
            self.catch_up(now);
            self.step_due = now + RATE_TIMER;
        }
    }

    fn rate(&self) -> Option<BytesPerSec> {
        (self.rate < self.line).then(|| BytesPerSec::from_f64(self.rate))
    }
}

#[cfg(test)]
mod tests;
