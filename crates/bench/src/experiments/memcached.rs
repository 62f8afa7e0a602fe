//! `memcached`: gets from `dunlin memcached` and from Debian's memcached, in turn. One load
//! generator asks both over TCP, and the native client asks the server of `dunlin memcached`. Both
//! servers have one thread, the same `-m`, room for all items, and the same processor.

mod crowd;
pub(super) mod generator;
pub(super) mod server;
mod slap;

use std::time::Duration;

use serde_json::Value;

use crate::harness::case::Case;
use crate::harness::experiment::{Experiment, Section, Sweep};
use crate::harness::items::{Items, Mix, VALUE};
use crate::harness::probe::{Against, Measurement, Metric, Probe, patience};
use crate::harness::program;
use crate::harness::resident::Resident;
use crate::harness::subject;
use crate::harness::subject::side::Side;
use crate::harness::transport::Transport;
use crate::output::aims::{Aim, Bound, Of};
use crate::output::chart::{bar, bars, colour, word};
use harness::draw::{Picture, zero_based};
use harness::process::Process;
use harness::row::Row;
use harness::seat::Seats;

use super::kv::client::{self, Pace, Step, What};
use generator::{Report, Way};
use server::{Kind, Running};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "memcached",
    about: "dunlin memcached, over TCP and by native clients, against Debian's memcached; not part \
            of `all`",
    cases: |sweep| Ok(cases(sweep)),
    roles: &[
        program::ROLE,
        generator::LOAD,
        generator::GET,
        slap::ROLE,
        crowd::FILL,
        crowd::IDLE,
    ],
    transports: &[Transport::Auto, Transport::Udp],
    allowed: &[Transport::Auto, Transport::Udp],
    items_mib: Some(128),
    usual_time: Duration::from_secs(90),
    is_in_all: false,
    is_compared: false,
    section: Some(Section {
        title: "memcached's clients",
        text: "Gets of items of 16 + 32 bytes: from dunlin memcached over TCP, and by Dunlin's \
               native client from the same command. The baseline is Debian's memcached, asked over \
               TCP in the same way. Both servers have one thread and the same -m. A row is invalid \
               if the load generator used 90 % of its processor or more. Rows of memcaslap check \
               the generator: libmemcached's tool asks both servers, with 5 % sets. Rows with \
               idle_connections show how much the front end costs native clients: their baseline \
               is a server without one.",
    }),
    charts,
    aims: AIMS,
    ..Experiment::BASE
};

/// Aims of both clients, next to memcached's figures.
const AIMS: &[Aim] = &[
    Aim {
        metric: "gets_per_cpu_s",
        transport: "tcp",
        params: &[("way", "pipelined")],
        of: Of::Ratio,
        bound: Bound::AtLeast(1.5),
    },
    Aim {
        metric: "gets_per_cpu_s",
        transport: "tcp",
        params: &[("client", "text"), ("way", "single"), ("connections", "1")],
        of: Of::Ratio,
        bound: Bound::AtLeast(1.0),
    },
    Aim {
        metric: "rtt_p50",
        transport: "tcp",
        params: &[("client", "text"), ("way", "single"), ("connections", "1")],
        of: Of::Ratio,
        bound: Bound::Spread,
    },
    Aim {
        metric: "gets_per_s",
        transport: "auto",
        params: &[("way", "single"), ("connections", "1")],
        of: Of::Ratio,
        bound: Bound::AtLeast(20.0),
    },
    Aim {
        metric: "gets_per_s",
        transport: "udp",
        params: &[("way", "single"), ("connections", "1")],
        of: Of::Ratio,
        bound: Bound::AtLeast(1.5),
    },
    Aim {
        metric: "gets_per_s",
        transport: "udp",
        params: &[("way", "single"), ("connections", "16"), ("batch", "16")],
        of: Of::Ratio,
        bound: Bound::AtLeast(5.0),
    },
    Aim {
        metric: "gets_per_s",
        transport: "auto",
        params: &[("idle_connections", "10000")],
        of: Of::Ratio,
        bound: Bound::AtLeast(0.97),
    },
];

