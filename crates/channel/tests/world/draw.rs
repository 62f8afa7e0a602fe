//! Random numbers in the ranges that this world needs.

use dunlin_core::{Nanos, Rng};

/// Numbers in the ranges that this world needs.
pub(crate) trait Draw {
    fn index(&mut self, len: usize) -> usize;
    fn percent(&mut self, often: u32) -> bool;
    fn micros(&mut self, least: u32, most: u32) -> Nanos;
}

impl Draw for Rng {
    fn index(&mut self, len: usize) -> usize {
        let len = u32::try_from(len).expect("there are few");
        self.below(len) as usize
    }

    fn percent(&mut self, often: u32) -> bool {
        self.below(100) < often
    }

    fn micros(&mut self, least: u32, most: u32) -> Nanos {
        Nanos::from_micros(u64::from(least + self.below(most - least + 1)))
    }
}
