//! `kv` in the simulator: HERD's experiments with many clients and cores (HERD §5.5 to §5.7,
//! figures 12 to 14), for which this machine is too small. The endpoints, the service and its
//! client run unchanged; the simulator charges their threads for packets and operations.
//!
//! Two costs are chosen so that the simulated machine matches the paper's: the time of an
//! operation, so that one core serves 6.3 million operations a second (figure 13), and the rate of
//! the server's NIC, which the cores share, so that six cores serve 26 million (figure 9). In the
//! paper, the PCIe bus sets that limit (HERD §5.7). Everything else follows: the rates with other
//! numbers of cores and of clients, and the load of each core under skew.

mod cluster;

use std::cell::Cell;
use std::time::Duration;

use serde_json::Value;

use crate::harness::case::Case;
use crate::harness::items::{Mix, Popularity, VALUE};
use crate::harness::probe::{Against, Measurement, Metric, Probe};
use crate::output::chart::{Wanted, chart, measured_line, word};
use crate::output::papers::{Beside, Param, Published};
use dunlin_core::Nanos;
use dunlin_sim::NetConfig;
use dunlin_sim::world::net::CpuCosts;
use harness::draw::{Axis, Picture, Scale};
use harness::row::Row;

/// Time of an operation in the server's thread, without its packets.
const OPERATION: Nanos = Nanos(67);

/// Cores that serve, unless a case has another number (HERD §5.1).
const CORES: u16 = 6;

/// Client processes of most of the paper's experiments (HERD §5.1), and HERD's window.
const CLIENTS: usize = 51;
const WINDOW: usize = 4;

/// The numbers of client processes, and the windows, of figure 12.
const MANY_CLIENTS: [usize; 4] = [51, 120, 260, 500];
const WINDOWS: [usize; 2] = [WINDOW, 16];

/// Items in cases where all are equally popular; their number does not matter.
const FEW_ITEMS: u32 = 1 << 16;

/// Items under skew. HERD does not state their number, only that the most popular one is requested
/// more than 10⁵ times as often as the average one (HERD §5.7). Of these items, the most popular
/// one is requested 4.7 × 10⁵ times as often. With more items, its share of all requests would be
/// smaller.
const ALL_ITEMS: u32 = 8 << 20;

/// A cluster, and the work of its clients.
#[derive(Clone, Copy, Debug)]
struct Shape {
    cores: u16,
    clients: usize,
    window: usize,
    mix: Mix,
    items: u32,
    /// Each round has other keys.
    seed: u64,
}

impl Shape {
    /// The number of the first item.
    fn first_item(&self) -> u32 {
        let round = u32::try_from(self.seed).unwrap_or(0) % 64;
        round * self.items
    }
}

const METRICS: [Metric; 3] = [
    Metric {
        name: "ops_per_s",
        unit: "1/s",
        against: Against::Baseline(0),
    },
    Metric::alone("ops_per_s_per_core", "1/s"),
    Metric::alone("most_per_least", ""),
];

/// Figures of the paper.
pub(super) const PUBLISHED: &[Published] = &[
    clients(260.0, "HERD, 6 cores"),
    clients(51.0, "HERD, 6 cores"),
    cores(1.0, 6.3e6, "HERD, 1 core", "HERD, §5.7"),
    cores(5.0, 24.7e6, "HERD, 5 cores (above this)", "HERD, §5.6"),
    cores(6.0, 26e6, "HERD, 6 cores", "HERD, figure 13"),
    skewed(
        "ops_per_s_per_core",
        "uniform",
        4.32e6,
        "HERD, each of 6 cores",
    ),
    skewed("most_per_least", "zipf", 1.5, "HERD, 6 cores"),
    skewed("ops_per_s", "zipf", 26e6, "HERD, 6 cores"),
];

/// The network, with its NICs, and the costs of packets for the threads.
fn network() -> NetConfig {
    NetConfig {
        line_rate: 15_020_000_000,
        // The paper's limit counts messages, whatever their length, so each frame takes far more
        // time than its bytes need.
        frame_overhead: 500,
        cable: Nanos(300),
        nic_bytes: 64 << 10,
        nic_waits: true,
        rx_queue: 1 << 16,
        // A packet is a frame, as a verb is in HERD.
        frame_bytes: 0,
        dma: (Nanos(200), Nanos(200)),
        cpu: CpuCosts {
            iteration: Nanos(30),
            packet: Nanos(40),
            kilobyte: Nanos(100),
        },
        ..NetConfig::default()
    }
}

/// A simulated cluster; each round has its own keys.
struct Simulated {
    shape: Shape,
    round: Cell<u64>,
}

/// All cases.
pub(super) fn cases() -> Vec<Case> {
    let usual = Shape {
        cores: CORES,
        clients: CLIENTS,
        window: WINDOW,
        mix: Mix::USUAL,
        items: FEW_ITEMS,
        seed: 0,
    };
    let mut cases = Vec::new();
    for window in WINDOWS {
        for clients in MANY_CLIENTS {
            let shape = Shape {
                clients,
                window,
                ..usual
            };
            cases.push(shape.case("12"));
        }
    }
    // The paper's figure has only sets.
    let sets = Mix {
        gets: 0,
        ..Mix::USUAL
    };
    for cores in 1..=CORES {
        let shape = Shape {
            cores,
            mix: sets,
            ..usual
        };
        cases.push(shape.case("13"));
    }
    let all = Shape {
        items: ALL_ITEMS,
        ..usual
    };
    let skewed = Shape {
        mix: Mix {
            popularity: Popularity::Zipf,
            ..Mix::USUAL
        },
        ..all
    };
    cases.push(all.case("14"));
    cases.push(skewed.case("14").against(Simulated::new(all)));
    cases
}

