//! The result of a run, in numbers.
//!
//! Invariant: rates are of virtual time. Called by `scenario`, read by the command line.

use dunlin_core::Nanos;
use hdrhistogram::{Counter, Histogram};

use super::Scenario;
use super::build::{Counted, Endpoints, Snapshot};
use super::stats::{Latencies, SharedStats, StageStats, Ways};
use crate::world::net::NetCounters;

/// One run.
#[derive(Clone, PartialEq, Debug)]
pub struct Report {
    /// When it ended.
    pub end: Nanos,
    /// Each load.
    pub loads: Vec<LoadReport>,
    /// Frames until the warm-up was over, and after it.
    pub frames: [NetCounters; 2],
    /// The network over time.
    pub series: Vec<Point>,
    /// A number that changes with any change of the run.
    pub digest: u64,
}

/// One load of a run.
#[derive(Clone, PartialEq, Debug)]
pub struct LoadReport {
    /// Its name.
    pub name: String,
    /// The time until the warm-up was over.
    pub opening: Stage,
    /// The time after that: the part that counts.
    pub steady: Stage,
}

/// A load during a part of a run.
#[derive(Clone, PartialEq, Debug)]
pub struct Stage {
    /// How long it was.
    pub span: Nanos,
    /// Data that arrived at its endpoints, in 10⁹ bits per second.
    pub gbps: f64,
    /// RPCs that succeeded, per second.
    pub rpcs: f64,
    /// The same for each host with clients.
    pub rpcs_per_host: f64,
    /// RPCs that succeeded.
    pub completed: u64,
    /// RPCs that failed.
    pub failed: u64,
    /// Time from call to continuation; in an open loop, from arrival.
    pub latency: Quantiles,
    /// The part of the latency until the server answers, including the wait for a slot.
    pub latency_across: Quantiles,
    /// The part of the latency after the server has answered.
    pub latency_back: Quantiles,
    /// Round trips of packets, as clients measure them.
    pub rtt: Quantiles,
    /// Jain's index of the data that arrived from each client: 1 if all have the same rate.
    pub jain: f64,
    /// Jain's index of the data that each client got back.
    pub jain_back: f64,
    /// Data that arrived from all clients together, in 10⁹ bits per second.
    pub gbps_across: f64,
    /// Data that all clients together got back. If an endpoint is also a server, this includes the
    /// requests to it, and `gbps_across` includes its answers.
    pub gbps_back: f64,
    /// Each client, in the order of hosts.
    pub clients: Vec<Client>,
    /// Packets sent.
    pub packets: u64,
    /// Packets sent again.
    pub resent: u64,
}

/// A client during a part of a run.
#[derive(Clone, PartialEq, Debug)]
pub struct Client {
    /// Its host.
    pub host: usize,
    /// Data that arrived from it, in 10⁹ bits per second.
    pub gbps_across: f64,
    /// Data that it got back, in the same unit.
    pub gbps_back: f64,
    /// Its RPCs that succeeded, per second.
    pub rpcs: f64,
    /// Its RPCs that failed.
    pub failed: u64,
    /// Like [`Stage::latency`], with two digits.
    pub latency: Quantiles,
    /// The part of it until the server answers.
    pub latency_across: Quantiles,
    /// The rest.
    pub latency_back: Quantiles,
}

/// A count of values, and their mean and quantiles in nanoseconds; all are 0 if nothing was
/// recorded.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Quantiles {
    /// How many values there were.
    pub count: u64,
    /// Their mean.
    pub mean: u64,
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

/// The network at one moment.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Point {
    /// The moment.
    pub at: Nanos,
    /// Bytes in the longest queue of any switch.
    pub longest_queue: u64,
    /// Bytes in the fullest memory of any switch.
    pub fullest_switch: u64,
    /// Data that arrived since the previous point, in 10⁹ bits per second.
    pub gbps: f64,
}

