//! One seed, run twice with two variants of an endpoint whose visible behaviour must be equal: the
//! packets and their times, the application's events and their order, counters, histograms,
//! msgbufs, and the state of sessions.
//!
//! Both runs only digest their facts (`world/record.rs`), which takes little time. If a digest
//! differs, both are repeated, and the facts around the first different one are kept in words. The
//! first variant is the specification: if it breaks a promise on its own, the seed has failed, and
//! nothing is compared.
//!
//! | file | what it owns |
//! |---|---|
//! | `report.rs` | the first difference, for a reader |
//! | `shares.rs` | whether a variant's own paths were taken often enough |
//!
//! Called by `bin/seeds` and by tests.

mod report;
mod shares;

use std::fmt;
use std::ops::Range;

pub use report::{Difference, Side};
pub use shares::{Count, OwnPath, Shares, Taken};

use dunlin_core::transport::MAX_INLINE;

use crate::cluster::mutants::Mutant;
use crate::cluster::plan::Plan;
use crate::cluster::run::{Failure, Options, Report, run_recorded};
use crate::world::record::{Recorded, Recorder};

/// One of the two variants of a comparison.
#[derive(Clone, Copy, Debug)]
pub struct Variant {
    /// Its name in a report.
    pub name: &'static str,
    /// Changes the plan of a seed for this variant.
    pub prepare: fn(&mut Plan),
    /// Paths that only this variant has, for all or for some of its packets.
    pub paths: &'static [OwnPath],
}

/// The general path, which is the specification of every other one.
const GENERAL: Variant = Variant {
    name: "general",
    prepare: |_| {},
    paths: &[],
};

/// Two variants that must behave alike.
#[derive(Clone, Copy, Debug)]
pub struct Comparison {
    /// Its name.
    pub name: &'static str,
    /// The specification, and the variant that is compared with it.
    pub sides: [Variant; 2],
}

/// The general path against itself: any difference is a fault of the simulator, or a planted one.
pub const REPEATED: Comparison = Comparison {
    name: "repeated",
    sides: [
        GENERAL,
        Variant {
            name: "general, again",
            ..GENERAL
        },
    ],
};

/// The general path, which is the specification, against the common path.
pub const COMMON: Comparison = Comparison {
    name: "common path",
    sides: [
        Variant {
            name: "general path",
            prepare: |plan| {
                plan.endpoint.bypasses.common = false;
                plan.net.hand_over.rows = false;
            },
            ..GENERAL
        },
        Variant {
            name: "common path",
            prepare: |plan| plan.endpoint.bypasses.common = true,
            paths: &[PLAIN, FROM_MSGBUFS],
        },
    ],
};

/// Packets on the common path.
const PLAIN: OwnPath = OwnPath {
    name: "common path",
    count: Count::Endpoints(|counters| Taken {
        packets: counters.rx_plain,
        of: counters.rx_plain + counters.rx_declined,
    }),
    least: [95, 50],
};

/// Staged packets whose messages are too long to be copied into the lane: the transport copies them
/// from their msgbufs.
const FROM_MSGBUFS: OwnPath = OwnPath {
    name: "messages from msgbufs, among long ones",
    count: Count::Network(|staged| Taken {
        packets: staged.from_msgbufs,
        of: staged.long_alike,
    }),
    least: [0, 10],
};

/// The general path, which queues short packets like all others, against a path that stages them.
pub const LANES: Comparison = Comparison {
    name: "lanes",
    sides: [
        Variant {
            name: "queue",
            prepare: |plan| {
                plan.endpoint.bypasses.lanes = false;
                calm_if_copied(plan);
            },
            ..GENERAL
        },
        Variant {
            name: "lanes",
            prepare: |plan| {
                plan.endpoint.bypasses.lanes = true;
                calm_if_copied(plan);
            },
            paths: &[STAGED, IN_ROWS, MIDDLE, LONG],
        },
    ],
};

/// A lane copies long messages, but the queue lends them until they have left. A call may end, or a
/// response be replaced, in the same iteration in which its packet leaves again. With the queue, it
/// must then wait; with a lane, it need not. Plans with short staged packets, which lane and queue
/// both copy, keep their faults. The other plans get a transport that reads everything at once, and
/// nothing that makes a call end early.
fn calm_if_copied(plan: &mut Plan) {
    if plan.net.hand_over.longest_staged > MAX_INLINE {
        plan.net.hand_over.at_once = true;
        plan.calm();
    }
}

/// Staged packets. Those that follow a longer message in their iteration are queued.
const STAGED: OwnPath = OwnPath {
    name: "staged",
    count: Count::Endpoints(|counters| Taken {
        packets: counters.tx_staged,
        of: counters.tx_staged + counters.tx_unstaged,
    }),
    least: [60, 50],
};

/// Staged packets in rows of several that are alike.
const IN_ROWS: OwnPath = OwnPath {
    name: "in rows, among staged ones",
    count: Count::Network(|staged| Taken {
        packets: staged.in_rows,
        of: staged.all,
    }),
    least: [5, 5],
};

