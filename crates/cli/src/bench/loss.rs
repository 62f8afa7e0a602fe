//! `loss` and `reorder`: how fast 8 MB requests go while packets are lost or late. In the
//! simulator: 100 Gb/s, 6 µs, 4096 bytes a packet; a round is a seed. And over udp, whose ends lose
//! some of the datagrams that come in. The baseline is the same without faults.

use std::time::Duration;

use anyhow::anyhow;
use dunlin_sim::bulk::{self, Bulk};
use dunlin_sim::rng::Ppm;
use serde_json::Value;

use super::Transport;
use super::bandwidth::Bandwidth;
use super::case::Case;
use super::probe::{Against, Measurement, Metric, Probe};

/// How many in a million packets are lost, and how many requests it takes to lose a hundred in five
/// rounds.
const LOSSES: [(u32, u32); 5] = [(0, 10), (10, 1000), (100, 100), (1_000, 20), (10_000, 10)];

/// How many percent of the packets are late, by up to 100 µs.
const LATE: [u32; 4] = [0, 1, 10, 50];

/// Requests of a round that loses nothing.
const REQUESTS: u32 = 10;

/// What the simulator takes for a request, about.
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

/// Every rate of loss, in the simulator, and over udp if it is one of the transports.
pub(super) fn loss_cases(transports: &[Transport]) -> Vec<Case> {
    let mut cases = Vec::new();
    for (per_million, requests) in LOSSES {
        let bulk = Bulk {
            loss: Ppm(per_million),
            requests,
            ..Bulk::default()
        };
        let params = [("loss", Value::from(f64::from(per_million) / 1e6))];
        cases.push(case("loss", &params, bulk));
        if transports.contains(&Transport::Udp) {
            let lossy = Bandwidth::of_lossy_udp;
            let case = Case::new("loss", "udp", &params, lossy(per_million));
            cases.push(case.against(lossy(0)));
        }
    }
    cases
}

/// Every rate of lateness.
pub(super) fn reorder_cases() -> Vec<Case> {
    let case = |percent: u32| {
        let bulk = Bulk {
            reorder: Ppm(percent * 10_000),
            requests: REQUESTS,
            ..Bulk::default()
        };
        case("reorder", &[("percent", Value::from(percent))], bulk)
    };
    LATE.into_iter().map(case).collect()
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

    /// Virtual time does not pass as the clock does, so the span says nothing here.
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