impl Report {
    pub(super) fn new(
        scenario: &Scenario,
        [begin, warm, end]: [&Snapshot; 3],
        stats: &[SharedStats],
        latencies: &[Latencies],
        series: Vec<Point>,
        digest: u64,
    ) -> Self {
        let loads = scenario.loads.iter().zip(stats).enumerate();
        let loads = loads.map(|(index, (load, stats))| {
            let [opening, steady] = &stats.borrow().stages;
            let hosts = load.clients.len();
            let stage = |number, [from, to]: [&Snapshot; 2], stats| {
                let span = Span {
                    load: index,
                    number,
                    from,
                    to,
                };
                Stage::new(&span, hosts, stats, latencies)
            };
            LoadReport {
                name: load.name.clone(),
                opening: stage(0, [begin, warm], opening),
                steady: stage(1, [warm, end], steady),
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

/// A load between two snapshots.
struct Span<'a> {
    load: usize,
    /// Which stage of the run it is.
    number: usize,
    from: &'a Snapshot,
    to: &'a Snapshot,
}

impl Span<'_> {
    fn time(&self) -> Nanos {
        self.to.at.since(self.from.at)
    }

    /// Its endpoints: the number of each, and its counts before and after.
    fn members(&self) -> impl Iterator<Item = (usize, &Counted, &Counted)> {
        let pairs = self.from.members.iter().zip(&self.to.members).enumerate();
        let of_load = pairs.filter(|(_, (_, after))| after.role.load == self.load);
        of_load.map(|(index, (before, after))| (index, before, after))
    }

    fn sum(&self, what: impl Fn(&Counted) -> u64) -> u64 {
        let counts = self
            .members()
            .map(|(_, before, after)| what(after) - what(before));
        counts.sum()
    }

    fn clients(&self, latencies: &[Latencies]) -> Vec<Client> {
        let span = self.time();
        let clients = self.members().filter(|(_, _, after)| after.role.calls);
        let client = |(index, before, after): (usize, &Counted, &Counted)| {
            let times = latencies[index].of(self.number);
            let [latency, latency_across, latency_back] = times.map(of_ways).unwrap_or_default();
            let (was, is) = (before.traffic, after.traffic);
            Client {
                host: after.role.host,
                gbps_across: gbps(is.delivered_bytes - was.delivered_bytes, span),
                gbps_back: gbps(is.received_bytes - was.received_bytes, span),
                rpcs: per_second(latency.count, span),
                failed: latencies[index].failed(self.number),
                latency,
                latency_across,
                latency_back,
            }
        };
        clients.map(client).collect()
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "counts of a run are far below 2^53"
)]
impl Stage {
    fn new(at: &Span<'_>, hosts: usize, stats: &StageStats, latencies: &[Latencies]) -> Self {
        let span = at.time();
        let clients = at.clients(latencies);
        let across = || clients.iter().map(|client| client.gbps_across);
        let back = || clients.iter().map(|client| client.gbps_back);
        let rpcs = per_second(stats.completed, span);
        let [latency, latency_across, latency_back] = of_ways(&stats.latency);
        Self {
            span,
            gbps: gbps(at.sum(|it| it.traffic.received_bytes), span),
            rpcs,
            rpcs_per_host: rpcs / hosts.max(1) as f64,
            completed: stats.completed,
            failed: stats.failed,
            latency,
            latency_across,
            latency_back,
            rtt: Quantiles::of(&stats.rtt),
            jain: jain(across()),
            jain_back: jain(back()),
            gbps_across: across().sum(),
            gbps_back: back().sum(),
            packets: at.sum(|it| it.tx_packets),
            resent: at.sum(|it| it.retransmissions),
            clients,
        }
    }

    /// Share of its packets that were sent again.
    pub fn resent_share(&self) -> f64 {
        self.resent as f64 / self.packets.max(1) as f64
    }
}

impl Quantiles {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a mean of times is between the least and the most of them"
    )]
    fn of<C: Counter>(histogram: &Histogram<C>) -> Self {
        if histogram.is_empty() {
            return Self::default();
        }
        let at = |quantile| histogram.value_at_quantile(quantile);
        Self {
            count: histogram.len(),
            mean: histogram.mean() as u64,
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p999: at(0.999),
            p9999: at(0.9999),
            max: histogram.max(),
        }
    }
}

/// The quantiles of whole times, and of both parts.
fn of_ways<C: Counter>(times: &Ways<C>) -> [Quantiles; 3] {
    [&times.whole, &times.across, &times.back].map(Quantiles::of)
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

#[expect(clippy::cast_precision_loss, reason = "a rate for people to read")]
fn per_second(count: u64, span: Nanos) -> f64 {
    count as f64 * 1e9 / span.0.max(1) as f64
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
