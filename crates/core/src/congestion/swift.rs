//! Swift: the window follows a target delay, which is larger for small windows, so that many
//! senders share a link with little queueing (Swift, SIGCOMM 2020, Algorithm 1 and §3.2).
//!
//! A window below one packet is a rate: one packet every RTT / window. Here every window is, so
//! that there is one mechanism and no session sends its window in a burst.
//!
//! Invariant: the window is between 1/64 packet and what the line carries in a round trip.

use super::constants::LEAST_RATE_DIVISOR;
use super::constants::swift::{
    BASE_TARGET, BETA, INCREASE, LEAST_WINDOW, MOST_CUT, RESET_AFTER, SCALING_LEAST, SCALING_MOST,
    SCALING_RANGE,
};
use super::{BytesPerSec, CongestionControl, Link, Sample};
use crate::time::Nanos;

/// One session's state.
#[derive(Clone, Debug)]
pub(crate) struct Swift {
    line: f64,
    packet: f64,
    /// In packets.
    window: f64,
    /// The smallest round trip that was seen or declared; zero before there is one.
    least: Nanos,
    /// The last round trip.
    rtt: Nanos,
    decreased: Nanos,
    timeouts: u32,
    /// The rate that the window means; at most that of the line.
    rate: f64,
}

impl Swift {
    /// At line rate, until something is known.
    pub(crate) fn new(link: &Link) -> Self {
        let line = link.line_rate.as_f64();
        Self {
            line,
            packet: f64::from(link.packet.max(1)),
            window: f64::INFINITY,
            least: link.base_rtt,
            rtt: Nanos::ZERO,
            decreased: Nanos::ZERO,
            timeouts: 0,
            rate: line,
        }
    }

    /// The delay that a window aims at (§3.2).
    fn target(&self, window: f64) -> f64 {
        let range = SCALING_RANGE.as_f64();
        let steepness = range / (SCALING_LEAST.sqrt().recip() - SCALING_MOST.sqrt().recip());
        let scaling = steepness * (window.sqrt().recip() - SCALING_MOST.sqrt().recip());
        self.least.as_f64() + BASE_TARGET.as_f64() + scaling.clamp(0.0, range)
    }

    /// A window above what the line carries in `rtt` would only take time to come down from.
    fn most(&self, rtt: Nanos) -> f64 {
        (self.line * rtt.as_f64() / NANOS / self.packet).max(1.0)
    }

    fn grow(&mut self, packets: u32) {
        let per_packet = if self.window >= 1.0 {
            INCREASE / self.window
        } else {
            INCREASE
        };
        self.window += per_packet * f64::from(packets);
    }

    /// At most once a round trip.
    fn may_decrease(&self, now: Nanos) -> bool {
        now.since(self.decreased) >= self.rtt
    }

    fn decrease(&mut self, part: f64, now: Nanos) {
        self.window *= 1.0 - part.min(MOST_CUT);
        self.decreased = now;
    }

    /// What the window means as a rate.
    fn set_rate(&mut self) {
        self.window = self.window.clamp(LEAST_WINDOW, self.most(self.rtt));
        let rate = self.window * self.packet * NANOS / self.rtt.as_f64().max(1.0);
        self.rate = rate.clamp(self.line / LEAST_RATE_DIVISOR, self.line);
    }
}

const NANOS: f64 = 1e9;

impl CongestionControl for Swift {
    fn on_answer(&mut self, sample: Sample) {
        let Some(rtt) = sample.rtt else {
            return;
        };
        self.rtt = rtt.max(Nanos(1));
        self.timeouts = 0;
        if rtt < self.least || self.least == Nanos::ZERO {
            self.least = rtt;
        }
        self.window = self.window.min(self.most(rtt));
        let (delay, target) = (rtt.as_f64(), self.target(self.window));
        if delay < target {
            self.grow(sample.packets);
        } else if self.may_decrease(sample.now) {
            self.decrease(BETA * (delay - target) / delay, sample.now);
        }
        self.set_rate();
    }

    fn on_loss(&mut self, now: Nanos) {
        if self.may_decrease(now) && self.rtt != Nanos::ZERO {
            self.decrease(MOST_CUT, now);
            self.set_rate();
        }
    }

    fn on_timeout(&mut self, now: Nanos) {
        if self.rtt == Nanos::ZERO {
            return;
        }
        self.timeouts += 1;
        if self.timeouts >= RESET_AFTER {
            self.window = LEAST_WINDOW;
        } else if self.may_decrease(now) {
            self.decrease(MOST_CUT, now);
        }
        self.set_rate();
    }

    fn rate(&self) -> Option<BytesPerSec> {
        (self.rate < self.line).then(|| BytesPerSec::from_f64(self.rate))
    }
}

#[cfg(test)]
mod tests;
