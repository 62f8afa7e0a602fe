//! `loss` and `reorder`: the speed of 8 MB requests while packets are lost or late. The simulated
//! network has links of 100 Gb/s, round trips of 6 µs and packets of 4096 bytes, and each round has
//! its own seed. Over udp, xdp and dpdk, both ends drop some of the incoming datagrams; over xdp
//! and dpdk, they also delay some. The baseline is the same run without faults.

use std::time::Duration;

use anyhow::anyhow;
use dunlin_sim::scenario::bulk::{self, Bulk};
use dunlin_sim::world::rng::Ppm;
use serde_json::Value;

use super::bandwidth::Bandwidth;
use crate::harness::case::Case;
use crate::harness::experiment::{Experiment, Section};
use crate::harness::probe::{Against, Measurement, Metric, Probe};
use crate::harness::transport::Transport;
use crate::output::chart::{Wanted, by_transport, chart};
use crate::output::papers::{Beside, Param, Published};
use harness::draw::{Axis, Picture, Scale};
use harness::row::Row;

pub(super) const LOSS: Experiment = Experiment {
    name: "loss",
    about: "8 MB requests over networks that lose packets: a simulated one, and udp, xdp or dpdk \
            with deliberate loss",
    cases: |sweep| Ok(loss_cases(sweep.transports)),
    allowed: &LOSSY,
    section: Some(Section {
        title: "Loss",
        text: "8 MB requests over a simulated network of 100 Gb/s and 6 µs that loses packets, and \
               over kernel UDP, AF_XDP or DPDK whose receiver loses datagrams on purpose. The \
               baseline is the same without losses. The paper resends a lost packet and everything \
               after it, 5 ms later.",
    }),
    charts,
    published: PUBLISHED,
    ..Experiment::BASE
};

/// Figures of the paper.
const PUBLISHED: &[Published] = &[
    published(1e-7, 73.0),
    published(1e-6, 71.0),
    published(1e-5, 57.0),
    published(1e-4, 18.0),
    published(1e-3, 2.5),
];

pub(super) const REORDER: Experiment = Experiment {
    name: "reorder",
    about: "8 MB requests over networks that deliver packets late: a simulated one, xdp or dpdk",
    cases: |sweep| Ok(reorder_cases(sweep.transports)),
    allowed: &LOSSY,
    usual_time: Duration::from_secs(5),
    section: Some(Section {
        title: "Reordering",
        text: "8 MB requests over a simulated network, AF_XDP or DPDK that delivers some packets \
               late. The baseline is the same without late packets. The paper takes such packets \
               for lost.",
    }),
    charts: reorder_charts,
    ..Experiment::BASE
};

/// Transports that a command may name. Those that cannot lose packets on purpose add no case.
const LOSSY: [Transport; 6] = [
    Transport::Shm,
    Transport::Auto,
    Transport::Udp,
    Transport::Xdp,
    Transport::XdpNative,
    Transport::Dpdk,
];

/// Rates of loss: packets lost per million, and the number of requests in a round, which is large
/// enough for five rounds to lose about a hundred packets or more.
const LOSSES: [(u32, u32); 5] = [(0, 10), (10, 1000), (100, 100), (1_000, 20), (10_000, 10)];

/// Percentages of packets that are late, by up to 100 µs.
const LATE: [u32; 4] = [0, 1, 10, 50];

/// Requests of a round that loses nothing.
const REQUESTS: u32 = 10;

/// Approximate time that a request takes to simulate.
const PER_REQUEST: Duration = Duration::from_millis(2);

const METRICS: [Metric; 2] = [
    Metric {
        name: "gbps",
        unit: "Gbit/s",
        against: Against::Baseline(0),
    },
    Metric {
        name: "retransmissions",
        unit: "",
        against: Against::Own {
            index: 2,
            name: "packets lost",
        },
    },
];

/// Requests in the simulator. Rounds have the seeds 1, 2, and so on.
#[derive(Clone, Debug)]
struct Simulated {
    bulk: Bulk,
    name: &'static str,
}

