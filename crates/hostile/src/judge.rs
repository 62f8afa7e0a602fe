//! Everything that a run has seen, and whether that is as it must be.

use std::fmt;
use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;

use crate::words::{Deeds, Event, Stats};

/// How many times slower the healthy client may be while its server is attacked.
const SLOWER: u64 = 3;
/// Nothing is said about a 99th percentile below this: on two processors that attackers, servers
/// and clients share, it is the scheduler's.
const FAST_NS: u64 = 2_000_000;
/// Growth of the server's memory over all.
const GROWTH_KIB: u64 = 64 << 10;
/// Growth in the second half of a run: a pool may still get a region.
const LATE_GROWTH_KIB: u64 = 16 << 10;
/// Looks at the memory below which a run has no halves.
const LOOKS: usize = 100;

/// A part of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Phase {
    /// Nothing attacks.
    Quiet,
    /// Another server is attacked.
    Elsewhere,
    /// The client's own server is attacked.
    Attacked,
}

/// Everything that a run has seen.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) quiet: Record,
    pub(crate) elsewhere: Record,
    pub(crate) attacked: Record,
    pub(crate) memory_before_kib: u64,
    pub(crate) memory_kib: Vec<u64>,
    pub(crate) events: Vec<Event>,
    /// Attackers that ended before their time.
    pub(crate) ended: Vec<String>,
    pub(crate) interrupted: bool,
    /// Phases in which the machine stood still: the longest rest in each, and what the client saw.
    pub(crate) still: Vec<(Duration, Stats)>,
}

/// All phases of a kind.
#[derive(Debug, Default)]
pub(crate) struct Record {
    pub(crate) stats: Stats,
    pub(crate) deeds: Deeds,
}

/// Something that must not be.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Fault {
    /// The healthy client lost sessions.
    LostSessions(u64),
    /// It got wrong answers.
    WrongAnswers(u64),
    /// Its calls ended with errors.
    FailedCalls(u64),
    /// It could not make new sessions.
    RefusedSessions(u64),
    /// It made no calls at all.
    NoCalls,
    /// Its 99th percentile, in nanoseconds: while another server was attacked, and while its was.
    Slow { elsewhere_ns: u64, attacked_ns: u64 },
    /// Requests came to a handler twice.
    Twice(usize),
    /// Requests changed while a handler looked at them.
    Changed(usize),
    /// The server's memory grew.
    Grew { kib: u64 },
    /// It grew in the second half of the run.
    Grows { kib: u64 },
    /// Honest processes of the drills were harmed.
    Complaint(String),
}

impl Seen {
    /// Adds a phase.
    pub(crate) fn add(&mut self, phase: Phase, stats: Stats, deeds: Vec<Deeds>) {
        let record = match phase {
            Phase::Quiet => &mut self.quiet,
            Phase::Elsewhere => &mut self.elsewhere,
            Phase::Attacked => &mut self.attacked,
        };
        let sum = &mut record.stats;
        sum.calls += stats.calls;
        sum.wrong += stats.wrong;
        sum.failed += stats.failed;
        sum.lost += stats.lost;
        sum.refused += stats.refused;
        sum.reasons.extend(stats.reasons);
        sum.latencies.extend(stats.latencies);
        deeds.into_iter().for_each(|done| record.deeds.add(done));
    }

    /// Adds a phase in which the machine stood still. Wrong answers are wrong also then; sessions
    /// and calls may have failed by the clock.
    pub(crate) fn stood_still(&mut self, rest: Duration, stats: Stats) {
        self.attacked.stats.wrong += stats.wrong;
        self.still.push((rest, stats));
    }

    fn records(&self) -> [&Record; 3] {
        [&self.quiet, &self.elsewhere, &self.attacked]
    }

    fn count(&self, what: impl Fn(&Stats) -> u64) -> u64 {
        self.records()
            .iter()
            .map(|record| what(&record.stats))
            .sum()
    }

    fn event(&self, is_it: impl Fn(&Event) -> bool) -> usize {
        self.events.iter().filter(|event| is_it(event)).count()
    }

    /// How the healthy client's calls failed and its sessions ended.
    pub(crate) fn reasons(&self) -> impl Iterator<Item = &String> {
        let records = self.records().into_iter();
        records.flat_map(|record| &record.stats.reasons)
    }

