//! The lengths of a run's messages. Most are small; some fill a whole number of packets, give or
//! take a byte; a few are huge.
//!
//! Invariant: the sizes follow from the process's stream of random numbers. Called by `plan` and by
//! the processes.

use dunlin_wire::MAX_AHEAD;

use crate::world::rng::{Ppm, Rng};

/// Least packets of a huge message: more than a sender may send ahead of the first missing packet
/// (rule W7).
const LEAST_HUGE: u64 = MAX_AHEAD as u64 + 1;
/// The most packets of a message.
const MOST_PACKETS: u64 = 590;
/// One in this many messages is huge, until the process has sent its number of huge ones.
const HUGE_EVERY: u64 = 20;
/// Packets of the longest answer for which batch and background handlers have room.
const ANSWER_PACKETS: u64 = 4;

/// The sizes of a process's messages, in bytes.
#[derive(Clone, Debug)]
pub struct Sizes {
    /// Data bytes per packet.
    pub data_size: u64,
    /// The most bytes of a small message.
    pub small: u64,
    /// Whether all small messages have that length, so that packets are alike.
    pub alike: bool,
    /// Share of the messages that fill a whole number of packets, give or take a byte.
    pub large: Ppm,
    /// The most packets of such a message.
    pub packets: u64,
    /// Number of huge messages that remain.
    pub huge: u32,
}

impl Sizes {
    /// Sizes for a run with `data_size` bytes per packet.
    pub fn draw(rng: &mut Rng, data_size: u64) -> Self {
        // Huge messages of many bytes take long to fill and to check.
        let huge = if data_size <= 200 {
            *rng.pick(&[0, 0, 1, 2])
        } else {
            u32::from(rng.one_in(16))
        };
        Self {
            data_size,
            small: *rng.pick(&[16, 40, 100, 600, 1500]),
            alike: false,
            large: *rng.pick(&[Ppm::NEVER, Ppm(20_000), Ppm::percent(10), Ppm::percent(30)]),
            packets: *rng.pick(&[2, 4, 16, 60]),
            huge,
        }
    }

    /// The longest answer for which batch and background handlers have room.
    pub fn room(&self) -> u64 {
        self.small.max(ANSWER_PACKETS * self.data_size + 1)
    }

    /// The length of the next message, at least `least`.
    pub fn next(&mut self, rng: &mut Rng, least: u64) -> u32 {
        let len = self.draw_len(rng, least).max(least);
        u32::try_from(len).unwrap_or(u32::MAX)
    }

    fn draw_len(&mut self, rng: &mut Rng, least: u64) -> u64 {
        let packets = if self.huge > 0 && rng.one_in(HUGE_EVERY) {
            self.huge -= 1;
            rng.between(LEAST_HUGE, MOST_PACKETS)
        } else if rng.chance(self.large) {
            rng.log_between(1, self.packets)
        } else if self.alike {
            return self.small;
        } else {
            return rng.between(least, self.small.max(least));
        };
        packets * self.data_size + rng.between(0, 2) - 1
    }
}

#[cfg(test)]
mod tests;
