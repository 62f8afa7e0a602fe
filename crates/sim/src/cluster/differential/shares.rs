//! The share of packets that took a path: a comparison of two paths proves nothing if hardly any
//! packet takes one of them.
//!
//! Invariant: a variant that has no path of its own is not judged. Filled by `differential`
//! and `bin/seeds`.

use std::fmt;
use std::ops::AddAssign;

use dunlin_core::Counters;

use crate::world::net::{NetCounters, StagedPackets};

/// A path that only one of two variants has.
#[derive(Clone, Copy, Debug)]
pub struct OwnPath {
    /// Its name in a report.
    pub name: &'static str,
    /// Counts the packets that took the path.
    pub count: Count,
    /// Least percentages of the packets that must take the path: in seeds without loss, and in all
    /// seeds.
    pub least: [u64; 2],
}

/// Reads how many packets took a path.
#[derive(Clone, Copy, Debug)]
pub enum Count {
    /// From the counters of an endpoint.
    Endpoints(fn(&Counters) -> Taken),
    /// From the network's counts of staged packets.
    Network(fn(&StagedPackets) -> Taken),
}

/// How many of the packets that could take a path took it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Taken {
    /// Packets on the path.
    pub packets: u64,
    /// Packets that could have taken it.
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

impl Shares {
    /// Adds a seed, with the number of addresses that were proven in it.
    pub fn add(&mut self, taken: Taken, frames: &NetCounters, proofs: u64) {
        self.all += taken;
        if is_sound(frames) && proofs == 0 {
            self.sound += taken;
        }
    }

    /// Checks that enough packets took the path, by the percentages of [`OwnPath::least`].
    ///
    /// # Errors
    /// Too few packets took the path, so the comparison would prove nothing.
    pub fn judge(&self, [sound, all]: [u64; 2]) -> Result<(), String> {
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
