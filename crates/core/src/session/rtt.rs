//! Round-trip estimate of a session, and the retransmission timeout that follows from it
//! (rules S8 and S10; RFC 6298 for the smoothing).

use crate::time::Nanos;

/// Smoothed round trip and its variation, in nanoseconds. They take 16 bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rtt {
    smoothed_ns: u32,
    variation_ns: u32,
    /// 0 before the first sample.
    minimum_ns: u32,
    /// The longest recent residence in the server, which decays slowly. A handler that took 10 ms
    /// will probably take 10 ms again; waiting for it is no sign of loss.
    residence_ns: u32,
}

impl Rtt {
    /// Takes one sample, already without the server's residence.
    #[inline]
    pub(crate) fn on_sample(&mut self, sample: Nanos) {
        let sample_ns = stored(sample);
        if self.minimum_ns == 0 {
            // Times that include waits for a thread may be stored here; they are less reliable.
            self.smoothed_ns = 0;
            self.minimum_ns = sample_ns;
        }
        self.smooth(sample_ns);
        self.minimum_ns = self.minimum_ns.min(sample_ns);
    }

    /// Takes the time from a packet to its answer if the residence is unknown, because the packet
    /// may have waited for the peer's thread. Later packets will probably wait too, so the time
    /// counts for timeouts. It does not affect the smallest round trip.
    pub(crate) fn on_wait(&mut self, took: Nanos) {
        self.smooth(stored(took));
    }

    #[inline]
    fn smooth(&mut self, sample_ns: u32) {
        if self.smoothed_ns == 0 {
            self.smoothed_ns = sample_ns;
            self.variation_ns = sample_ns / 2;
            return;
        }
        let deviation = self.smoothed_ns.abs_diff(sample_ns);
        self.variation_ns = self.variation_ns - self.variation_ns / 4 + deviation / 4;
        self.smoothed_ns = (self.smoothed_ns - self.smoothed_ns / 8 + sample_ns / 8).max(1);
    }

    /// Takes an upper bound: a packet that left twice has arrived, so its round trip was at most
    /// this long. A bound can raise the estimate but never lower it. With a higher estimate, the
    /// next packet has time to arrive before it leaves twice and again gives only a bound.
    pub(crate) fn on_bound(&mut self, bound: Nanos) {
        let bound_ns = u32::try_from(bound.0).unwrap_or(u32::MAX >> 4);
        if self.smoothed_ns != 0 {
            let more = bound_ns.saturating_sub(self.smoothed_ns) / 8;
            self.smoothed_ns = self.smoothed_ns.saturating_add(more).min(u32::MAX >> 4);
        }
    }

    /// Remembers how long a request stayed in the server.
    #[inline]
    pub(crate) fn on_residence(&mut self, residence_ns: u64) {
        let forgotten = self.residence_ns - self.residence_ns / 8;
        let residence_ns = u32::try_from(residence_ns).unwrap_or(u32::MAX);
        self.residence_ns = forgotten.max(residence_ns);
    }

    /// Time without an answer after which a request counts as lost.
    #[inline]
    pub(crate) fn timeout(&self, floor: Nanos, initial: Nanos) -> Nanos {
        let stay_ns = match self.smoothed_ns {
            0 => 0,
            _ => self.residence_ns,
        };
        self.measured(floor, initial) + Nanos(u64::from(stay_ns))
    }

    /// The part of the timeout that comes from round trips alone.
    pub(crate) fn measured(&self, floor: Nanos, initial: Nanos) -> Nanos {
        if self.smoothed_ns == 0 {
            return initial.max(floor);
        }
        let measured = Nanos(u64::from(self.smoothed_ns) + 4 * u64::from(self.variation_ns));
        measured.max(floor)
    }

    /// How long an answer may take before the client asks for it: two round trips, or more if round
    /// trips vary. `None` before the first answer that gives a time.
    pub(crate) fn patience(&self) -> Option<Nanos> {
        let (smoothed, variation) = (self.smoothed_ns, self.variation_ns);
        let patience = smoothed
            .max(variation.saturating_mul(4))
            .saturating_add(smoothed);
        (smoothed != 0).then_some(Nanos(u64::from(patience)))
    }

    /// The smoothed round trip, if an answer has given one.
    #[inline]
    pub(crate) fn smoothed(&self) -> Option<Nanos> {
        (self.smoothed_ns != 0).then_some(Nanos(u64::from(self.smoothed_ns)))
    }

    /// The smallest round trip seen, if there was a sample.
    pub(crate) fn minimum(&self) -> Option<Nanos> {
        (self.minimum_ns != 0).then_some(Nanos(u64::from(self.minimum_ns)))
    }
}

/// A time as it is stored. 0 is reserved for "none".
#[inline]
fn stored(time: Nanos) -> u32 {
    u32::try_from(time.0)
        .unwrap_or(u32::MAX)
        .clamp(1, u32::MAX >> 4)
}

/// A session that is not paced asks for a round-trip sample at most this often (rule S10): a sample
/// costs each side another reading of the clock, and the estimate does not need every answer.
pub(crate) const SAMPLE_INTERVAL: Nanos = Nanos::from_micros(10);

/// The shortest time between two samples of a session without congestion control, on an endpoint
/// with `sessions` sessions. Such samples serve only for timeouts.
///
/// A request that asks for a sample, and its answer, leave the common path at both ends. With the
/// shorter interval and millions of RPCs per second, every tenth request would ask. The interval
/// grows with the number of sessions, so that many sessions together ask about as often as eight.
/// Otherwise, an endpoint with thousands of sessions, each used every few milliseconds, would ask
/// with every request. A session in use asks at least once a second.
pub(crate) fn calm_interval(sessions: usize) -> Nanos {
    const ALONE: Nanos = Nanos::from_micros(100);
    const LONGEST: Nanos = Nanos::from_millis(1000);
    let times = (sessions / 8).max(1) as u64;
    Nanos(ALONE.0.saturating_mul(times)).min(LONGEST)
}

/// A sample is dropped if the answer may have come while this endpoint was away for longer than
/// this: the sample would measure the endpoint's own absence (rule S10, design §6).
#[inline]
pub(crate) fn away_limit(rtt: Nanos) -> Nanos {
    Nanos::from_micros(2).max(Nanos(rtt.0 / 8))
}

#[cfg(test)]
mod tests;