/// Gets that are sent together, in commands of their own or as keys of one command.
const TOGETHER: u32 = 100;

/// If the load generator uses this percentage of its processor or more, it may limit the rate.
const BUSY: f64 = 90.0;

/// How gets are sent over TCP, each way with its number of connections.
const WAYS: [(Way, u32); 4] = [
    (Way::Single, 1),
    (Way::Single, 16),
    (Way::Pipelined(TOGETHER), 4),
    (Way::Many(TOGETHER), 4),
];

/// How the native client sends gets: the way, the number of TCP connections that would have the
/// same number of gets in flight, and the number of gets that the client begins at once.
const NATIVE_WAYS: [(Way, u32, usize); 5] = [
    (Way::Single, 1, 1),
    (Way::Single, 16, 1),
    (Way::Single, 16, 16),
    (Way::Pipelined(TOGETHER), 1, TOGETHER as usize),
    (Way::Many(TOGETHER), 1, 1),
];

const METRICS: [Metric; 5] = [
    against("gets_per_s", "1/s", 0),
    against("gets_per_cpu_s", "1/s", 1),
    against("rtt_p50", "ns", 2),
    against("rtt_p99", "ns", 3),
    Metric::alone("generator_percent", "%"),
];

/// The native client spins on a processor of its own, so its rows have no `generator_percent`. It
/// times each get of a pipeline separately, but over TCP all gets of a pipeline are timed together.
/// So only the rates of pipelines are compared.
const NATIVE_METRICS: [Metric; 3] = [
    against("gets_per_s", "1/s", 0),
    against("rtt_p50", "ns", 2),
    against("rtt_p99", "ns", 3),
];

/// The values of [`Slap`].
const SLAP_METRICS: [Metric; 2] = [
    against("ops_per_s", "1/s", 0),
    against("ops_per_cpu_s", "1/s", 1),
];

/// Connections of `memcaslap`.
const SLAP_CONNECTIONS: u32 = 16;

const fn against(name: &'static str, unit: &'static str, index: usize) -> Metric {
    Metric {
        name,
        unit,
        against: Against::Baseline(index),
    }
}

/// A server with its items.
#[derive(Clone, Debug)]
struct Stocked {
    running: Resident<Running>,
    kind: Kind,
    items: Items,
    items_mib: u32,
}

/// Gets over TCP.
struct Tcp {
    server: Stocked,
    way: Way,
    connections: u32,
}

/// Operations of `memcaslap`.
struct Slap {
    server: Stocked,
}

/// Gets by the native client.
struct Native {
    server: Stocked,
    transport: Transport,
    way: Way,
    connections: u32,
    batch: usize,
}

fn cases(sweep: &Sweep<'_>) -> Vec<Case> {
    let stocked = |kind| Stocked {
        running: Resident::new(),
        kind,
        items: Items::of_mib(sweep.items_mib, VALUE),
        items_mib: sweep.items_mib,
    };
    let debian = server::is_installed().then(|| stocked(Kind::Memcached));
    let mut servers = Vec::new();
    for &transport in sweep.transports {
        servers.push((transport, stocked(Kind::Dunlin(transport))));
    }
    let mut cases = Vec::new();
    if let Some((_, ours)) = servers.first() {
        cases.extend(WAYS.map(|(way, connections)| {
            let server = ours.clone();
            let tcp = Tcp {
                server,
                way,
                connections,
            };
            let case = Case::new(
                "memcached",
                "tcp",
                &ours.params("text", way, connections),
                tcp,
            );
            against_debian(case, debian.as_ref(), way, connections)
        }));
        cases.extend(slap_case(ours, debian.as_ref()));
    }
    for (transport, server) in servers {
        cases.extend(NATIVE_WAYS.map(|(way, connections, batch)| {
            let native = Native {
                server: server.clone(),
                transport,
                way,
                connections,
                batch,
            };
            let case = Case::new("memcached", transport.name(), &native.params(), native);
            against_debian(case, debian.as_ref(), way, connections)
        }));
    }
    if sweep.transports.contains(&Transport::Auto) {
        cases.push(crowd_case(Transport::Auto, stocked));
    }
    if debian.is_none() {
        for case in &mut cases {
            case.note(
                "memcached is not installed here, so this row has no baseline; Debian's package \
                 memcached has it"
                    .to_owned(),
            );
        }
    }
    cases
}

