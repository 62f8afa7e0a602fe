//! The failure detector of one control connection (rules C7 and C8, design §6).
//!
//! A heartbeat is sent every `interval`; its acknowledgement proves that both directions and both
//! processes work. If nothing sent within the last `silence` was acknowledged, the peer has
//! failed. So loss in one direction is seen at both ends.
//!
//! Silence is counted in *witnessed* time: if this process was stopped, the acknowledgements may
//! not have been asked for, and the time away says nothing about the peer. Between two calls of
//! [`Detector::poll`] no more than half of the silence that is allowed is believed; a longer time
//! counts as one interval, and the first of them in a silence leaves the peer a full round to
//! prove itself. The grace is given once until the peer is heard, so a process that is always late
//! still finds its dead peers.
//!
//! Called by `link.rs`.

use dunlin_core::Nanos;

/// How fast a failed peer is found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HeartbeatConfig {
    /// Time from a peer's failure until its sessions fail, at the latest.
    pub timeout: Nanos,
    /// Heartbeats within that time. Fewer cost less; more tolerate a slower peer.
    pub beats: u32,
}

impl Default for HeartbeatConfig {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl HeartbeatConfig {
    /// One second, ten heartbeats.
    pub const DEFAULT: Self = Self {
        timeout: Nanos::from_secs(1),
        beats: 10,
    };

    /// Time between two heartbeats.
    pub fn interval(&self) -> Nanos {
        Nanos((self.timeout.0 / u64::from(self.beats.max(MIN_BEATS))).max(MIN_INTERVAL.0))
    }

    /// Unproven time after which the peer has failed: seven tenths of the time-out. The rest is
    /// left for a control thread that is scheduled late, and for the events to its endpoints.
    fn silence(&self) -> Nanos {
        Nanos((self.timeout.0 / 10).saturating_mul(7)).max(self.interval().times(2))
    }
}

/// Two heartbeats are under way at most when a round trip takes less than an interval; a third one
/// is the margin.
const MIN_BEATS: u32 = 4;

/// The least interval: a shorter one in the configuration counts as this.
const MIN_INTERVAL: Nanos = Nanos::from_micros(100);

/// The answer of [`Detector::poll`]: what its caller must do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Nothing to do before [`Detector::next_wakeup`].
    Quiet,
    /// Send a heartbeat with this counter.
    Send(u64),
    /// The peer has failed.
    Failed,
}

/// An acknowledgement of a heartbeat that was never sent, or one that came twice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WrongAck;

/// The state of the detector. Times with `_w` are witnessed time since its start.
#[derive(Clone, Debug)]
pub struct Detector {
    interval: Nanos,
    silence: Nanos,
    polled: Nanos,
    witnessed_w: Nanos,
    /// The peer proved that it lived at this time.
    proven_w: Nanos,
    grace_given: bool,
    next_beat: Nanos,
    sent: u64,
    acked: u64,
    /// When heartbeat `n` was sent, at `n` modulo the length.
    sent_w: [Nanos; REMEMBERED],
}

/// Heartbeats whose times are remembered; older ones count as sent when the oldest of these was.
const REMEMBERED: usize = 16;

impl Detector {
    /// A detector of a peer that has just proved to live.
    pub fn new(config: &HeartbeatConfig, now: Nanos) -> Self {
        Self {
            interval: config.interval(),
            silence: config.silence(),
            polled: now,
            witnessed_w: Nanos::ZERO,
            proven_w: Nanos::ZERO,
            grace_given: false,
            next_beat: now + config.interval(),
            sent: 0,
            acked: 0,
            sent_w: [Nanos::ZERO; REMEMBERED],
        }
    }

    /// The peer acknowledged heartbeat `counter`.
    ///
    /// # Errors
    /// [`WrongAck`] if that heartbeat was not sent or was acknowledged before.
    pub fn on_ack(&mut self, counter: u64) -> Result<(), WrongAck> {
        if counter <= self.acked || counter > self.sent {
            return Err(WrongAck);
        }
        self.acked = counter;
        // Of a heartbeat that is no longer remembered the place holds a later one's time. It was
        // silent for so long that the peer has been declared failed long before.
        let proof = self.sent_w[Self::place(counter)];
        self.proven_w = self.proven_w.max(proof);
        self.grace_given = false;
        Ok(())
    }

    /// The verdict of this moment. To be called at [`Detector::next_wakeup`], after everything that
    /// has come was read; calling it more often does no harm.
    pub fn poll(&mut self, now: Nanos) -> Verdict {
        let elapsed = now.since(self.polled);
        self.polled = self.polled.max(now);
        if elapsed.times(2) <= self.silence {
            self.witnessed_w += elapsed;
        } else {
            self.witnessed_w += self.interval;
            if !self.grace_given {
                self.grace_given = true;
                let round = self.interval.times(2);
                let latest = (self.witnessed_w + round).since(self.silence);
                self.proven_w = self.proven_w.max(latest);
            }
        }
        if self.witnessed_w.since(self.proven_w) >= self.silence {
            return Verdict::Failed;
        }
        if now < self.next_beat {
            return Verdict::Quiet;
        }
        self.next_beat = now + self.interval;
        self.sent += 1;
        self.sent_w[Self::place(self.sent)] = self.witnessed_w;
        Verdict::Send(self.sent)
    }

    /// When [`Detector::poll`] is due.
    pub fn next_wakeup(&self) -> Nanos {
        let left = self.silence.since(self.witnessed_w.since(self.proven_w));
        self.next_beat.min(self.polled + left)
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "a remainder of a small number is small"
    )]
    const fn place(counter: u64) -> usize {
        (counter % REMEMBERED as u64) as usize
    }
}

#[cfg(test)]
mod tests;
