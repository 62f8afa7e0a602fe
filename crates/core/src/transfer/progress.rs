//! Progress of a large message: how much of it had arrived when that was looked at, and since when
//! it is no more (rule S11). So no packet pays for the question whether its message gets on.
//!
//! Called by `transfer/scoreboard.rs`.

use crate::time::Nanos;

/// As of the last look.
#[derive(Clone, Copy, Debug)]
pub(super) struct Progress {
    /// Packets that had arrived.
    arrived: u32,
    /// Since when, on the clock that silence is measured on.
    since: Nanos,
}

impl Default for Progress {
    /// There was no look.
    fn default() -> Self {
        Self {
            arrived: u32::MAX,
            since: Nanos::ZERO,
        }
    }
}

impl Progress {
    /// `arrived` packets have arrived, and `outstanding` are in flight: a message with none in
    /// flight waits for this side.
    pub(super) fn look(&mut self, arrived: u32, outstanding: u32, present: Nanos) {
        if arrived != self.arrived || outstanding == 0 {
            *self = Self {
                arrived,
                since: present,
            };
        }
    }

    /// Whether no more than these packets have arrived for `span`, as far as was looked.
    pub(super) fn stands(&self, arrived: u32, present: Nanos, span: Nanos) -> bool {
        arrived == self.arrived && present.since(self.since) >= span
    }
}
