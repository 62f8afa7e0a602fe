//! The observations of a run, and the faults that they reveal.

use std::fmt;
use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;

use crate::attack::Attack;
use crate::words::{Counts, Deeds, Event, Stats};

/// How many times slower the healthy client may be while its own server is attacked than while
/// another server is. In both cases the attackers take the same processor time, in the same bursts.
const SLOWER: u64 = 3;
/// The most growth of the server's memory over the whole run.
const GROWTH_KIB: u64 = 64 << 10;
/// The most growth in the second half of a run, by the line that fits best; it allows a pool to get
/// one more region.
const LATE_GROWTH_KIB: f64 = 4096.0;
/// With fewer samples of the memory than this, a run is too short to be judged by halves.
const LOOKS: usize = 100;
/// Packets that the server must read in a run with `--reach`, and connections that it must answer.
const PACKETS: u64 = 100_000_000;
const CONNECTIONS: u64 = 1_000_000;

/// A part of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Phase {
    /// Nothing attacks.
    Quiet,
    /// Another server is attacked at a steady pace.
    Elsewhere,
    /// The client's own server is attacked at a steady pace.
    Attacked,
    /// The client's own server is attacked at a pace that fills its socket.
    Storm,
}

/// Everything that a run has seen.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// The attacks that the run should have.
    pub(crate) attacks: Vec<Attack>,
    pub(crate) quiet: Record,
    pub(crate) elsewhere: Record,
    pub(crate) attacked: Record,
    pub(crate) storm: Record,
    /// Packets at the server since the attacks began.
    pub(crate) counts: Counts,
    pub(crate) memory_before_kib: u64,
    pub(crate) memory_kib: Vec<u64>,
    pub(crate) events: Vec<Event>,
    /// Attackers that ended before their time.
    pub(crate) ended: Vec<String>,
    pub(crate) interrupted: bool,
    /// Phases in which the machine stood still: the longest standstill in each.
    pub(crate) still: Vec<Duration>,
}

/// All phases of a kind.
#[derive(Debug, Default)]
pub(crate) struct Record {
    pub(crate) stats: Stats,
    pub(crate) deeds: Deeds,
    /// The 99th percentile of each phase in which the machine did not stand still.
    pub(crate) p99s_ns: Vec<u64>,
}

/// Something that must not happen.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Fault {
    /// The healthy client lost sessions.
    LostSessions(u64),
    /// The healthy client got wrong answers.
    WrongAnswers(u64),
    /// The healthy client's calls ended with errors.
    FailedCalls(u64),
    /// The healthy client could not open new sessions.
    RefusedSessions(u64),
    /// The healthy client made no calls at all.
    NoCalls,
    /// The healthy client was slow. The medians of its 99th percentiles, in nanoseconds: while
    /// another server was attacked, and while its own was.
    Slow { elsewhere_ns: u64, attacked_ns: u64 },
    /// Requests reached a handler twice.
    Twice(usize),
    /// Requests changed while a handler read them.
    Changed(usize),
    /// The server's memory grew.
    Grew { kib: u64 },
    /// The server's memory grew in the second half of the run.
    Grows { kib: f64 },
    /// The server read too few packets, or answered too few connections.
    TooFew { packets: u64, connections: u64 },
    /// The attack with this name never reached the server.
    Idle(&'static str),
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
            Phase::Storm => &mut self.storm,
        };
        record.p99s_ns.extend(quantile_ns(&stats.latencies, 0.99));
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

    /// Adds a phase in which the machine stood still. Its latencies are ignored; everything else
    /// counts.
    pub(crate) fn stood_still(
        &mut self,
        phase: Phase,
        rest: Duration,
        stats: Stats,
        deeds: Vec<Deeds>,
    ) {
        let latencies = Vec::new();
        self.add(phase, Stats { latencies, ..stats }, deeds);
        self.still.push(rest);
    }

    /// How often an attack has reached the server.
    fn hits(&self, attack: Attack) -> u64 {
        let deeds = self.deeds();
        match attack {
            Attack::Blaster => deeds.packets.min(self.counts.refused),
            Attack::Floods => deeds.answered,
            Attack::Scribbler => deeds.words,
            Attack::Drills => deeds.kills.min(deeds.stops),
        }
    }

    fn records(&self) -> [&Record; 4] {
        [&self.quiet, &self.elsewhere, &self.attacked, &self.storm]
    }

    /// The work of all attackers.
    pub(crate) fn deeds(&self) -> Deeds {
        let mut deeds = self.attacked.deeds.clone();
        deeds.add(self.storm.deeds.clone());
        deeds
    }

    /// Whether there were enough packets and connections for a run with `--reach`.
    pub(crate) fn has_reached(&self) -> bool {
        self.counts.read >= PACKETS && self.deeds().answered >= CONNECTIONS
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

    /// The largest growth of the server's memory so far.
    pub(crate) fn growth_kib(&self) -> u64 {
        let most = self.memory_kib.iter().max().copied().unwrap_or(0);
        most.saturating_sub(self.memory_before_kib)
    }

    /// The growth in the second half of the run, by the line that fits it best.
    fn late_growth_kib(&self) -> f64 {
        match self.memory_kib.len() {
            0..LOOKS => 0.0,
            len => growth(&self.memory_kib[len / 2..]),
        }
    }
}

