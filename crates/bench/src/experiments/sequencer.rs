//! `sequencer`: numbers per second from one server thread, against echoes of the same lengths
//! between the same processes (RDMA §4.2).

mod alone;
mod client;
mod server;

use std::time::Duration;

use serde_json::Value;

use crate::harness::case::Case;
use crate::harness::experiment::{Experiment, Section};
use crate::harness::probe::{Against, Measurement, Metric, Probe};
use crate::harness::subject;
use crate::harness::transport::Transport;
use crate::output::aims::{Aim, Bound};
use crate::output::chart::{Wanted, by_transport, chart};
use crate::output::papers::{Beside, Param, Published};
use harness::draw::{Axis, Picture, Scale};
use harness::row::Row;

use client::{Step, WARM_UP};
use server::Server;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "sequencer",
    about: "Numbers of the sequencer between two processes, against echoes; not part of `all`",
    cases: |sweep| Ok(cases(sweep.transports)),
    roles: &[server::ROLE, client::ROLE, alone::ROLE],
    is_in_all: false,
    is_compared: false,
    section: Some(Section {
        title: "The sequencer",
        text: "One thread gives numbers, one by one, to one process; 60 requests are in flight, \
               issued in batches over as many sessions as there are clients. Blocks of \
               numbers are reserved in a directory for temporary files. The baseline exchanges \
               echoes of the same lengths between the same processes. With speculation, answers \
               have 4 bytes in place of 8. In rows with turns, server and client share a thread, \
               and only the server's time counts. The paper's server has up to 10 cores, and 70 \
               clients on 5 machines.",
    }),
    charts,
    published: PUBLISHED,
    aims: &AIMS,
    ..Experiment::BASE
};

/// Figures of the paper.
const PUBLISHED: &[Published] = &[
    published(7.0e6, "false", "HERD RPCs, 1 core", "RDMA, §4.2, figure 7"),
    published(
        16.6e6,
        "false",
        "HERD RPCs with batches, 1 core",
        "RDMA, §4.2, figure 7",
    ),
    published(97.2e6, "false", "HERD RPCs, 6 cores", "RDMA, §4.2, table 3"),
    published(122e6, "true", "Spec-S0, 10 cores", "RDMA, §4.2, table 3"),
];

/// The rate that the client sees, and the server's own.
const AIMS: [Aim; 2] = [
    almost_echoes("numbers_per_s"),
    almost_echoes("server_per_s"),
];

const fn almost_echoes(metric: &'static str) -> Aim {
    Aim::of_ratio((metric, "shm"), &[], Bound::AtLeast(0.95))
}

/// Sessions of the process that takes numbers.
const CLIENTS: [usize; 4] = [1, 2, 4, 8];

/// Requests that are issued together, except in rows that vary this number.
const BATCH: usize = 16;

/// Other numbers of requests that one client issues together.
const BATCHES: [usize; 3] = [1, 4, 32];

const METRICS: [Metric; 1] = [Metric {
    name: "numbers_per_s",
    unit: "1/s",
    against: Against::Own {
        index: 1,
        name: "echoes",
    },
}];

const OF_SERVER: [Metric; 1] = [Metric {
    name: "server_per_s",
    ..METRICS[0]
}];

/// The number of steps with numbers in a measurement of the server alone. As many have echoes.
const TURNS: u8 = 8;

/// The server's own rate.
#[derive(Clone, Copy, Debug)]
struct Alone(Transport);

/// The rate of numbers.
#[derive(Clone, Copy, Debug)]
struct Numbers {
    transport: Transport,
    clients: usize,
    batch: usize,
    speculates: bool,
}

