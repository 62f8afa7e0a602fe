//! Timely: the rate follows the gradient of the round trip (TIMELY, SIGCOMM 2015, Algorithm 1; eRPC
//! §5.2). With the patch (Zhu et al., CoNEXT 2016, Algorithm 2), the gradient only weighs a step up
//! against a step down. The step down is a fraction of the rate, and that fraction grows with the
//! round trip. So the two steps are equal at only one rate, which is the same for all senders of a
//! queue.
//!
//! Invariant: the rate is a number between the line rate and its 4096th part. Below line rate, no
//! sample is ignored because it is small. eRPC ignores samples below a constant, so on a faster
//! fabric its sessions never return to line rate.

use super::constants::LEAST_RATE_DIVISOR;
use super::constants::patched_timely;
use super::constants::timely::{
    ALPHA, BETA, CROWDED_FROM, EMPTY_BELOW, HYPER_AFTER, HYPER_PART, HYPER_STEPS, STEP,
    T_HIGH_IN_T_LOW, T_LOW, T_LOW_ROUND_TRIPS, TIMEOUT_CUT,
};
use super::{CongestionControl, Link, Sample};
use crate::scheme::BytesPerSec;
use crate::time::Nanos;

/// The paper whose rule applies between T_low and T_high.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Law {
    /// TIMELY: up or down, by the sign of the gradient.
    Gradient,
    /// Patched TIMELY: up and down, weighed by the gradient.
    Patched,
}

/// One session's state.
#[derive(Clone, Debug)]
pub(crate) struct Timely {
    law: Law,
    line: f64,
    rate: f64,
    /// The smallest round trip that was seen or declared; zero before there is one.
    least: Nanos,
    t_low: Nanos,
    /// The gradient matters only for round trips of at least this length; below it, the rate grows.
    crowded: Nanos,
    previous: Nanos,
    /// Smoothed difference of successive round trips in nanoseconds.
    difference: f64,
    /// Number of round trips in a row that were short or did not rise.
    good: u32,
    updated: Nanos,
    /// A session at line rate ignores short round trips (eRPC §5.2.2).
    bypass: bool,
}

impl Timely {
    /// A new session: it sends at line rate until it has a sample.
    pub(crate) fn new(link: &Link, law: Law, bypass: bool) -> Self {
        let mut timely = Self {
            law,
            line: link.line_rate.as_f64(),
            rate: link.line_rate.as_f64(),
            least: link.base_rtt,
            t_low: T_LOW,
            crowded: T_LOW,
            previous: Nanos::ZERO,
            difference: 0.0,
            good: 0,
            updated: Nanos::ZERO,
            bypass,
        };
        timely.set_t_low();
        timely
    }

    /// Switches the Timely bypass of a running session.
    pub(crate) fn on_bypasses(&mut self, bypass: bool) {
        self.bypass = bypass;
    }

    fn set_t_low(&mut self) {
        self.t_low = T_LOW.max(self.least.times(T_LOW_ROUND_TRIPS));
        self.crowded = match self.law {
            Law::Gradient => Nanos(self.t_low.0 / CROWDED_FROM.1 * CROWDED_FROM.0),
            Law::Patched => self.t_low,
        };
    }

    #[cold]
    fn on_least(&mut self, rtt: Nanos) {
        self.least = rtt;
        self.set_t_low();
    }

    /// Makes one step of Algorithm 1, at most once per round trip: in the paper a sample covers a
    /// segment of 16 KB or more, here one packet.
    fn update(&mut self, rtt: Nanos, now: Nanos) {
        if now.since(self.updated) < rtt {
            return;
        }
        self.updated = now;
        let previous = std::mem::replace(&mut self.previous, rtt);
        let change = match previous {
            Nanos::ZERO => 0.0,
            _ => rtt.as_f64() - previous.as_f64(),
        };
        self.difference += ALPHA * (change - self.difference);
        let gradient = self.difference / self.least.as_f64().max(1.0);
        let t_high = self.t_low.times(T_HIGH_IN_T_LOW);
        if rtt < self.crowded {
            self.good += 1;
            let is_empty = rtt.as_f64() < EMPTY_BELOW * self.t_low.as_f64();
            let hyper = self.good >= HYPER_AFTER && is_empty;
            self.grow(if hyper { self.rate * HYPER_PART } else { 0.0 });
        } else if rtt > t_high {
            self.good = 0;
            self.shrink(BETA * (1.0 - t_high.as_f64() / rtt.as_f64()));
        } else if self.law == Law::Patched {
            self.good = 0;
            self.weigh(rtt, gradient);
        } else if gradient <= 0.0 {
            self.good += 1;
            self.grow(0.0);
        } else {
            self.good = 0;
            self.shrink(BETA * gradient.min(1.0));
        }
    }

    /// Makes a step up and a step down, each with its weight. The step down grows with the round
    /// trip, so the number of senders determines the queue at which the two are equal.
    fn weigh(&mut self, rtt: Nanos, gradient: f64) {
        let weight = (patched_timely::SLOPE * gradient + 0.5).clamp(0.0, 1.0);
        let error = rtt.as_f64() / self.t_low.as_f64() - 1.0;
        self.shrink(patched_timely::BETA * weight * error);
        self.rate = (self.rate + (1.0 - weight) * STEP * self.line).min(self.line);
    }

    /// Adds the step, or `least` if that is more.
    fn grow(&mut self, least: f64) {
        let steps = if self.good >= HYPER_AFTER {
            HYPER_STEPS
        } else {
            1.0
        };
        self.rate = (self.rate + (steps * STEP * self.line).max(least)).min(self.line);
    }

    fn shrink(&mut self, part: f64) {
        self.rate = (self.rate * (1.0 - part)).max(self.line / LEAST_RATE_DIVISOR);
    }
}

impl CongestionControl for Timely {
    #[inline]
    fn on_answer(&mut self, sample: Sample) {
        let Some(rtt) = sample.rtt else {
            return;
        };
        if rtt < self.least || self.least == Nanos::ZERO {
            self.on_least(rtt);
        }
        if self.bypass && rtt < self.crowded && self.rate >= self.line {
            return;
        }
        self.update(rtt, sample.now);
    }

    fn on_timeout(&mut self, _now: Nanos) {
        self.good = 0;
        self.shrink(TIMEOUT_CUT);
    }

    fn rate(&self) -> Option<BytesPerSec> {
        (self.rate < self.line).then(|| BytesPerSec::from_f64(self.rate))
    }
}

#[cfg(test)]
mod tests;
