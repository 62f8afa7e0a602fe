//! The share of packets that took a path: a comparison of two paths proves nothing if hardly any
//! packet takes one of them.
//!
//! Invariant: only a variant that defines how to count its path is judged. Filled by `differential`
//! and `bin/seeds`.

use std::fmt;
use std::ops::AddAssign;

use dunlin_core::Counters;

use crate::world::net::NetCounters;

/// Reads from an endpoint's counters how many packets took a path.
pub type TakesPath = fn(&Counters) -> Taken;

/// How many of the packets that could take a path did so.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Taken {
    /// Packets on the path.
    pub packets: u64,
    /// Packets that could have taken it: all small ones.
    pub of: u64,
}

impl AddAssign for Taken {
    fn add_assign(&mut self, other: Self) {
        self.packets += other.packets;
        self.of += other.of;
    }
}

impl Taken {
    fn is_at_least(self, percent: u64) -> bool {
        self.packets * 100 >= self.of * percent && self.of != 0
    }
}

impl fmt::Display for Taken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tenths = self.packets * 1000 / self.of.max(1);
        write!(
            f,
            "{}.{} % of {} packets",
            tenths / 10,
            tenths % 10,
            self.of
        )
    }
}

/// The share of a path over many seeds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Shares {
    /// The share in seeds whose network did not lose, duplicate, change or delay any frame, and in
    /// which no address was proven: before a proof, one side may send while the other one still
    /// waits.
    pub sound: Taken,
    /// The share in all seeds.
    pub all: Taken,
}

/// Least percentage of the packets that must take the path, over all seeds.
const LEAST: u64 = 50;

impl Shares {
    /// Adds a seed, with the number of addresses that were proven in it.
    pub fn add(&mut self, taken: Taken, frames: &NetCounters, proofs: u64) {
        self.all += taken;
        if is_sound(frames) && proofs == 0 {
            self.sound += taken;
        }
    }

    /// Checks that enough packets took the path. `sound`: the least percentage in seeds without
    /// loss.
    ///
    /// # Errors
    /// If the path was taken by too few packets for the comparison to prove anything.
    pub fn judge(&self, sound: u64) -> Result<(), String> {
        let all = LEAST;
        if !self.sound.is_at_least(sound) {
            let what = self.sound;
            return Err(format!(
                "{what} took the path in seeds without loss; {sound} % are needed"
            ));
        }
        if !self.all.is_at_least(all) {
            let what = self.all;
            return Err(format!(
                "{what} took the path in all seeds; {all} % are needed"
            ));
        }
        Ok(())
    }
}

impl fmt::Display for Shares {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { sound, all } = self;
        write!(f, "{sound} without loss, {all} in all seeds")
    }
}

/// Whether every frame arrived exactly once, unchanged and in order.
fn is_sound(frames: &NetCounters) -> bool {
    let NetCounters {
        sent: _,
        delivered: _,
        delivered_bytes: _,
        duplicated,
        reordered,
        damaged,
        hostile,
        lost,
        checksum,
        cut,
        queue_full,
        nic_full,
        rx_full,
        no_process,
    } = *frames;
    let faults = [
        duplicated, reordered, damaged, hostile, lost, checksum, cut, queue_full, nic_full,
        rx_full, no_process,
    ];
    faults.iter().all(|count| *count == 0)
}

#[cfg(test)]
mod tests;
