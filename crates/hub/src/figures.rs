//! The figures of a thread's channels that tools show with the counters of its endpoint: sums over
//! all channels, open ones and closed ones. They are added up ten times a second, so a call pays
//! nothing for them.

use dunlin_channel::Counters;

/// The names of the counters.
pub(crate) const COUNTERS: &[&str] = &Counters::NAMES;

/// The names of the gauges.
pub(crate) const GAUGES: &[&str] = &["channels", "channel_sessions", "channel_outstanding"];

#[derive(Debug, Default)]
pub(crate) struct Figures {
    counters: Counters,
    gauges: [u64; GAUGES.len()],
}

impl Figures {
    /// Adds the counts of a channel since the last time.
    pub(crate) fn add(&mut self, more: &Counters) {
        self.counters = self.counters.plus(more);
    }

    /// Notes the open channels, their sessions, and the requests that have not ended.
    pub(crate) fn set(&mut self, channels: usize, sessions: usize, outstanding: usize) {
        self.gauges = [channels, sessions, outstanding].map(|it| it as u64);
    }

    /// Appends all values, in the order of the names.
    pub(crate) fn append_to(&self, out: &mut Vec<u64>) {
        out.extend(self.counters.values());
        out.extend(self.gauges);
    }
}