impl Shape {
    fn case(self, figure: &str) -> Case {
        let params: [(&str, Value); 7] = [
            ("figure", figure.into()),
            ("cores", self.cores.into()),
            ("clients", self.clients.into()),
            ("window", self.window.into()),
            ("popularity", self.mix.popularity.name().into()),
            ("gets", self.mix.gets.into()),
            ("value", VALUE.into()),
        ];
        Case::new("kv", "sim", &params, Simulated::new(self))
    }
}

impl Simulated {
    fn new(shape: Shape) -> Self {
        let round = Cell::new(0);
        Self { shape, round }
    }
}

impl Probe for Simulated {
    fn name(&self) -> &'static str {
        match self.shape.mix.popularity {
            Popularity::Uniform => "simulated, equally popular items",
            Popularity::Zipf => "simulated",
        }
    }

    fn metrics(&self) -> &'static [Metric] {
        &METRICS
    }

    fn overhead(&self) -> Duration {
        Duration::from_secs(if self.shape.items == ALL_ITEMS { 20 } else { 3 })
    }

    fn is_timed(&self) -> bool {
        false
    }

    /// Ignores the span, which is real time: the simulator has its own clock.
    fn measure(&mut self, _span: Duration) -> anyhow::Result<Measurement> {
        self.round.set(self.round.get() + 1);
        let shape = Shape {
            seed: self.round.get(),
            ..self.shape
        };
        let outcome = cluster::run(&shape)?;
        let of = |pick: fn(f64, f64) -> f64| outcome.by_core.iter().copied().reduce(pick);
        let (most, least) = (of(f64::max), of(f64::min));
        let ratio = most.unwrap_or(0.0) / least.unwrap_or(0.0);
        let mut measurement = Measurement::from(vec![
            outcome.per_s,
            outcome.per_s / f64::from(shape.cores),
            ratio,
        ]);
        measurement.details.push(format!(
            "operations per second of each core: {:.0?}",
            outcome.by_core
        ));
        Ok(measurement)
    }
}

/// Charts of figures 12 to 14.
pub(super) fn charts(rows: &[&Row]) -> Vec<Picture> {
    let by_window = |window: &'static str| {
        let wanted = Wanted {
            metric: "ops_per_s",
            x: "clients",
            params: &[("figure", "12")],
        };
        let is = |row: &&&Row| wanted.is(row) && word(row, "window").as_deref() == Some(window);
        let of: Vec<&Row> = rows.iter().filter(is).copied().collect();
        (wanted, of)
    };
    let mut clients = Vec::new();
    for (colour, window) in ["4", "16"].into_iter().enumerate() {
        let (wanted, of) = by_window(window);
        clients.push(measured_line(
            &format!("window {window}"),
            Some(colour),
            &of,
            wanted.x,
        ));
    }
    let wanted = Wanted {
        metric: "ops_per_s",
        x: "cores",
        params: &[("figure", "13")],
    };
    let of: Vec<&Row> = rows.iter().filter(|row| wanted.is(row)).copied().collect();
    let mut cores = vec![measured_line("sets", Some(0), &of, wanted.x)];
    cores.extend(wanted.published(PUBLISHED, Beside::Median));
    for lines in [&mut clients, &mut cores] {
        lines.retain(|line| !line.points.is_empty());
    }
    vec![
        chart(
            "Simulated: rate of six cores against the number of clients",
            Axis::new("client processes", "", Scale::Each),
            Axis::new("operations per second", "1/s", Scale::Linear),
            clients,
        ),
        chart(
            "Simulated: rate against the number of cores that serve",
            Axis::new("cores", "", Scale::Each),
            Axis::new("operations per second", "1/s", Scale::Linear),
            cores,
        ),
    ]
}

const fn clients(clients: f64, what: &'static str) -> Published {
    Published {
        metric: "ops_per_s",
        params: [
            Some(("figure", Param::Word("12"))),
            Some(("clients", Param::Number(clients))),
            Some(("window", Param::Number(4.0))),
            None,
        ],
        beside: Beside::Median,
        value: 26e6,
        what,
        source: "HERD, §5.5, figure 12",
    }
}

const fn cores(cores: f64, value: f64, what: &'static str, source: &'static str) -> Published {
    Published {
        metric: "ops_per_s",
        params: [
            Some(("figure", Param::Word("13"))),
            Some(("cores", Param::Number(cores))),
            None,
            None,
        ],
        beside: Beside::Median,
        value,
        what,
        source,
    }
}

const fn skewed(
    metric: &'static str,
    popularity: &'static str,
    value: f64,
    what: &'static str,
) -> Published {
    Published {
        metric,
        params: [
            Some(("figure", Param::Word("14"))),
            Some(("popularity", Param::Word(popularity))),
            None,
            None,
        ],
        beside: Beside::Median,
        value,
        what,
        source: "HERD, §5.7, figure 14",
    }
}

#[cfg(test)]
mod tests;
