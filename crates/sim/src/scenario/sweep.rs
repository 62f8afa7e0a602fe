//! The sweep that default congestion control must pass: many senders to one host, one that joins
//! late, frames lost at random, two bottlenecks in a row, and echoes in both directions, over a
//! grid of rates, round trips, buffers and numbers of senders.
//!
//! A [`Case`] is one run: a point of the grid and a seed. [`Case::run`] measures it, and
//! [`Row::faults`] names the measurements that miss their limits. Invariant: a row depends only on
//! its case and scheme. Called by the program `congestion` and by tests.

mod cases;
mod limits;
mod scenes;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Mutex;

use dunlin_core::{Nanos, Scheme};

use crate::scenario::{Report, Wrong, run};
pub use cases::{Grid, cases};

/// The traffic of the hosts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Family {
    /// Requests of 1 MB to one host, which all begin together.
    Incast,
    /// Like [`Self::Incast`], with one more sender 5 ms later.
    Late,
    /// Like [`Self::Incast`], with one in a thousand frames lost.
    Loss,
    /// Three groups of senders: one crosses an uplink and a host's cable, each of the others only
    /// one of the two.
    Two,
    /// Echoes of 64 KB, from all senders to one host.
    Echo,
}

impl Family {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Incast, Self::Late, Self::Loss, Self::Two, Self::Echo];

    /// The name in options and results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Incast => "incast",
            Self::Late => "late",
            Self::Loss => "loss",
            Self::Two => "two",
            Self::Echo => "echo",
        }
    }
}

/// One run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Case {
    /// The traffic of its hosts.
    pub family: Family,
    /// Rate of every cable in Gb/s.
    pub gbps: u32,
    /// Round trip of an empty network in µs.
    pub rtt_us: u32,
    /// Memory of a switch in KB.
    pub buffer_kb: u32,
    /// Hosts that send; for [`Family::Two`], in each group.
    pub senders: usize,
    /// Requests that each sender has in flight.
    pub in_flight: u32,
    /// Whether hosts measure the round trip of the empty network, as they do without
    /// `udp.base_rtt`. If not, they know it.
    pub measured: bool,
    /// Hosts delay the frames that they send by up to this time in µs, in addition to the time that
    /// is part of the round trip.
    pub noise_us: u32,
    /// The seed, from which all random choices follow.
    pub seed: u64,
}

impl fmt::Display for Case {
    /// Writes the case in the form in which the program reads it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{},{},{},{},{},{}",
            self.family.name(),
            self.gbps,
            self.rtt_us,
            self.buffer_kb,
            self.senders,
            self.in_flight
        )?;
        if self.measured {
            f.write_str(",measured")?;
        }
        match self.noise_us {
            0 => Ok(()),
            noise => write!(f, ",noise={noise}"),
        }
    }
}

/// The result of a run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Row {
    /// The run.
    pub case: Case,
    /// The rate of all senders together, divided by the highest rate that cables, credits and
    /// requests in flight allow; for echoes, in the slower direction. For [`Family::Late`] and
    /// [`Family::Two`] it is the rate of one sender, divided by an equal share: the rate of the
    /// late sender, and the lowest rate of any sender.
    pub share: f64,
    /// Jain's index of the first load, in the worse direction; 1 for [`Family::Two`].
    pub jain: f64,
    /// Share of retransmitted packets among those sent until 5 ms after the last sender has begun.
    pub resent_first: f64,
    /// Share of retransmitted packets among those sent later.
    pub resent: f64,
    /// Frames dropped because a switch or NIC had no room.
    pub dropped: u64,
    /// A number that changes with any change of the run.
    pub digest: u64,
}

/// The network must settle within this time after the last sender has begun.
const SETTLE: Nanos = Nanos::from_millis(5);

/// Rates of a single sender without congestion control. Each is measured once.
#[derive(Debug, Default)]
pub struct Alone(Mutex<BTreeMap<Case, f64>>);

impl Alone {
    /// The rate of a single sender in this case. It depends on neither switch memory nor seed.
    fn rate(&self, case: Case) -> Result<f64, Wrong> {
        let case = Case {
            senders: 1,
            buffer_kb: 2000,
            measured: false,
            seed: 1,
            ..case
        };
        let mut known = self.0.lock().expect("a run that panics ends the sweep");
        if let Some(rate) = known.get(&case) {
            return Ok(*rate);
        }
        let report = run(&case.scenario(Scheme::None), |_| true)?;
        let rate = report.loads[0].steady.gbps_across;
        known.insert(case, rate);
        Ok(rate)
    }
}

impl Row {
    /// The row of the same case and scheme with more switch memory, if this row determines it. If
    /// no frame was dropped, more memory changes nothing except the marks of DCQCN.
    pub fn with_more_memory(&self, case: Case, scheme: Scheme) -> Option<Self> {
        let same = Case {
            buffer_kb: self.case.buffer_kb,
            ..case
        };
        let more = same == self.case && case.buffer_kb >= same.buffer_kb;
        let follows = more && self.dropped == 0 && scheme != Scheme::Dcqcn;
        follows.then_some(Self { case, ..*self })
    }
}

impl Case {
    /// Runs the case with `scheme` controlling all sessions.
    ///
    /// # Errors
    /// The case cannot run, or an invariant of the library or the simulator broke.
    pub fn run(&self, scheme: Scheme, alone: &Alone) -> Result<Row, Wrong> {
        let report = run(&self.scenario(scheme), |_| true)?;
        let (share, jain) = self.shares(&report, alone)?;
        let loads = || report.loads.iter();
        let share_of = |packets: u64, resent: u64| ratio(resent, packets);
        Ok(Row {
            case: *self,
            share,
            jain,
            resent_first: share_of(
                loads().map(|load| load.opening.packets).sum(),
                loads().map(|load| load.opening.resent).sum(),
            ),
            resent: share_of(
                loads().map(|load| load.steady.packets).sum(),
                loads().map(|load| load.steady.resent).sum(),
            ),
            dropped: report
                .frames
                .iter()
                .map(|it| it.queue_full + it.nic_full + it.rx_full)
                .sum(),
            digest: report.digest,
        })
    }

    fn shares(&self, report: &Report, alone: &Alone) -> Result<(f64, f64), Wrong> {
        let first = &report.loads[0].steady;
        Ok(match self.family {
            Family::Incast | Family::Loss => {
                (first.gbps_across / self.possible(alone)?, first.jain)
            }
            Family::Late => {
                let late = &report.loads[1].steady;
                (late.gbps_across / self.fair(alone)?, first.jain)
            }
            Family::Two => {
                let clients = report.loads.iter().flat_map(|load| &load.steady.clients);
                let least = clients.map(|client| client.gbps_across);
                let least = least.fold(f64::INFINITY, f64::min);
                (least / self.fair(alone)?, 1.0)
            }
            Family::Echo => {
                let less = first.gbps_across.min(first.gbps_back);
                let jain = first.jain.min(first.jain_back);
                (less / self.possible_echoes(alone)?, jain)
            }
        })
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "counts of packets are far below 2^53"
)]
fn ratio(part: u64, all: u64) -> f64 {
    part as f64 / all.max(1) as f64
}

#[cfg(test)]
mod tests;
