//! `kv`: the key-value service between two processes, as HERD measures its service (HERD §5): the
//! rate under each mix of operations (figure 9), by length of values (figure 10), and without
//! batches (figure 7), and the latency under a given load (figure 11).
//!
//! In the same measurement, the same processes exchange echoes of the same lengths, with as many in
//! flight, and the server's thread gets items directly from its table. A service that does an echo
//! and a direct get for each operation, one after the other, has the rate 1 / (1 / echoes + 1 /
//! direct gets).
//!
//! Over `sim`, it has HERD's other experiments, with more cores and clients than this machine has.

pub(super) mod client;
mod server;
mod show;
mod sim;

use std::time::Duration;

use serde_json::Value;

use crate::harness::case::Case;
use crate::harness::experiment::{Experiment, Section, Sweep};
use crate::harness::items::{Items, Mix, VALUE};
use crate::harness::probe::{Against, Measurement, Metric, Probe};
use crate::harness::resident::Resident;
use crate::harness::subject;
use crate::harness::transport::Transport;

use client::{Outcome, Pace, Step, WARM_UP, What};
use server::Server;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "kv",
    about: "The key-value service between two processes, against echoes; takes 6 GiB of memory; \
            not part of `all`",
    cases: |sweep| Ok(cases(sweep)),
    roles: &[server::ROLE, client::ROLE],
    allowed: &Transport::WITH_SIM,
    items_mib: Some(1024),
    usual_time: Duration::from_secs(180),
    is_in_all: false,
    is_compared: false,
    section: Some(Section {
        title: "The key-value service",
        text: "One client and one thread that serves; 60 operations are in flight, begun in \
               batches of 16, on items of 16-byte keys. The baseline exchanges echoes of the same \
               lengths between the same processes. bound_ratio compares with a service that does \
               both an echo and a get from the same table alone, one after the other. Under load, \
               operations begin at random times (Poisson), whether or not others have ended; load \
               is the percentage of the rate that the same client reached before, and the baseline \
               has echoes at that rate. HERD has up to 51 client processes and 6 or more cores \
               that serve. Rows of sim simulate the same numbers: the time of an operation is \
               chosen so that one core has HERD's rate, and the rate of the NIC that all cores \
               share so that six cores have HERD's rate.",
    }),
    charts: show::charts,
    published: show::PUBLISHED,
    findings: show::findings,
    aims: show::AIMS,
    ..Experiment::BASE
};

/// Operations in flight.
const WINDOW: usize = 60;

/// Operations that are begun together.
const BATCH: usize = 16;

/// Lengths of values (HERD, figure 10).
const LENGTHS: [usize; 9] = [4, 8, 16, 32, 64, 128, 256, 512, 1024];

/// The tables for these lengths are smaller by this factor, because all of them stay in memory.
const SMALLER: u32 = 8;

/// Percentages of the largest rate.
const LOADS: [u8; 5] = [10, 30, 50, 70, 90];

/// The values of [`Closed`]; the rate of echoes follows them.
const CLOSED: [Metric; 2] = [
    Metric {
        name: "ops_per_s",
        unit: "1/s",
        against: Against::Own {
            index: 2,
            name: "echoes",
        },
    },
    Metric::alone("bound_ratio", ""),
];

/// The values of [`Open`]; the values of echoes follow them.
const OPEN: [Metric; 5] = [
    under_load("latency_p50", 5),
    under_load("latency_p99", 6),
    under_load("latency_mean", 7),
    Metric::alone("reached_per_s", "1/s"),
    Metric::alone("reached_percent", "%"),
];

/// The values of [`Disturbed`]; the values of echoes follow them.
const DISTURBED: [Metric; 4] = [
    undisturbed("rtt_p50", 4),
    undisturbed("rtt_p999", 5),
    Metric::alone("p999_over_echo", "ns"),
    Metric::alone("echo_p999_beside", "ns"),
];

const fn undisturbed(name: &'static str, index: usize) -> Metric {
    Metric {
        name,
        unit: "ns",
        against: Against::Own {
            index,
            name: "echoes without other work",
        },
    }
}

/// A service that reaches less than this percentage of a load is overloaded: its latency then
/// depends on the duration of the load.
const REACHED: f64 = 97.0;

const fn under_load(name: &'static str, index: usize) -> Metric {
    Metric {
        name,
        unit: "ns",
        against: Against::Own {
            index,
            name: "echoes at this rate",
        },
    }
}

