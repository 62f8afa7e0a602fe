//! The successive processes of a member. Each process draws a number when it starts, called its
//! life, and its parcels carry it.
//!
//! When a member starts again, it has a new life, and the previous one is over. If a parcel arrives
//! with a life that was over, two processes have the member's number, because a directory was
//! copied. The later process may lack promises that the first has made, so parcels of both are
//! refused from then on. Each process learns this from a refusal or from the next parcel sent to
//! it, and ends. The cluster goes on without the member. A parcel of a process that has ended may
//! arrive late; within a limited time it is dropped and proves nothing. Called by `parcels`.

use dunlin_core::Nanos;

/// The most lives of a member that are remembered as over.
const MOST: usize = 8;

/// The lives of a member.
#[derive(Debug, Default)]
pub(super) struct Lives {
    /// The current life; 0 before the first parcel.
    life: u64,
    since: Nanos,
    over: Vec<u64>,
    are_two: bool,
}

impl Lives {
    /// Takes the life in a parcel. Parcels of a past life may arrive late by at most `late`. False:
    /// this life is over, or two processes have the number of the member.
    pub(super) fn on_parcel(&mut self, life: u64, now: Nanos, late: Nanos) -> bool {
        if self.over.contains(&life) {
            self.are_two |= now > self.since + late;
            return false;
        }
        if life != self.life {
            if self.life != 0 {
                self.over.push(self.life);
            }
            if self.over.len() > MOST {
                self.over.remove(0);
            }
            (self.life, self.since) = (life, now);
        }
        !self.are_two
    }

    /// Whether two processes have the number of the member.
    pub(super) const fn are_two(&self) -> bool {
        self.are_two
    }
}

#[cfg(test)]
mod tests;
