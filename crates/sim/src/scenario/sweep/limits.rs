//! The limits of a case: the highest possible rates, and the share of them that must be reached.
//!
//! Called by `sweep` for every row.

use super::scenes::{DATA, ECHO, HEADERS};
use super::{Alone, Case, Family, Row};
use crate::scenario::Wrong;

impl Case {
    /// Data that a cable carries, in Gb/s.
    fn goodput(&self) -> f64 {
        f64::from(self.gbps) * f64::from(DATA) / f64::from(DATA + HEADERS)
    }

    /// The rate of a single sender without congestion control. Its credits or the cable limit it.
    fn alone(&self, alone: &Alone) -> Result<f64, Wrong> {
        alone.rate(Self {
            family: Family::Incast,
            ..*self
        })
    }

    /// The highest rate of all senders together.
    pub(super) fn possible(&self, alone: &Alone) -> Result<f64, Wrong> {
        let by_credits = self.alone(alone)? * count(self.senders);
        Ok(self.goodput().min(by_credits))
    }

    /// The rate of each sender if all senders get equal rates.
    pub(super) fn fair(&self, alone: &Alone) -> Result<f64, Wrong> {
        let sharing = match self.family {
            Family::Late => self.senders + 1,
            Family::Two => 2 * self.senders,
            _ => self.senders,
        };
        let alone = self.alone(alone)?;
        // Between two racks a round trip crosses about twice as many cables.
        let alone = match self.family {
            Family::Two => alone / 2.0,
            _ => alone,
        };
        Ok((self.goodput() / count(sharing)).min(alone))
    }

    /// The rate in each direction with K echoes in flight. If K requests cross two cables in turn,
    /// each cable is busy for K / (K + 1) of the time. If a single echo takes longer than its time
    /// on both cables, the share is K / (t + K - 1), where t is the time of a single echo divided
    /// by its time on one cable.
    pub(super) fn possible_echoes(&self, alone: &Alone) -> Result<f64, Wrong> {
        let one = alone.rate(Self {
            in_flight: 1,
            ..*self
        })?;
        let bits = f64::from(ECHO) * 8.0;
        let (takes, on_cable) = (bits / one, bits / self.goodput());
        let in_flight = count(self.senders) * f64::from(self.in_flight);
        let takes = takes.max(2.0 * on_cable);
        let busy = in_flight * on_cable / (takes + (in_flight - 1.0) * on_cable);
        // Both directions share the credits of a session.
        let by_credits = self.alone(alone)? * count(self.senders) / 2.0;
        Ok((self.goodput() * busy.min(1.0)).min(by_credits))
    }
}

fn count(n: usize) -> f64 {
    f64::from(u32::try_from(n).expect("a sweep has fewer than 2^32 hosts"))
}

/// Bounds for a row: the lowest share and index, and the highest shares of retransmitted packets,
/// in the first 5 ms and later.
struct Bounds {
    share: f64,
    jain: f64,
    resent_first: f64,
    resent: f64,
}

impl Bounds {
    fn of(case: &Case) -> Self {
        let free = Self {
            share: 0.0,
            jain: 0.0,
            resent_first: 1.0,
            resent: 1.0,
        };
        match case.family {
            Family::Incast if case.gbps < 25 && case.senders > 30 => Self {
                share: 0.95,
                jain: 0.9,
                ..free
            },
            // In the measured time each sender sends only about 60 packets, too few for the rates
            // to become equal.
            Family::Incast if case.senders > 150 => Self {
                share: 0.97,
                jain: 0.75,
                resent_first: 0.02,
                resent: 0.001,
            },
            Family::Incast => Self {
                share: 0.97,
                jain: 0.95,
                resent_first: 0.02,
                resent: 0.001,
            },
            Family::Late | Family::Loss => Self { share: 0.9, ..free },
            Family::Two => Self { share: 0.5, ..free },
            Family::Echo => Self {
                share: 0.9,
                jain: 0.9,
                resent: 0.001,
                ..free
            },
        }
    }
}

impl Row {
    /// The values that miss their bounds.
    pub fn faults(&self) -> Vec<&'static str> {
        let bounds = Bounds::of(&self.case);
        let all = [
            ("share", self.share >= bounds.share),
            ("jain", self.jain >= bounds.jain),
            ("resent_first", self.resent_first <= bounds.resent_first),
            ("resent", self.resent <= bounds.resent),
        ];
        let wrong = all.iter().filter(|(_, fine)| !fine);
        wrong.map(|(name, _)| *name).collect()
    }
}