/// The rate of native clients while the server has a crowd of idle connections, against a server
/// without a front end.
fn crowd_case(transport: Transport, stocked: impl Fn(Kind) -> Stocked) -> Case {
    let native = |kind| Native {
        server: stocked(kind),
        transport,
        way: Way::Pipelined(TOGETHER),
        connections: 1,
        batch: TOGETHER as usize,
    };
    let crowded = native(Kind::Crowded(transport));
    let mut params = crowded.params().to_vec();
    params.push(("idle_connections", crowd::CROWD.into()));
    let case = Case::new("memcached", transport.name(), &params, crowded);
    case.against(native(Kind::Plain(transport)))
}

/// The cross-check, if `memcaslap` is installed.
fn slap_case(ours: &Stocked, debian: Option<&Stocked>) -> Option<Case> {
    let params = ours.params("memcaslap", Way::Single, SLAP_CONNECTIONS);
    let slap = |server: &Stocked| Slap {
        server: server.clone(),
    };
    let case = slap::is_installed().then(|| Case::new("memcached", "tcp", &params, slap(ours)))?;
    Some(match debian {
        Some(debian) => case.against(slap(debian)),
        None => case,
    })
}

/// Adds the baseline to a case, if Debian's memcached is installed.
fn against_debian(case: Case, debian: Option<&Stocked>, way: Way, connections: u32) -> Case {
    let Some(server) = debian.cloned() else {
        return case;
    };
    case.against(Tcp {
        server,
        way,
        connections,
    })
}

impl Stocked {
    fn params(&self, client: &str, way: Way, connections: u32) -> [(&'static str, Value); 4] {
        [
            ("client", client.into()),
            ("way", way.name().into()),
            ("connections", connections.into()),
            ("items_mib", self.items_mib.into()),
        ]
    }

    /// Passes the server to `work`. If the server does not run yet, starts it and writes its items
    /// first.
    fn with<R>(&self, work: impl FnOnce(&mut Running) -> anyhow::Result<R>) -> anyhow::Result<R> {
        let start = || {
            let mut running = Running::start(self.kind, self.items_mib)?;
            let (role, address) = match self.kind {
                Kind::Plain(_) => (crowd::FILL, running.native()),
                _ => (generator::LOAD, running.door()),
            };
            let params = (address, self.items);
            let mut load = Process::spawn(role, Seats::pick().client, &params)?;
            load.receive::<()>(server::STARTING)?;
            if matches!(self.kind, Kind::Crowded(_)) {
                running.gather()?;
            }
            Ok(running)
        };
        self.running.with(start, work)
    }
}

impl Probe for Tcp {
    fn name(&self) -> &'static str {
        match self.server.kind {
            Kind::Memcached => "memcached over TCP",
            _ => "Dunlin over TCP",
        }
    }

    fn metrics(&self) -> &'static [Metric] {
        &METRICS
    }

    fn measure(&mut self, span: Duration) -> anyhow::Result<Measurement> {
        let report: Report = self.server.with(|running| {
            let params = generator::Params {
                server: running.door(),
                process: running.id(),
                items: self.server.items,
                way: self.way,
                connections: self.connections,
                span,
            };
            let seat = Seats::pick().client;
            let mut generator = Process::spawn(generator::GET, seat, &params)?;
            generator.receive(patience(span))
        })?;
        Ok(report.values().to_vec().into())
    }

    fn is_overloaded(&self, medians: &[f64]) -> bool {
        medians.last().is_some_and(|percent| *percent >= BUSY)
    }
}