impl Record {
    /// The latency, in nanoseconds, that this share of the calls did not exceed.
    pub(crate) fn quantile_ns(&self, part: f64) -> Option<u64> {
        quantile_ns(&self.stats.latencies, part)
    }

    /// The median of the 99th percentiles.
    pub(crate) fn p99_ns(&self) -> Option<u64> {
        let mut all = self.p99s_ns.clone();
        all.sort_unstable();
        all.get(all.len() / 2).copied()
    }
}

fn quantile_ns(latencies: &[(u64, u64)], part: f64) -> Option<u64> {
    let mut all = Histogram::<u64>::new(3).ok()?;
    for (value, count) in latencies {
        all.record_n(*value, *count).ok()?;
    }
    (!all.is_empty()).then(|| all.value_at_quantile(part))
}

/// By how much these values grow from the first to the last, by least squares.
#[expect(clippy::cast_precision_loss, reason = "both are far below 2⁵²")]
fn growth(values: &[u64]) -> f64 {
    let middle = (values.len() - 1) as f64 / 2.0;
    let (mut together, mut squares) = (0.0, 0.0);
    for (place, value) in values.iter().enumerate() {
        let from_middle = place as f64 - middle;
        together += from_middle * *value as f64;
        squares += from_middle * from_middle;
    }
    2.0 * middle * together / squares
}

/// The faults that are already certain, however the run continues.
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

/// All faults of a run that is over. `reach`: the server must have read 10⁸ packets and answered
/// 10⁶ connections.
pub(crate) fn faults(seen: &Seen, reach: bool) -> Vec<Fault> {
    let mut faults = at_once(seen);
    if seen.interrupted {
        return faults;
    }
    match (seen.elsewhere.p99_ns(), seen.attacked.p99_ns()) {
        (Some(elsewhere_ns), Some(attacked_ns)) if attacked_ns > SLOWER * elsewhere_ns => {
            faults.push(Fault::Slow {
                elsewhere_ns,
                attacked_ns,
            });
        }
        (Some(_), Some(_)) => {}
        _ => faults.push(Fault::NoCalls),
    }
    let idle = |attack: &&Attack| seen.hits(**attack) == 0;
    let idle = seen.attacks.iter().filter(idle);
    faults.extend(idle.map(|attack| Fault::Idle(attack.name())));
    let kib = seen.late_growth_kib();
    if kib > LATE_GROWTH_KIB {
        faults.push(Fault::Grows { kib });
    }
    if reach && !seen.has_reached() {
        faults.push(Fault::TooFew {
            packets: seen.counts.read,
            connections: seen.deeds().answered,
        });
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
            Self::Changed(count) => write!(f, "{count} requests changed while a handler read them"),
            Self::Grew { kib } => write!(f, "the server's memory grew by {kib} KiB"),
            Self::Grows { kib } => {
                write!(f, "the server's memory does not stop growing: {kib:.0} KiB")
            }
            Self::TooFew {
                packets,
                connections,
            } => write!(
                f,
                "the server read only {packets} packets and answered {connections} connections"
            ),
            Self::Idle(attack) => write!(f, "the attack \"{attack}\" did nothing to the server"),
            Self::Complaint(what) => f.write_str(what),
        }
    }
}

#[cfg(test)]
mod tests;
