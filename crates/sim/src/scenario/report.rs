//! What a run was like, in numbers.
//!
//! Invariant: rates are of virtual time. Called by `scenario`, read by the command line.

use dunlin_core::Nanos;
use hdrhistogram::Histogram;

use super::Scenario;
use super::build::{Counted, Endpoints, Snapshot};
use super::stats::{SharedStats, StageStats};
use crate::net::NetCounters;

/// One run.
#[derive(Clone, PartialEq, Debug)]
pub struct Report {
    /// When it ended.
    pub end: Nanos,
    /// Each load.
    pub loads: Vec<LoadReport>,
    /// What happened to frames until the warm-up was over, and after it.
    pub frames: [NetCounters; 2],
    /// The network over time.
    pub series: Vec<Point>,
    /// A number that any change of the run changes.
    pub digest: u64,
}

/// One load of a run.
#[derive(Clone, PartialEq, Debug)]
pub struct LoadReport {
    /// What it is called.
    pub name: String,
    /// Until the warm-up was over.
    pub opening: Stage,
    /// After that: what counts.
    pub steady: Stage,
}

/// A load during a part of a run.
#[derive(Clone, PartialEq, Debug)]
pub struct Stage {
    /// How long it was.
    pub span: Nanos,
    /// Data that arrived at its endpoints, in 10⁹ bits per second.
    pub gbps: f64,
    /// RPCs that ended well, per second.
    pub rpcs: f64,
    /// The same for each host with clients.
    pub rpcs_per_host: f64,
    /// RPCs that ended well.
    pub completed: u64,
    /// RPCs that did not.
    pub failed: u64,
    /// From call to continuation.
    pub latency: Quantiles,
    /// Of packets, as clients measure them.
    pub rtt: Quantiles,
    /// Jain's index of what the clients got across: 1 if each got the same.
    pub jain: f64,
    /// Packets sent.
    pub packets: u64,
    /// Packets sent again.
    pub resent: u64,
}

/// Quantiles in nanoseconds; all are 0 if nothing was recorded.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Quantiles {
    /// How many values there were.
    pub count: u64,
    /// Half were shorter.
    pub p50: u64,
    /// 90 of 100 were shorter.
    pub p90: u64,
    /// 99 of 100 were shorter.
    pub p99: u64,
    /// 999 of 1000 were shorter.
    pub p999: u64,
    /// 9999 of 10 000 were shorter.
    pub p9999: u64,
    /// The longest.
    pub max: u64,
}

/// The network at a time.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Point {
    /// When.
    pub at: Nanos,
    /// Bytes in the longest queue of any switch.
    pub longest_queue: u64,
    /// Bytes in the fullest memory of any switch.
    pub fullest_switch: u64,
    /// Data that arrived since the point before, in 10⁹ bits per second.
    pub gbps: f64,
}

impl Report {
    pub(super) fn new(
        scenario: &Scenario,
        [begin, warm, end]: [&Snapshot; 3],
        stats: &[SharedStats],
        series: Vec<Point>,
        digest: u64,
    ) -> Self {
        let loads = scenario.loads.iter().zip(stats).enumerate();
        let loads = loads.map(|(index, (load, stats))| {
            let [opening, steady] = &stats.borrow().stages;
            let hosts = load.clients.len();
            let stage = |from, to, stats| Stage::new(index, hosts, from, to, stats);
            LoadReport {
                name: load.name.clone(),
                opening: stage(begin, warm, opening),
                steady: stage(warm, end, steady),
            }
        });
        Self {
            end: end.at,
            loads: loads.collect(),
            frames: [warm.net, end.net.since(&warm.net)],
            series,
            digest,
        }
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "counts of a run are far below 2^53"
)]
impl Stage {
    fn new(load: usize, hosts: usize, from: &Snapshot, to: &Snapshot, stats: &StageStats) -> Self {
        let span = to.at.since(from.at);
        let pairs = || {
            let pairs = from.members.iter().zip(&to.members);
            pairs.filter(|(_, after)| after.role.load == load)
        };
        let sum = |what: &dyn Fn(&Counted) -> u64| -> u64 {
            pairs()
                .map(|(before, after)| what(after) - what(before))
                .sum()
        };
        let clients = pairs().filter(|(_, after)| after.role.calls);
        let shares = clients.map(|(before, after)| {
            (after.traffic.delivered_bytes - before.traffic.delivered_bytes) as f64
        });
        let rpcs = stats.completed as f64 * 1e9 / span.0.max(1) as f64;
        Self {
            span,
            gbps: gbps(sum(&|it| it.traffic.received_bytes), span),
            rpcs,
            rpcs_per_host: rpcs / hosts.max(1) as f64,
            completed: stats.completed,
            failed: stats.failed,
            latency: Quantiles::of(&stats.latency),
            rtt: Quantiles::of(&stats.rtt),
            jain: jain(shares),
            packets: sum(&|it| it.tx_packets),
            resent: sum(&|it| it.retransmissions),
        }
    }

    /// Share of its packets that were sent again.
    pub fn resent_share(&self) -> f64 {
        self.resent as f64 / self.packets.max(1) as f64
    }
}

impl Quantiles {
    fn of(histogram: &Histogram<u64>) -> Self {
        if histogram.is_empty() {
            return Self::default();
        }
        let at = |quantile| histogram.value_at_quantile(quantile);
        Self {
            count: histogram.len(),
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p999: at(0.999),
            p9999: at(0.9999),
            max: histogram.max(),
        }
    }
}

/// The series over time while it grows.
pub(super) struct Series {
    pub(super) points: Vec<Point>,
    data: u64,
    at: Nanos,
}

impl Series {
    pub(super) fn new() -> Self {
        Self {
            points: Vec::new(),
            data: 0,
            at: Nanos::ZERO,
        }
    }

    pub(super) fn take(&mut self, endpoints: &Endpoints, at: Nanos) {
        let mut net = endpoints.net().borrow_mut();
        let (longest_queue, fullest_switch) = net.fullest();
        let data = net.counters.delivered_bytes;
        self.points.push(Point {
            at,
            longest_queue,
            fullest_switch,
            gbps: gbps(data - self.data, at.since(self.at)),
        });
        (self.data, self.at) = (data, at);
    }
}

#[expect(clippy::cast_precision_loss, reason = "a rate for people to read")]
fn gbps(bytes: u64, span: Nanos) -> f64 {
    bytes as f64 * 8.0 / span.0.max(1) as f64
}

/// Jain's fairness index: 1 if all shares are equal, 1/n if one has everything.
fn jain(shares: impl Iterator<Item = f64>) -> f64 {
    let (mut count, mut sum, mut squares) = (0.0, 0.0, 0.0);
    for share in shares {
        count += 1.0;
        sum += share;
        squares += share * share;
    }
    match squares > 0.0 {
        true => sum * sum / (count * squares),
        false => 0.0,
    }
}
