//! Swift: the window follows a target delay. The target is larger for small shares of the link, so
//! that many senders share the link with little queueing. The idea comes from Swift (SIGCOMM 2020,
//! §3); the steps are ours, and `docs/decisions/congestion-control.md` explains them.
//!
//! A window of one packet or more is a true window: each packet that arrives lets the next one
//! leave, and no queue can grow beyond the sum of all windows. A window of 2.4 packets is 3 packets
//! in some round trips and 2 in the others. A window below one packet also acts as a rate: one
//! packet per target / window, and no second packet while one is in flight. Its session gets only
//! one answer in many round trips, so some of its constants differ (`constants.rs`).
//!
//! Invariant: the window is between 1/64 packet and the session's credits, and the rate that
//! follows from it is between the line rate and its 4096th part.

use super::constants::LEAST_RATE_DIVISOR;
use super::constants::swift::{
    BETA, EAGER_FROM, EMPTY_BELOW, EMPTY_GAIN, FAR_ABOVE, FIRST_WINDOW, FORESIGHT, GAIN,
    LEAST_LOSS_CUT, LEAST_WINDOW, MOST_CUT, MOST_STEP, QUEUE, RESET_AFTER, SLACK, SMALL_GAIN,
    SMALL_QUEUE, START_UNTIL, STEEP_UNTIL, TURN,
};
use super::{CongestionControl, Link, Sample};
use crate::scheme::BytesPerSec;
use crate::time::Nanos;

/// Nanoseconds of a second.
const NANOS: f64 = 1e9;

/// One session's state.
#[derive(Clone, Debug)]
pub(crate) struct Swift {
    line: f64,
    packet: f64,
    /// The window in packets.
    window: f64,
    /// The session's credits. A larger window would not send more, but take longer to shrink.
    most: f64,
    /// The smallest round trip that was seen or declared; zero before there is one.
    least: Nanos,
    /// The last round trip; zero before there is one.
    rtt: Nanos,
    decreased: Nanos,
    /// Nanoseconds by which a round trip may exceed the smallest one without indicating a queue.
    slack: f64,
    /// A number from 0 to 1 that is added to the window before rounding down. It changes in each
    /// round trip.
    rounding: f64,
    turned: Nanos,
    /// Nothing has made the window decrease yet.
    starts: bool,
    /// Packets that have arrived since the last sample without a sample of their own: of the
    /// packets that one RFR asks for, only the last is measured.
    unmeasured: u32,
    timeouts: u32,
    /// The window, and whether the session was starting, before the current silence. Restoring it
    /// undoes only steps that silence alone has caused.
    before_silence: Option<(f64, bool)>,
    /// The window as a rate in bytes per second.
    rate: f64,
}

impl Swift {
    /// A new session: it has the first window, and sends at line rate until it has a sample.
    pub(crate) fn new(link: &Link) -> Self {
        let line = link.line_rate.as_f64();
        let most = f64::from(link.credits.max(1));
        Self {
            line,
            packet: f64::from(link.packet.max(1)),
            window: FIRST_WINDOW.min(most),
            most,
            slack: match link.base_rtt {
                Nanos::ZERO => SLACK.as_f64(),
                _ => 0.0,
            },
            rounding: f64::from(link.dither) / f64::from(u32::MAX),
            turned: Nanos::ZERO,
            starts: true,
            unmeasured: 0,
            least: link.base_rtt,
            rtt: Nanos::ZERO,
            decreased: Nanos::ZERO,
            timeouts: 0,
            before_silence: None,
            rate: line,
        }
    }

    /// The delay that the window aims at. It assumes that all senders on the link have the same
    /// window.
    fn target(&self) -> f64 {
        let packet = self.packet / self.line * NANOS;
        let round_trip = self.rtt.as_f64() / packet;
        let senders = (round_trip / self.window.max(1.0)).max(1.0);
        let some = senders.min(STEEP_UNTIL);
        // To the power of 3/4 up to `STEEP_UNTIL`, and to the power of 1/4 beyond.
        let mut queue = QUEUE * some / some.sqrt().sqrt();
        queue *= (senders / some).sqrt().sqrt();
        queue += SMALL_QUEUE * (self.window.min(1.0).sqrt().recip() - 1.0);
        self.least.as_f64() + self.slack + queue * packet
    }

