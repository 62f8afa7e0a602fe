//! The processes of a member, one after the other: each draws a number at its start, its life, and
//! its parcels carry that.
//!
//! A member that starts again has another life, and the one before is over. If a life that was over
//! speaks again, two processes have the member's number, because a directory was copied. The later
//! one may lack what the first one has promised, so parcels of both are refused from then on, and
//! each process learns it from a refusal or from the next parcel to it, and ends. The cluster goes
//! on without the member. A parcel of a process that has ended may come late; it is dropped, and
//! proves nothing for a while. Called by `seat`.

use dunlin_core::Nanos;

/// Lives of a member that are over and known as such.
const MOST: usize = 8;

/// The lives of a member.
#[derive(Debug, Default)]
pub(super) struct Lives {
    /// 0: it has not spoken.
    life: u64,
    since: Nanos,
    over: Vec<u64>,
    are_two: bool,
}

impl Lives {
    /// Takes the life in a parcel. Late ones come within `late`. False: it is over, or two
    /// processes have the number of the member.
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