/// The service, with the parameters of a case.
#[derive(Clone, Debug)]
struct Service {
    server: Resident<Server>,
    items: Items,
    is_cache: bool,
    transport: Transport,
    mix: Mix,
    /// Whether requests of a burst are served together.
    batched: bool,
}

/// The largest rate.
struct Closed(Service);

/// The latencies at this percentage of the largest rate.
struct Open(Service, u8);

/// The latencies of gets, one at a time, while the index grows, items expire, and values of 1 MiB
/// are written and read. The echoes that they are compared with come before that work begins;
/// `echo_p999_beside` shows how much it disturbs echoes.
struct Disturbed(Service);

fn cases(sweep: &Sweep<'_>) -> Vec<Case> {
    let items_mib = sweep.items_mib;
    let mut cases = Vec::new();
    let usual = Table::new(items_mib, VALUE);
    let real = || {
        let all = sweep.transports.iter().copied();
        all.filter(|transport| *transport != Transport::Sim)
    };
    for transport in real() {
        for mix in Mix::all() {
            cases.push(usual.closed(transport, mix, true));
        }
        cases.push(usual.closed(transport, Mix::USUAL, false));
        cases.extend(LOADS.map(|load| usual.open(transport, load)));
        cases.push(usual.disturbed(transport));
    }
    // A cache overwrites a value of 1 MiB with an equally long one, in one piece.
    let cache = Table {
        is_cache: true,
        ..Table::new((items_mib / SMALLER).max(1), VALUE)
    };
    cases.extend(real().map(|transport| cache.disturbed(transport)));
    for value in LENGTHS {
        let table = Table::new((items_mib / SMALLER).max(1), value);
        cases.extend(real().map(|transport| table.closed(transport, Mix::USUAL, true)));
    }
    if sweep.transports.contains(&Transport::Sim) {
        cases.extend(sim::cases());
    }
    cases
}

/// A table that all cases with the same items share.
struct Table {
    server: Resident<Server>,
    items: Items,
    items_mib: u32,
    is_cache: bool,
}

impl Table {
    fn new(items_mib: u32, value: usize) -> Self {
        Self {
            server: Resident::new(),
            items: Items::of_mib(items_mib, value),
            items_mib,
            is_cache: false,
        }
    }

    fn service(&self, transport: Transport, mix: Mix, batched: bool) -> Service {
        Service {
            server: self.server.clone(),
            items: self.items,
            is_cache: self.is_cache,
            transport,
            mix,
            batched,
        }
    }

    fn params(&self, mix: Mix) -> Vec<(&'static str, Value)> {
        vec![
            ("popularity", mix.popularity.name().into()),
            ("gets", mix.gets.into()),
            ("value", self.items.value.into()),
            ("items_mib", self.items_mib.into()),
        ]
    }

    fn closed(&self, transport: Transport, mix: Mix, batched: bool) -> Case {
        let mut params = self.params(mix);
        params.extend([("batched", batched.into()), ("inflight", WINDOW.into())]);
        let service = self.service(transport, mix, batched);
        Case::new("kv", transport.name(), &params, Closed(service))
    }

    fn open(&self, transport: Transport, load: u8) -> Case {
        let mut params = self.params(Mix::USUAL);
        params.push(("load", load.into()));
        let service = self.service(transport, Mix::USUAL, true);
        Case::new("kv", transport.name(), &params, Open(service, load))
    }
}

impl Table {
    fn disturbed(&self, transport: Transport) -> Case {
        let mut params = self.params(Mix::ALL_GETS);
        let beside = match self.is_cache {
            true => "growth, expiry and 1 MiB values, in a cache",
            false => "growth, expiry and 1 MiB values",
        };
        params.push(("beside", beside.into()));
        let service = self.service(transport, Mix::ALL_GETS, true);
        Case::new("kv", transport.name(), &params, Disturbed(service))
    }
}

impl Service {
    /// Runs these steps in a client, and returns their outcomes. Before that, the server gets items
    /// directly from its table for the time `alone`.
    fn run(&self, steps: Vec<Step>, alone: Duration) -> anyhow::Result<(Run, Measurement)> {
        let start = || Server::start(self.items, self.is_cache);
        self.server.with(start, |server| {
            let mut gets_per_s = 0.0;
            if !alone.is_zero() {
                let mix = Mix {
                    gets: 100,
                    ..self.mix
                };
                gets_per_s = server.alone(mix, alone)?;
            }
            let (client, setting) = subject::spinning_pair(self.transport);
            let address = server.serve(setting, self.batched)?;
            let params = client::Params {
                setting: client,
                server: address,
                items: self.items,
                mix: self.mix,
                steps,
            };
            let (outcomes, measurement) = client::run(&params, || server.side())?;
            server.rest()?;
            let run = Run {
                outcomes,
                gets_per_s,
            };
            Ok((run, measurement))
        })
    }

