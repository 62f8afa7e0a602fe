//! `index`: gets from an ordered index of a million items, whose keys and values have 8 bytes (eRPC
//! §7.2). The experiment measures them without scans, and with scans as 1 % of the operations. A
//! scan sums 128 values, in a worker or in the dispatch thread.
//!
//! In the same measurement, the same processes also exchange echoes of the same lengths as gets,
//! and the server's thread gets the same items from a tree by the tree's own crate, without any
//! message. A service that did one echo and one such get for each operation, one after the other,
//! would have the rate 1 / (1 / echoes + 1 / direct gets).
//!
//! | file | what it owns |
//! |---|---|
//! | `index/scans.rs` | how many operations are scans, and where they run |
//! | `index/tree.rs` | the items, and the costs of direct gets and scans on the tree |
//! | `index/server.rs` | the process that serves the index |
//! | `index/client.rs` | the process that gets, scans and echoes |
//! | `index/simulated.rs` | a server with 16 threads in the simulator |

mod client;
mod scans;
mod server;
mod simulated;
mod tree;

use std::time::Duration;

use serde_json::Value;

use crate::harness::case::Case;
use crate::harness::experiment::{Experiment, Section};
use crate::harness::probe::{Against, Measurement, Metric, Probe};
use crate::harness::subject;
use crate::harness::transport::Transport;
use crate::output::aims::{Aim, Bound, Of};
use crate::output::chart::{bar, bars, colour, word};
use crate::output::papers::{Beside, Param, Published};
use harness::draw::{Picture, zero_based};
use harness::row::Row;

use client::{INFLIGHT, Outcome, Step, WARM_UP};
use scans::Scans;
use server::Server;
use simulated::{Shared, Threads};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "index",
    about: "Gets and scans of the ordered index, against echoes and the tree alone; not part of \
            `all`",
    cases: |sweep| Ok(cases(sweep.transports)),
    roles: &[server::ROLE, client::ROLE],
    transports: &Transport::SIMULATED_TOO,
    allowed: &Transport::WITH_SIM,
    usual_time: Duration::from_secs(120),
    is_in_all: false,
    is_compared: false,
    section: Some(Section {
        title: "The ordered index",
        text: "One client gets items from a server with one dispatch thread, and has 60 gets in \
               flight. The index has a million items with keys and values of 8 bytes. In rows with \
               scans, one operation of a hundred sums the values of 128 keys instead. The baseline \
               exchanges echoes of the same lengths between the same processes. bound_ratio is the \
               rate of gets over the rate of a service that does an echo and then a get by the \
               tree's own crate, one after the other. Rows with scans in workers need a processor \
               for each thread, so they mean little on a machine with two. Simulated rows have the \
               paper's network, its 16 threads and its 64 clients with two operations each; gets \
               and scans cost what they cost on this machine's tree. In the baseline of these \
               rows, all 16 threads dispatch.",
    }),
    charts,
    published: PUBLISHED,
    aims: AIMS,
    ..Experiment::BASE
};

/// Figures of the paper.
const PUBLISHED: &[Published] = &[
    published(
        "get_p99",
        12_000.0,
        "workers",
        "eRPC, CX3, Masstree, 14 + 2 threads",
    ),
    published(
        "get_p99",
        26_000.0,
        "dispatch",
        "eRPC, CX3, Masstree, dispatch alone",
    ),
    published(
        "gets_per_s",
        14.3e6,
        "workers",
        "eRPC, CX3, Masstree, 14 + 2 threads",
    ),
    Published {
        source: "eRPC, table 2",
        ..published("echo_p50", 2_100.0, "workers", "eRPC, CX3")
    },
];

/// The rate of gets as a share of its bound, in which each get costs an echo and a get of the tree;
/// and the gain by workers, as in the paper.
const AIMS: &[Aim] = &[
    Aim {
        metric: "bound_ratio",
        transport: "shm",
        params: &[("scans", "none")],
        of: Of::Value,
        bound: Bound::AtLeast(0.85),
    },
    Aim::of_ratio(
        ("get_p99", "sim"),
        &[("scans", "workers")],
        Bound::AtMost(0.5),
    ),
];

/// The metrics of [`Gets`]. A measurement appends the rate of echoes to their values.
const GETS: [Metric; 3] = [
    Metric {
        name: "gets_per_s",
        unit: "1/s",
        against: Against::Own {
            index: 3,
            name: "echoes",
        },
    },
    Metric::alone("bound_ratio", ""),
    Metric::alone("tree_per_s", "1/s"),
];

/// The metrics of [`Mixed`]. A measurement appends the figures of echoes to their values.
const MIXED: [Metric; 5] = [
    mixed("gets_per_s", "1/s", 5),
    mixed("get_p50", "ns", 6),
    mixed("get_p99", "ns", 7),
    Metric::alone("scan_p50", "ns"),
    Metric::alone("scans_per_s", "1/s"),
];

const fn mixed(name: &'static str, unit: &'static str, index: usize) -> Metric {
    Metric {
        name,
        unit,
        against: Against::Own {
            index,
            name: "echoes",
        },
    }
}

/// Only gets.
#[derive(Clone, Copy, Debug)]
struct Gets(Transport);

/// Gets with 1 % scans.
#[derive(Clone, Copy, Debug)]
struct Mixed(Transport, Scans);