fn cases(transports: &[Transport]) -> Vec<Case> {
    let mut cases = Vec::new();
    for &transport in transports {
        let clients = CLIENTS.map(|clients| (clients, BATCH, false));
        let batches = BATCHES.map(|batch| (1, batch, false));
        let all = clients.into_iter().chain(batches).chain([(1, BATCH, true)]);
        for (clients, batch, speculates) in all {
            let params: [(&str, Value); 5] = [
                ("turns", false.into()),
                ("clients", clients.into()),
                ("batch", batch.into()),
                ("speculates", speculates.into()),
                ("inflight", client::INFLIGHT.into()),
            ];
            let numbers = Numbers {
                transport,
                clients,
                batch,
                speculates,
            };
            let case = Case::new("sequencer", transport.name(), &params, numbers);
            cases.push(case);
        }
        if transport.has_link() {
            // The two ends of a link are in two processes, and this measurement has only one.
            continue;
        }
        let params: [(&str, Value); 3] = [
            ("turns", true.into()),
            ("batch", BATCH.into()),
            ("inflight", client::INFLIGHT.into()),
        ];
        let alone = Case::new("sequencer", transport.name(), &params, Alone(transport));
        cases.push(alone);
    }
    cases
}

impl Probe for Alone {
    fn name(&self) -> &'static str {
        "the sequencer's server alone"
    }

    fn metrics(&self) -> &'static [Metric] {
        &OF_SERVER
    }

    fn measure(&mut self, span: Duration) -> anyhow::Result<Measurement> {
        let (setting, _) = subject::spinning_pair(self.0);
        let rates = alone::run(&client::Params {
            setting,
            // The process makes its own server.
            server: ([127, 0, 0, 1], 0).into(),
            clients: 1,
            batch: BATCH,
            speculates: false,
            steps: [Step::Echo, Step::Take].repeat(TURNS.into()),
            span: span / (2 * u32::from(TURNS)),
        })?;
        let mean =
            |first: usize| rates.iter().skip(first).step_by(2).sum::<f64>() / f64::from(TURNS);
        Ok(vec![mean(1), mean(0)].into())
    }
}

impl Probe for Numbers {
    fn name(&self) -> &'static str {
        "sequencer"
    }

    fn metrics(&self) -> &'static [Metric] {
        &METRICS
    }

    fn overhead(&self) -> Duration {
        subject::SET_UP + 4 * WARM_UP
    }

    fn measure(&mut self, span: Duration) -> anyhow::Result<Measurement> {
        let (setting, other) = subject::spinning_pair(self.transport);
        let mut server = Server::start(other)?;
        let params = client::Params {
            setting,
            server: server.address,
            clients: self.clients,
            batch: self.batch,
            speculates: self.speculates,
            // In turn, so that a slow moment of the machine affects both kinds of steps.
            steps: [Step::Echo, Step::Take].repeat(2),
            span: span / 4,
        };
        let (rates, side) = client::run(&params)?;
        let server = server.stop()?;
        let alarms = [side.alarm("client"), server.alarm("server")];
        Ok(Measurement {
            values: vec![
                f64::midpoint(rates[1], rates[3]),
                f64::midpoint(rates[0], rates[2]),
            ],
            alarms: alarms.into_iter().flatten().collect(),
            details: vec![side.line("client"), server.line("server")],
        })
    }
}

fn charts(rows: &[&Row]) -> Vec<Picture> {
    let wanted = Wanted {
        metric: "numbers_per_s",
        x: "clients",
        params: &[("speculates", "false"), ("batch", "16")],
    };
    vec![chart(
        "Rate of the sequencer against clients",
        Axis::new(
            "sessions of the process that takes numbers",
            "",
            Scale::Each,
        ),
        Axis::new("numbers per second and thread", "1/s", Scale::Log),
        by_transport(rows, wanted),
    )]
}

const fn published(
    per_s: f64,
    speculates: &'static str,
    what: &'static str,
    source: &'static str,
) -> Published {
    Published {
        metric: "numbers_per_s",
        params: [
            Some(("speculates", Param::Word(speculates))),
            Some(("clients", Param::Number(1.0))),
            Some(("batch", Param::Number(16.0))),
            None,
        ],
        beside: Beside::Median,
        value: per_s,
        what,
        source,
    }
}
