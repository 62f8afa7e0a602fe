//! Progress of a large message: how many packets had arrived when the client last looked, and since
//! when that number has not changed (rule S11). Only a look costs time; arriving packets cost
//! nothing here.
//!
//! Called by `transfer/scoreboard.rs`.

use crate::time::Nanos;

/// The progress at the last look.
#[derive(Clone, Copy, Debug)]
pub(super) struct Progress {
    /// Packets that had arrived.
    arrived: u32,
    /// Since when this number has not changed, on the clock that measures silence.
    since: Nanos,
}

impl Default for Progress {
    /// The state before the first look.
    fn default() -> Self {
        Self {
            arrived: u32::MAX,
            since: Nanos::ZERO,
        }
    }
}

impl Progress {
    /// Notes that `arrived` packets have arrived and `outstanding` are in flight. If none is in
    /// flight, the message waits for this side and not for the peer, so the time starts again.
    pub(super) fn look(&mut self, arrived: u32, outstanding: u32, present: Nanos) {
        if arrived != self.arrived || outstanding == 0 {
            *self = Self {
                arrived,
                since: present,
            };
        }
    }

    /// Whether the number of arrived packets has been `arrived` for `span`, as far as the looks
    /// show.
    pub(super) fn stands(&self, arrived: u32, present: Nanos, span: Nanos) -> bool {
        arrived == self.arrived && present.since(self.since) >= span
    }
}

#[cfg(test)]
mod tests;