fn cases(transports: &[Transport]) -> Vec<Case> {
    let mut cases = Vec::new();
    let (real, simulated) = Transport::split(transports);
    for transport in real {
        let name = transport.name();
        cases.push(Case::new(
            "index",
            name,
            &params(Scans::None),
            Gets(transport),
        ));
        for scans in [Scans::Workers, Scans::Dispatch] {
            let mixed = Mixed(transport, scans);
            cases.push(Case::new("index", name, &params(scans), mixed));
        }
    }
    if simulated {
        cases.extend(simulated_cases());
    }
    cases
}

fn simulated_cases() -> [Case; 2] {
    let shared = Shared::default();
    let threads = |scans| Threads::new(scans, shared.clone());
    [Scans::Workers, Scans::Dispatch].map(|scans| {
        let [scans_param, _] = params(scans);
        let all = [scans_param, ("threads", simulated::THREADS.into())];
        let case = Case::new("index", "sim", &all, threads(scans));
        match scans {
            Scans::Workers => case.against(threads(Scans::Dispatch)),
            _ => case,
        }
    })
}

fn params(scans: Scans) -> [(&'static str, Value); 2] {
    [
        ("scans", scans.name().into()),
        ("inflight", INFLIGHT.into()),
    ]
}

/// The outcomes of the client's steps, and the rate of gets by the tree's own crate.
struct Run {
    outcomes: Vec<Outcome>,
    tree_per_s: f64,
    measurement: Measurement,
}

/// Starts a server and a client, and measures these steps.
fn run(
    transport: Transport,
    scans: Scans,
    steps: &[Step],
    (span, alone): (Duration, Duration),
) -> anyhow::Result<Run> {
    let (setting, other) = subject::spinning_pair(transport);
    let mut server = Server::start(other, scans, alone)?;
    let params = client::Params {
        setting,
        server: server.found.address,
        steps: steps.to_vec(),
        span,
    };
    let (outcomes, side) = client::run(&params)?;
    let theirs = server.stop()?;
    let alarms = [side.alarm("client"), theirs.alarm("server")];
    Ok(Run {
        outcomes,
        tree_per_s: server.found.tree_per_s,
        measurement: Measurement {
            values: Vec::new(),
            alarms: alarms.into_iter().flatten().collect(),
            details: vec![side.line("client"), theirs.line("server")],
        },
    })
}

impl Probe for Gets {
    fn name(&self) -> &'static str {
        "ordered index"
    }

    fn metrics(&self) -> &'static [Metric] {
        &GETS
    }

    fn overhead(&self) -> Duration {
        subject::SET_UP + 2 * tree::FILLING + 4 * WARM_UP
    }

    fn measure(&mut self, span: Duration) -> anyhow::Result<Measurement> {
        let steps = [Step::Echo, Step::Get, Step::Echo, Step::Get];
        let mut run = run(self.0, Scans::None, &steps, (span / 5, span / 5))?;
        let rate = |from: usize| {
            f64::midpoint(
                run.outcomes[from].gets_per_s,
                run.outcomes[from + 2].gets_per_s,
            )
        };
        let (echoes, gets) = (rate(0), rate(1));
        let bound = 1.0 / (1.0 / echoes + 1.0 / run.tree_per_s);
        run.measurement.values = vec![gets, gets / bound, run.tree_per_s, echoes];
        Ok(run.measurement)
    }
}

impl Probe for Mixed {
    fn name(&self) -> &'static str {
        "ordered index with scans"
    }

    fn metrics(&self) -> &'static [Metric] {
        &MIXED
    }

    fn overhead(&self) -> Duration {
        subject::SET_UP + tree::FILLING + 2 * WARM_UP
    }

    fn measure(&mut self, span: Duration) -> anyhow::Result<Measurement> {
        let steps = [Step::Echo, Step::Mixed];
        let mut run = run(self.0, self.1, &steps, (span / 2, Duration::ZERO))?;
        let [echo, mixed] = [run.outcomes[0], run.outcomes[1]];
        run.measurement.values = vec![
            mixed.gets_per_s,
            mixed.get_p50,
            mixed.get_p99,
            mixed.scan_p50,
            mixed.scans_per_s,
            echo.gets_per_s,
            echo.get_p50,
            echo.get_p99,
        ];
        Ok(run.measurement)
    }
}

fn charts(rows: &[&Row]) -> Vec<Picture> {
    let of = |metric: &str, title: &str, (what, unit): (&str, &'static str)| {
        let wanted = rows.iter().filter(|row| row.metric == metric);
        let all = wanted.map(|row| {
            let scans = word(row, "scans").unwrap_or_default();
            let name = format!("{}, scans: {scans}", row.transport);
            bar(row, name, colour(&row.transport))
        });
        let baseline = "echoes; sim: all threads dispatch";
        bars(title, zero_based(what, unit), baseline, all.collect())
    };
    vec![
        of(
            "gets_per_s",
            "Rate of gets from the ordered index",
            ("gets per second", "1/s"),
        ),
        of(
            "get_p99",
            "Gets from the ordered index with 1 % scans, 99th percentile",
            ("time of a get", "ns"),
        ),
    ]
}

const fn published(
    metric: &'static str,
    value: f64,
    scans: &'static str,
    what: &'static str,
) -> Published {
    Published {
        metric,
        params: [
            Some(("scans", Param::Word(scans))),
            Some(("threads", Param::Number(16.0))),
            None,
            None,
        ],
        beside: Beside::Median,
        value,
        what,
        source: "eRPC, §7.2",
    }
}