    /// The delay that the next packet will meet, extrapolated from the last two.
    fn expected_delay(&self, previous: Nanos) -> f64 {
        let delay = self.rtt.as_f64();
        if self.window >= 1.0 || previous == Nanos::ZERO {
            return delay;
        }
        let slope = delay - previous.as_f64();
        (delay + FORESIGHT * slope).max(self.least.as_f64())
    }

    /// Moves the window towards the value at which a sample shows the target delay. `packets` have
    /// arrived since the last sample.
    fn adjust(&mut self, packets: u32, now: Nanos, previous: Nanos) {
        let (delay, target) = (self.expected_delay(previous), self.target());
        let least = self.least.as_f64();
        let part = (delay - least) / (target - least);
        // More packets than a window span more than one round trip.
        let packets = f64::from(packets).min(self.window.max(1.0));
        let rtt = self.rtt.as_f64();
        let gap = (target / delay - 1.0).clamp(-MOST_STEP, 1.0);
        if self.starts {
            self.starts = part < START_UNTIL;
            self.window += if self.starts { packets } else { 0.0 };
        } else if self.window >= 1.0 {
            let mut step = GAIN * gap;
            if part < EMPTY_BELOW {
                step = step.max(EMPTY_GAIN);
            }
            if step > 0.0 {
                step *= (self.window / EAGER_FROM).min(1.0);
            }
            self.window += packets * step;
        } else if rtt < FAR_ABOVE * target {
            self.window += SMALL_GAIN * self.window.sqrt() * gap;
        } else if self.may_decrease(now) {
            self.decrease(BETA * (1.0 - target / rtt), now);
        }
    }

    /// Whether the window may decrease: at most once a round trip.
    fn may_decrease(&self, now: Nanos) -> bool {
        now.since(self.decreased) >= self.rtt
    }

    fn decrease(&mut self, part: f64, now: Nanos) {
        self.starts = false;
        self.window *= 1.0 - part.min(MOST_CUT);
        self.decreased = now;
    }

    /// Saves the window, in case a thread that does not run is the cause of the silence.
    fn note_silence(&mut self) {
        let now = (self.window, self.starts);
        self.before_silence.get_or_insert(now);
    }

    /// The window as a rate.
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
        if sample.packets != 0 {
            self.before_silence = None;
        }
        let packets = self.unmeasured.saturating_add(sample.packets);
        let Some(rtt) = sample.rtt else {
            self.unmeasured = packets;
            return;
        };
        self.unmeasured = 0;
        let previous = std::mem::replace(&mut self.rtt, rtt.max(Nanos(1)));
        self.timeouts = 0;
        if rtt < self.least || self.least == Nanos::ZERO {
            self.least = rtt;
        }
        if sample.now.since(self.turned) >= rtt {
            self.turned = sample.now;
            self.rounding = (self.rounding + TURN).fract();
        }
        self.adjust(packets, sample.now, previous);
        self.set_rate();
    }

    /// Undoes the effect of silence. Without round trips, the window grows as at the start until
    /// the first loss, and a window below one packet grows as in an empty network. A larger window
    /// stays, because nothing shows whether there is a queue.
    fn on_wait(&mut self, packets: u32) {
        self.timeouts = 0;
        if let Some((window, starts)) = self.before_silence.take() {
            (self.window, self.starts) = (self.window.max(window), starts);
        }
        if self.starts {
            self.window += f64::from(packets);
        } else if self.window < 1.0 {
            self.window += SMALL_GAIN * self.window.sqrt();
        }
        self.set_rate();
    }

    fn window(&self) -> Option<u32> {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is between 0 and the credits"
        )]
        let packets = (self.window + self.rounding).min(self.most) as u32;
        Some(if self.window >= 1.0 { packets } else { 0 })
    }

    /// While the queue is short, a loss costs less, because no queue has overflowed.
    fn on_loss(&mut self, now: Nanos) {
        if self.window < 1.0 {
            // The only packet in flight has not been answered.
            self.note_silence();
        }
        if self.may_decrease(now) {
            let least = self.least.as_f64();
            let part = (self.rtt.as_f64() - least) / (self.target() - least);
            self.decrease(MOST_CUT * part.clamp(LEAST_LOSS_CUT, 1.0), now);
            self.set_rate();
        }
    }

    fn on_timeout(&mut self, now: Nanos) {
        self.note_silence();
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
