//! The failure detector of one control connection (rules C7 and C8, design §6).
//!
//! A heartbeat is sent every `interval`; its acknowledgement proves that both directions and both
//! processes work. If no heartbeat that was sent within the last `silence` was acknowledged, the
//! peer has failed. So both ends notice loss in one direction.
//!
//! Silence is counted in *witnessed* time: a process that is stopped may not have sent heartbeats,
//! so the time while it is stopped shows nothing about the peer. If more than half of `silence`
//! passes between two calls of [`Detector::poll`], this process was probably stopped: the time
//! counts as one interval, and the peer gets at least two more intervals to acknowledge. It gets
//! them only once between two acknowledgements, so a process that is always late still detects dead
//! peers.
//!
//! Called by `link.rs`.

use std::collections::VecDeque;

use dunlin_core::{Nanos, Rng};

/// How fast the detector finds a failed peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HeartbeatConfig {
    /// The longest time from a peer's failure until its sessions fail.
    pub timeout: Nanos,
    /// Number of heartbeats within `timeout`. More heartbeats cost more, but tolerate a slower
    /// peer.
    pub beats: u32,
}

impl Default for HeartbeatConfig {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl HeartbeatConfig {
    /// One second and ten heartbeats.
    pub const DEFAULT: Self = Self {
        timeout: Nanos::from_secs(1),
        beats: 10,
    };

    /// Time between two heartbeats.
    pub fn interval(&self) -> Nanos {
        Nanos((self.timeout.0 / u64::from(self.beats.max(MIN_BEATS))).max(MIN_INTERVAL.0))
    }

    /// The silence after which the peer has failed: seven tenths of the timeout. The rest allows
    /// for a control thread that is scheduled late, and for passing the events to the endpoints.
    fn silence(&self) -> Nanos {
        Nanos((self.timeout.0 / 10).saturating_mul(7)).max(self.interval().times(2))
    }
}

/// The minimum number of heartbeats within a timeout; a silence then has 2.8 intervals. While a
/// round trip takes less than an interval, at most two heartbeats are unacknowledged; the rest is
/// the margin.
const MIN_BEATS: u32 = 4;

/// The shortest interval, which replaces a shorter one in the configuration.
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

/// A wrong acknowledgement: of a heartbeat that was never sent, or one that comes twice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WrongAck;

/// The state of the detector. Times with `_w` are in witnessed time since its start.
#[derive(Clone, Debug)]
pub struct Detector {
    interval: Nanos,
    silence: Nanos,
    polled: Nanos,
    witnessed_w: Nanos,
    /// When the peer last proved that it was alive.
    proven_w: Nanos,
    grace_given: bool,
    next_beat: Nanos,
    secret: Secret,
    /// Heartbeats sent so far.
    sent: u64,
    /// Counters of the heartbeats that the peer may still acknowledge, and when each was sent,
    /// oldest first. Never more than the heartbeats of one silence, after which the peer has
    /// failed.
    asked_w: VecDeque<(u64, Nanos)>,
}

/// The source of the counters of one connection's heartbeats; each connection draws its own.
#[derive(Clone, Copy, Debug)]
pub struct Secret(pub [u64; 2]);

impl Secret {
    /// The counter of the `n`th heartbeat. A peer cannot compute it from other counters that it has
    /// read, so it cannot acknowledge a heartbeat that it has not read (rule C7).
    const fn counter(self, n: u64) -> u64 {
        let inner = Rng::new(self.0[0].wrapping_add(n)).next_u64();
        Rng::new(inner ^ self.0[1]).next_u64()
    }
}

impl Detector {
    /// A detector for a peer that has just proved that it is alive.
    pub fn new(config: &HeartbeatConfig, secret: Secret, now: Nanos) -> Self {
        Self {
            interval: config.interval(),
            silence: config.silence(),
            polled: now,
            witnessed_w: Nanos::ZERO,
            proven_w: Nanos::ZERO,
            grace_given: false,
            next_beat: now + config.interval(),
            secret,
            sent: 0,
            asked_w: VecDeque::new(),
        }
    }

    /// Takes the acknowledgement of heartbeat `counter`: the peer has read it and all before it.
    ///
    /// # Errors
    /// [`WrongAck`] if that heartbeat was never sent, or if it, or a later heartbeat, has already
    /// been acknowledged.
    pub fn on_ack(&mut self, counter: u64) -> Result<(), WrongAck> {
        let mut asked = self.asked_w.iter();
        let place = asked.position(|(asked, _)| *asked == counter);
        let mut before = self.asked_w.drain(..=place.ok_or(WrongAck)?);
        let proof = before.next_back().map_or(Nanos::ZERO, |(_, sent_w)| sent_w);
        self.proven_w = self.proven_w.max(proof);
        self.grace_given = false;
        Ok(())
    }

    /// Returns the verdict at `now`. The caller calls it at [`Detector::next_wakeup`], after it has
    /// read all received messages; more calls do no harm.
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
        self.beat(now).map_or(Verdict::Quiet, Verdict::Send)
    }

    /// The counter of the heartbeat that is due. Unlike [`Detector::poll`], this does not judge the
    /// peer, so the caller may call it before it has read all received messages. So a process with
    /// much to read still shows its peers that it is alive.
    pub fn beat(&mut self, now: Nanos) -> Option<u64> {
        if now < self.next_beat {
            return None;
        }
        self.next_beat = now + self.interval;
        self.sent += 1;
        let counter = self.secret.counter(self.sent);
        // `witnessed_w` is the time of the last poll. So an acknowledgement may prove a time before
        // the heartbeat, but never a later one.
        self.asked_w.push_back((counter, self.witnessed_w));
        Some(counter)
    }

    /// When [`Detector::poll`] is due.
    pub fn next_wakeup(&self) -> Nanos {
        let left = self.silence.since(self.witnessed_w.since(self.proven_w));
        self.next_beat.min(self.polled + left)
    }
}

#[cfg(test)]
mod tests;
