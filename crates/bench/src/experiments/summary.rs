//! `summary`: a few rows of latency, rate and idling, under the names of those experiments.

use std::time::Duration;

use super::rate::{Pattern, Rate};
use super::{idle, latency, rate};
use crate::harness::case::Case;
use crate::harness::experiment::Experiment;
use crate::harness::transport::Transport;

/// It has no processes of its own; it uses the processes of the experiments whose rows it takes.
pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "summary",
    about: "Latency, rate and idling, a few rows of each: what plain `dunlin bench` measures",
    cases: |sweep| Ok(cases(sweep.transports)),
    usual_time: Duration::from_secs(45),
    is_in_all: false,
    ..Experiment::BASE
};

/// How long the processor time of the idle server is measured.
const WATCHED: Duration = Duration::from_secs(1);

fn cases(transports: &[Transport]) -> Vec<Case> {
    let mut cases = Vec::new();
    for size in [32, 1000] {
        cases.extend(transports.iter().map(|&it| latency::case(it, size)));
    }
    for &transport in transports {
        let batch = if transport == Transport::Udp { 16 } else { 3 };
        for pattern in [Pattern::OneWay, Pattern::Symmetric] {
            cases.push(rate::case(Rate::usual(transport, pattern, batch)));
        }
    }
    for &transport in transports {
        cases.push(idle::first(transport, 100));
        cases.push(idle::processor(transport, WATCHED));
    }
    cases
}