/// Every rate of loss, in the simulator and over the given transports that can lose packets on
/// purpose.
pub(crate) fn loss_cases(transports: &[Transport]) -> Vec<Case> {
    let mut cases = Vec::new();
    for (per_million, requests) in LOSSES {
        let bulk = Bulk {
            loss: Ppm(per_million),
            requests,
            ..Bulk::default()
        };
        let params = [("loss", Value::from(f64::from(per_million) / 1e6))];
        cases.push(case("loss", &params, bulk));
        for transport in lossy(transports) {
            let lossy = |per_million| Bandwidth::of_lossy(transport, per_million, 0);
            let params = with_link(&params, transport);
            let case = Case::new("loss", transport.name(), &params, lossy(per_million));
            cases.push(case.against(lossy(0)));
        }
    }
    cases
}

/// Every percentage of late packets, in the simulator and over the given transports that have a
/// link.
pub(crate) fn reorder_cases(transports: &[Transport]) -> Vec<Case> {
    let mut cases = Vec::new();
    for percent in LATE {
        let late = percent * 10_000;
        let bulk = Bulk {
            reorder: Ppm(late),
            requests: REQUESTS,
            ..Bulk::default()
        };
        let params = [("percent", Value::from(percent))];
        cases.push(case("reorder", &params, bulk));
        for transport in lossy(transports).filter(|it| it.has_link()) {
            let lossy = |late| Bandwidth::of_lossy(transport, 0, late);
            let params = with_link(&params, transport);
            let case = Case::new("reorder", transport.name(), &params, lossy(late));
            cases.push(case.against(lossy(0)));
        }
    }
    cases
}

/// The given transports that can lose packets on purpose.
fn lossy(transports: &[Transport]) -> impl Iterator<Item = Transport> {
    let chosen = transports.iter().copied();
    chosen.filter(|it| *it == Transport::Udp || it.has_link())
}

/// These parameters, followed by the parameters of the transport's link.
fn with_link(params: &[(&'static str, Value)], transport: Transport) -> Vec<(&'static str, Value)> {
    let link = transport.params(true);
    params.iter().cloned().chain(link).collect()
}

fn case(experiment: &'static str, params: &[(&str, Value)], bulk: Bulk) -> Case {
    let sound = Bulk {
        loss: Ppm::NEVER,
        reorder: Ppm::NEVER,
        requests: REQUESTS,
        ..bulk.clone()
    };
    let simulated = |bulk, name| Simulated { bulk, name };
    Case::new(experiment, "sim", params, simulated(bulk, "large requests"))
        .against(simulated(sound, "without faults"))
}

impl Probe for Simulated {
    fn name(&self) -> &'static str {
        self.name
    }

    fn metrics(&self) -> &'static [Metric] {
        &METRICS
    }

    fn overhead(&self) -> Duration {
        PER_REQUEST * self.bulk.requests
    }

    /// Measures a fixed number of requests. It ignores the span, which is real time, because the
    /// simulator has its own clock.
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
    fn measure(&mut self, _span: Duration) -> anyhow::Result<Measurement> {
        let report = bulk::run(&self.bulk).map_err(|wrong| anyhow!(wrong))?;
        self.bulk.seed += 1;
        let again = report.retransmissions as f64;
        Ok(Measurement {
            values: vec![report.gbps, again, report.lost as f64],
            alarms: Vec::new(),
            details: vec![format!("{report:?}")],
        })
    }
}

fn charts(rows: &[&Row]) -> Vec<Picture> {
    let wanted = Wanted {
        metric: "gbps",
        x: "loss",
        params: &[],
    };
    let mut lines = by_transport(rows, wanted);
    lines.extend(wanted.published(PUBLISHED, Beside::Median));
    vec![chart(
        "8 MB requests over a network that loses packets",
        Axis::new("share of packets that are lost", "share", Scale::Each),
        Axis::new("data delivered, Gbit/s", "", Scale::Linear),
        lines,
    )]
}

const fn published(share: f64, gbps: f64) -> Published {
    Published {
        metric: "gbps",
        params: [Some(("loss", Param::Number(share))), None, None, None],
        beside: Beside::Median,
        value: gbps,
        what: "eRPC, 100 Gb/s InfiniBand",
        source: "eRPC, table 4",
    }
}

fn reorder_charts(rows: &[&Row]) -> Vec<Picture> {
    let wanted = Wanted {
        metric: "gbps",
        x: "percent",
        params: &[],
    };
    vec![chart(
        "8 MB requests over a network that delivers packets late",
        Axis::new("packets that are late by up to 100 µs", "%", Scale::Each),
        Axis::new("data delivered, Gbit/s", "", Scale::Linear),
        by_transport(rows, wanted),
    )]
}
