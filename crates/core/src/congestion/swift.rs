//! Swift: the window follows a target delay, which is larger for small windows, so that many
//! senders share a link with little queueing (Swift, SIGCOMM 2020, Algorithm 1 and §3.2).
//!
//! From one packet on a window is a window: what arrives lets the next packet go, and no queue can
//! grow beyond the sum of all windows. Below, it is a rate: one packet in target / window. There a
//! session hears from the network only once a packet, which is many round trips; `constants.rs`
//! says what it does differently for that.
//!
//! Invariant: the window is between 1/64 packet and the session's credits; the rate that it means,
//! between the line rate and its 4096th part.

use super::constants::LEAST_RATE_DIVISOR;
use super::constants::swift::{
    BASE_TARGET, BETA, FIRST_WINDOW, FORESIGHT, INCREASE, LEAST_WINDOW, MOST_CUT, MOST_GROWTH,
    RESET_AFTER, SCALING_LEAST, SCALING_MOST, SCALING_RANGE,
};
use super::{BytesPerSec, CongestionControl, Link, Sample};
use crate::time::Nanos;

/// Nanoseconds of a second.
const NANOS: f64 = 1e9;

/// One session's state.
#[derive(Clone, Debug)]
pub(crate) struct Swift {
    line: f64,
    packet: f64,
    /// In packets.
    window: f64,
    /// The session's credits: a larger window would only take time to come down from.
    most: f64,
    /// The smallest round trip that was seen or declared; zero before there is one.
    least: Nanos,
    /// The last round trip; zero before there is one.
    rtt: Nanos,
    decreased: Nanos,
    /// Nothing has told it to decrease yet.
    starts: bool,
    timeouts: u32,
    /// What the window means in bytes per second.
    rate: f64,
}

impl Swift {
    /// With its first window, and at line rate until something is known.
    pub(crate) fn new(link: &Link) -> Self {
        let line = link.line_rate.as_f64();
        let most = f64::from(link.credits.max(1));
        Self {
            line,
            packet: f64::from(link.packet.max(1)),
            window: FIRST_WINDOW.min(most),
            most,
            starts: true,
            least: link.base_rtt,
            rtt: Nanos::ZERO,
            decreased: Nanos::ZERO,
            timeouts: 0,
            rate: line,
        }
    }

    /// The delay that the window aims at (§3.2).
    fn target(&self) -> f64 {
        let range = SCALING_RANGE.as_f64();
        let (steep, flat) = (SCALING_LEAST.sqrt().recip(), SCALING_MOST.sqrt().recip());
        let scaling = range / (steep - flat) * (self.window.sqrt().recip() - flat);
        self.least.as_f64() + BASE_TARGET.as_f64() + scaling.clamp(0.0, range)
    }

    /// What the delay of the last packet means for the next one.
    fn expected_delay(&self, previous: Nanos) -> f64 {
        let delay = self.rtt.as_f64();
        if self.window >= 1.0 || previous == Nanos::ZERO {
            return delay;
        }
        let slope = delay - previous.as_f64();
        (delay + FORESIGHT * slope).max(self.least.as_f64())
    }

    /// The delay is `part` of the way down from the target to an empty network.
    fn grow(&mut self, packets: u32, part: f64) {
        let by_packet = if self.starts {
            1.0
        } else {
            // As much in the time of the target, however often answers come.
            let share = (self.rtt.as_f64() / self.target()).min(1.0);
            (share * INCREASE / self.window).min(MOST_GROWTH * self.window) * part.min(1.0)
        };
        self.window += by_packet * f64::from(packets);
    }

    /// At most once a round trip.
    fn may_decrease(&self, now: Nanos) -> bool {
        now.since(self.decreased) >= self.rtt
    }

    fn decrease(&mut self, part: f64, now: Nanos) {
        self.starts = false;
        self.window *= 1.0 - part.min(MOST_CUT);
        self.decreased = now;
    }

    /// What the window means as a rate.
    fn set_rate(&mut self) {
        self.window = self.window.clamp(LEAST_WINDOW, self.most);
        let period = match self.window >= 1.0 {
            true => self.rtt.as_f64().max(1.0),
            false => self.target(),
        };
        let rate = self.window * self.packet * NANOS / period;
        self.rate = rate.clamp(self.line / LEAST_RATE_DIVISOR, self.line);
    }
}

impl CongestionControl for Swift {
    fn on_answer(&mut self, sample: Sample) {
        let Some(rtt) = sample.rtt else {
            return;
        };
        let previous = std::mem::replace(&mut self.rtt, rtt.max(Nanos(1)));
        self.timeouts = 0;
        if rtt < self.least || self.least == Nanos::ZERO {
            self.least = rtt;
        }
        let (delay, target) = (self.expected_delay(previous), self.target());
        if delay < target {
            let part = (target - delay) / (target - self.least.as_f64());
            self.grow(sample.packets, part);
        } else if self.may_decrease(sample.now) {
            let excess = (delay - target) / delay;
            self.decrease(BETA * self.window.min(1.0) * excess, sample.now);
        }
        self.set_rate();
    }

    fn window(&self) -> Option<u32> {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is between 1 and the credits"
        )]
        (self.window >= 1.0).then_some(self.window as u32)
    }

    fn on_loss(&mut self, now: Nanos) {
        if self.may_decrease(now) {
            self.decrease(MOST_CUT, now);
            self.set_rate();
        }
    }

    fn on_timeout(&mut self, now: Nanos) {
        self.timeouts += 1;
        if self.rtt == Nanos::ZERO {
            // None of the first packets has arrived.
            self.starts = false;
            self.window = 1.0;
        } else if self.timeouts >= RESET_AFTER {
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