/// Staged packets that are longer than a line, and hold their messages.
const MIDDLE: OwnPath = OwnPath {
    name: "longer than a line, among staged ones",
    count: Count::Network(|staged| Taken {
        packets: staged.middle,
        of: staged.all,
    }),
    least: [5, 5],
};

/// Staged packets whose messages may lie elsewhere.
const LONG: OwnPath = OwnPath {
    name: "longer than four lines, among staged ones",
    count: Count::Network(|staged| Taken {
        packets: staged.long,
        of: staged.all,
    }),
    least: [5, 5],
};

/// All comparisons.
pub const COMPARISONS: &[Comparison] = &[REPEATED, COMMON, LANES];

/// Two runs that were equal.
#[derive(Clone, Debug)]
pub struct Same {
    /// The report, which is the same for both.
    pub report: Report,
    /// How many facts were compared.
    pub facts: usize,
    /// The packets that took each variant's own paths.
    pub taken: [Vec<Taken>; 2],
}

/// The reason why two runs are not equal.
#[derive(Clone, Debug)]
pub enum Unlike {
    /// The specification itself breaks a promise.
    Failed(Box<Failure>),
    /// The runs differ.
    Differs(Box<Difference>),
}

impl fmt::Display for Unlike {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(failure) => failure.fmt(f),
            Self::Differs(difference) => difference.fmt(f),
        }
    }
}

/// Number of facts that are kept in words: before the first different one, and from it on.
const BEFORE: usize = 12;
const AFTER: usize = 4;

/// Runs a seed with both variants of a comparison. `mutant` is planted in the second one.
///
/// # Errors
/// If a promise is broken, or the runs differ.
pub fn compare_seed(
    seed: u64,
    comparison: &Comparison,
    mutant: Option<Mutant>,
) -> Result<Same, Unlike> {
    let mutants = [None, mutant];
    let runs = [0, 1].map(|side| run(seed, &comparison.sides[side], mutants[side], 0..0));
    let [(first_result, first), (second_result, second)] = &runs;
    let report = match first_result {
        Ok(report) => *report,
        Err(failure) => return Err(Unlike::Failed(failure.clone())),
    };
    let different = first_difference(&first.after, &second.after);
    let Some(at) = different else {
        return Ok(Same {
            report,
            facts: first.after.len(),
            taken: [0, 1].map(|side| taken(&comparison.sides[side], &runs[side].1)),
        });
    };
    let kept = at.saturating_sub(BEFORE)..at + AFTER;
    let sides = [0, 1].map(|side| {
        let variant = &comparison.sides[side];
        let (_, again) = run(seed, variant, mutants[side], kept.clone());
        Side {
            name: variant.name,
            repeats: runs[side].1.after == again.after,
            lines: again.lines,
        }
    });
    Err(Unlike::Differs(Box::new(Difference {
        seed,
        comparison: comparison.name,
        mutant,
        fact: at,
        before: at - kept.start,
        failure: second_result
            .as_ref()
            .err()
            .map(|failure| failure.what.clone()),
        hosts: hosts_of(&comparison.sides[0], seed),
        sides,
    })))
}

fn run(
    seed: u64,
    variant: &Variant,
    mutant: Option<Mutant>,
    kept: Range<usize>,
) -> (Result<Report, Box<Failure>>, Recorded) {
    let recorder = Recorder::new(kept);
    let options = Options {
        mutant,
        // The comparison must find the planted bug, not the checks of the laws: a broken law would
        // change the run so much that it could not be compared.
        lawless: mutant.is_some(),
        ..Options::default()
    };
    let result = run_recorded(seed, plan_of(variant, seed), options, &recorder);
    (result, recorder.take())
}

/// Counts the packets of all processes that took each of the variant's own paths.
fn taken(variant: &Variant, record: &Recorded) -> Vec<Taken> {
    let of_path = |path: &OwnPath| match path.count {
        Count::Endpoints(count) => {
            let mut taken = Taken::default();
            for counters in &record.ended {
                taken += count(counters);
            }
            taken
        }
        Count::Network(count) => count(&record.staged),
    };
    variant.paths.iter().map(of_path).collect()
}

fn plan_of(variant: &Variant, seed: u64) -> Plan {
    let mut plan = Plan::draw(seed);
    (variant.prepare)(&mut plan);
    plan
}

/// The host of each port.
fn hosts_of(variant: &Variant, seed: u64) -> Vec<usize> {
    let hosts = plan_of(variant, seed).hosts;
    let ports = hosts.iter().enumerate();
    ports
        .flat_map(|(host, processes)| std::iter::repeat_n(host, *processes))
        .collect()
}

/// Index of the first fact after which the digests differ. If one run is longer but otherwise
/// equal, the index of its first additional fact.
fn first_difference(first: &[u64], second: &[u64]) -> Option<usize> {
    let shorter = first.len().min(second.len());
    let different = (0..shorter).find(|&at| first[at] != second[at]);
    different.or((first.len() != second.len()).then_some(shorter))
}

#[cfg(test)]
mod tests;