    fn overhead(steps: u32) -> Duration {
        subject::SET_UP + steps * (WARM_UP + Duration::from_millis(10))
    }
}

/// The outcomes of a client's steps, and the rate of direct gets from the table.
struct Run {
    outcomes: Vec<Outcome>,
    gets_per_s: f64,
}

fn closed(what: What, span: Duration) -> Step {
    Step {
        what,
        pace: Pace::Closed {
            window: WINDOW,
            batch: BATCH,
        },
        keys: 1,
        is_timed: false,
        beside: false,
        span,
    }
}

impl Probe for Closed {
    fn name(&self) -> &'static str {
        "key-value service"
    }

    fn metrics(&self) -> &'static [Metric] {
        &CLOSED
    }

    fn overhead(&self) -> Duration {
        Service::overhead(2)
    }

    fn measure(&mut self, span: Duration) -> anyhow::Result<Measurement> {
        let step = |what| closed(what, span * 2 / 5);
        let (run, mut measurement) = self
            .0
            .run(vec![step(What::Echo), step(What::Kv)], span / 5)?;
        let [echo, kv] = [0, 1].map(|index: usize| run.outcomes[index].per_s);
        let bound = 1.0 / (1.0 / echo + 1.0 / run.gets_per_s);
        measurement.values = vec![kv, kv / bound, echo];
        measurement.details.push(format!(
            "{echo:.0} echoes/s, {:.0} gets/s from the table alone",
            run.gets_per_s
        ));
        Ok(measurement)
    }
}

impl Probe for Open {
    fn name(&self) -> &'static str {
        "key-value service under load"
    }

    fn metrics(&self) -> &'static [Metric] {
        &OPEN
    }

    fn overhead(&self) -> Duration {
        Service::overhead(3)
    }

    fn measure(&mut self, span: Duration) -> anyhow::Result<Measurement> {
        let open = |what| Step {
            pace: Pace::Open {
                percent: self.1.into(),
            },
            is_timed: true,
            ..closed(what, span * 2 / 5)
        };
        let steps = vec![closed(What::Kv, span / 5), open(What::Echo), open(What::Kv)];
        let (run, mut measurement) = self.0.run(steps, Duration::ZERO)?;
        let times = |index: usize| {
            let it = &run.outcomes[index];
            [it.p50, it.p99, it.mean]
        };
        measurement.values = times(2).to_vec();
        let (largest, reached) = (run.outcomes[0].per_s, run.outcomes[2].per_s);
        let wanted = largest * f64::from(self.1) / 100.0;
        measurement
            .values
            .extend([reached, 100.0 * reached / wanted]);
        measurement.values.extend(times(1));
        Ok(measurement)
    }

    fn is_overloaded(&self, medians: &[f64]) -> bool {
        medians.get(4).is_some_and(|percent| *percent < REACHED)
    }
}

impl Probe for Disturbed {
    fn name(&self) -> &'static str {
        "gets beside other work"
    }

    fn metrics(&self) -> &'static [Metric] {
        &DISTURBED
    }

    fn overhead(&self) -> Duration {
        Service::overhead(3)
    }

    fn measure(&mut self, span: Duration) -> anyhow::Result<Measurement> {
        let step = |what, beside| Step {
            pace: Pace::Closed {
                window: 1,
                batch: 1,
            },
            is_timed: true,
            beside,
            ..closed(what, span / 3)
        };
        let steps = vec![
            step(What::Echo, false),
            step(What::Echo, true),
            step(What::Kv, true),
        ];
        let (run, mut measurement) = self.0.run(steps, Duration::ZERO)?;
        let [alone, echo, kv] = [0, 1, 2].map(|index: usize| run.outcomes[index]);
        measurement.values = vec![
            kv.p50,
            kv.p999,
            kv.p999 - alone.p999,
            echo.p999,
            alone.p50,
            alone.p999,
        ];
        Ok(measurement)
    }
}