impl Probe for Slap {
    fn name(&self) -> &'static str {
        match self.server.kind {
            Kind::Memcached => "memcaslap against memcached",
            _ => "memcaslap against Dunlin",
        }
    }

    fn metrics(&self) -> &'static [Metric] {
        &SLAP_METRICS
    }

    fn overhead(&self) -> Duration {
        // `memcaslap` runs for whole seconds, so a run may be up to a second longer than its span.
        subject::SET_UP + Duration::from_secs(1)
    }

    fn measure(&mut self, span: Duration) -> anyhow::Result<Measurement> {
        let report: slap::Report = self.server.with(|running| {
            let params = slap::Params {
                server: running.door(),
                process: running.id(),
                connections: SLAP_CONNECTIONS,
                span,
            };
            let mut slap = Process::spawn(slap::ROLE, Seats::pick().client, &params)?;
            slap.receive(patience(2 * slap::takes(span)))
        })?;
        Ok(vec![report.per_s, report.per_cpu_s].into())
    }
}

impl Native {
    fn params(&self) -> [(&'static str, Value); 5] {
        let [client, way, connections, items_mib] =
            self.server.params("native", self.way, self.connections);
        [
            client,
            way,
            connections,
            ("batch", self.batch.into()),
            items_mib,
        ]
    }

    /// A step with as many gets in flight as over TCP.
    fn step(&self, span: Duration) -> Step {
        let (gets, keys) = match self.way {
            Way::Single => (self.connections, 1),
            Way::Pipelined(gets) => (gets, 1),
            Way::Many(keys) => (1, keys),
        };
        Step {
            what: What::Kv,
            pace: Pace::Closed {
                window: gets as usize,
                batch: self.batch,
            },
            keys: keys as usize,
            is_timed: true,
            beside: false,
            span,
        }
    }
}

impl Probe for Native {
    fn name(&self) -> &'static str {
        match self.server.kind {
            Kind::Plain(_) => "native client, without the front end",
            _ => "native client",
        }
    }

    fn metrics(&self) -> &'static [Metric] {
        match self.way {
            Way::Pipelined(_) => &NATIVE_METRICS[..1],
            Way::Single | Way::Many(_) => &NATIVE_METRICS,
        }
    }

    fn overhead(&self) -> Duration {
        subject::SET_UP + client::WARM_UP
    }

    fn measure(&mut self, span: Duration) -> anyhow::Result<Measurement> {
        self.server.with(|running| {
            let (setting, _) = subject::spinning_pair(self.transport);
            let params = client::Params {
                setting,
                server: running.native(),
                items: self.server.items,
                mix: Mix::ALL_GETS,
                steps: vec![self.step(span)],
            };
            let (outcomes, mut measurement) = client::run(&params, || Ok(Side::default()))?;
            let outcome = outcomes[0];
            measurement.values = vec![outcome.per_s, outcome.p50, outcome.p99];
            measurement.values.truncate(self.metrics().len());
            Ok(measurement)
        })
    }
}

fn charts(rows: &[&Row]) -> Vec<Picture> {
    let of = |metric: &str, title: &str, what: &str| {
        let wanted = rows.iter().filter(|row| row.metric == metric);
        let all = wanted.map(|row| {
            let of = |name| word(row, name).unwrap_or_default();
            let (client, way, connections) = (of("client"), of("way"), of("connections"));
            let name = format!("{}, {client}, {way}, {connections}", row.transport);
            bar(row, name, colour(&row.transport))
        });
        let baseline = "memcached over TCP in the same round";
        bars(title, zero_based(what, "1/s"), baseline, all.collect())
    };
    vec![
        of(
            "gets_per_cpu_s",
            "Gets for a second of the server's processor time",
            "gets per second of processor time",
        ),
        of("gets_per_s", "Gets per second", "gets per second"),
    ]
}
