//! One direction of a cable with the queue in front of it.
//!
//! Invariant: frames leave in the order in which they were given, one at a time, at the link's
//! rate. The queue is not stored: how long the link is busy says how much is in it. Called by
//! `net` for the uplink and the downlink of each host.

use dunlin_core::Nanos;

/// A link with a bounded queue.
#[derive(Clone, Debug)]
pub(super) struct Link {
    /// Time to send a byte, in picoseconds, so that 100 Gb/s (80 ps) is exact.
    byte_ps: u64,
    /// Bytes that may wait.
    capacity: u64,
    free_at: Nanos,
}

/// The queue has no room for the frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct QueueFull;

impl Link {
    /// An idle link of `rate` bytes per second that holds up to `capacity` bytes.
    pub(super) fn new(rate: u64, capacity: u64) -> Self {
        Self {
            byte_ps: 1_000_000_000_000 / rate.max(1),
            capacity,
            free_at: Nanos::ZERO,
        }
    }

    /// Queues a frame of `bytes`; returns when its last bit leaves.
    pub(super) fn send(&mut self, now: Nanos, bytes: u64) -> Result<Nanos, QueueFull> {
        if self.queued(now) + bytes > self.capacity {
            return Err(QueueFull);
        }
        let takes = Nanos((bytes * self.byte_ps).div_ceil(1000));
        self.free_at = self.free_at.max(now) + takes;
        Ok(self.free_at)
    }

    /// Bytes that wait at `now`.
    pub(super) fn queued(&self, now: Nanos) -> u64 {
        self.free_at.since(now).0.saturating_mul(1000) / self.byte_ps.max(1)
    }

    /// Sends nothing for `span`: everything behind is late together.
    pub(super) fn stall(&mut self, now: Nanos, span: Nanos) {
        self.free_at = self.free_at.max(now) + span;
    }

    /// Frames from now on do not wait for those before; what has been queued comes when it comes.
    pub(super) fn end_stall(&mut self, now: Nanos) {
        self.free_at = self.free_at.min(now);
    }
}

#[cfg(test)]
mod tests;