    /// How much the server's memory has grown at most.
    pub(crate) fn growth_kib(&self) -> u64 {
        let most = self.memory_kib.iter().max().copied().unwrap_or(0);
        most.saturating_sub(self.memory_before_kib)
    }

    /// How much more there was at most in the last quarter than before, since the first half.
    fn late_growth_kib(&self) -> u64 {
        let len = self.memory_kib.len();
        if len < LOOKS {
            return 0;
        }
        let most = |part: &[u64]| part.iter().max().copied().unwrap_or(0);
        let (before, after) = self.memory_kib.split_at(3 * len / 4);
        most(after).saturating_sub(most(&before[len / 4..]))
    }
}

impl Record {
    /// The latency in nanoseconds below which this part of the calls was.
    pub(crate) fn quantile_ns(&self, part: f64) -> Option<u64> {
        let mut all = Histogram::<u64>::new(3).ok()?;
        for (value, count) in &self.stats.latencies {
            all.record_n(*value, *count).ok()?;
        }
        (!all.is_empty()).then(|| all.value_at_quantile(part))
    }
}

/// The faults that no more time could take away.
pub(crate) fn at_once(seen: &Seen) -> Vec<Fault> {
    let mut faults = Vec::new();
    let mut some = |count: u64, fault: fn(u64) -> Fault| {
        if count > 0 {
            faults.push(fault(count));
        }
    };
    some(seen.count(|stats| stats.lost), Fault::LostSessions);
    some(seen.count(|stats| stats.wrong), Fault::WrongAnswers);
    some(seen.count(|stats| stats.failed), Fault::FailedCalls);
    some(seen.count(|stats| stats.refused), Fault::RefusedSessions);
    let twice = seen.event(|event| matches!(event, Event::Twice(_)));
    if twice > 0 {
        faults.push(Fault::Twice(twice));
    }
    let changed = seen.event(|event| matches!(event, Event::Changed));
    if changed > 0 {
        faults.push(Fault::Changed(changed));
    }
    let kib = seen.growth_kib();
    if kib > GROWTH_KIB {
        faults.push(Fault::Grew { kib });
    }
    let complaints = seen.records().map(|record| &record.deeds.complaints);
    let complaints = complaints.into_iter().flatten().cloned();
    faults.extend(complaints.map(Fault::Complaint));
    faults
}

/// All faults of a run that is over.
pub(crate) fn faults(seen: &Seen) -> Vec<Fault> {
    let mut faults = at_once(seen);
    if seen.interrupted {
        return faults;
    }
    let p99 = |record: &Record| record.quantile_ns(0.99);
    match (p99(&seen.elsewhere), p99(&seen.attacked)) {
        (Some(elsewhere_ns), Some(attacked_ns)) => {
            if attacked_ns > SLOWER * elsewhere_ns.max(FAST_NS / SLOWER) {
                faults.push(Fault::Slow {
                    elsewhere_ns,
                    attacked_ns,
                });
            }
        }
        _ => faults.push(Fault::NoCalls),
    }
    let kib = seen.late_growth_kib();
    if kib > LATE_GROWTH_KIB {
        faults.push(Fault::Grows { kib });
    }
    faults
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LostSessions(count) => write!(f, "the healthy client lost {count} sessions"),
            Self::WrongAnswers(count) => write!(f, "it got {count} wrong answers"),
            Self::FailedCalls(count) => write!(f, "{count} of its calls failed"),
            Self::RefusedSessions(count) => write!(f, "it could not make {count} new sessions"),
            Self::NoCalls => f.write_str("it made no calls"),
            Self::Slow {
                elsewhere_ns,
                attacked_ns,
            } => write!(
                f,
                "its 99th percentile was {} µs while its server was attacked, and {} µs while \
                 another one was",
                attacked_ns / 1_000,
                elsewhere_ns / 1_000
            ),
            Self::Twice(count) => write!(f, "{count} requests came to a handler twice"),
            Self::Changed(count) => write!(f, "{count} requests changed under a handler"),
            Self::Grew { kib } => write!(f, "the server's memory grew by {kib} KiB"),
            Self::Grows { kib } => {
                write!(f, "the server's memory does not stop growing: {kib} KiB")
            }
            Self::Complaint(what) => f.write_str(what),
        }
    }
}

#[cfg(test)]
mod tests;
