//! `sessions`: the price of many sessions between two endpoints, in speed and in memory.
//!
//! The memory of a process is its resident pages, except pages of the program's file, plus the
//! bytes of the message buffers in use. The memory before the first session is subtracted. The sum
//! over both processes is divided by the number of sessions' sides, two for each session. Resident
//! pages include the regions of message buffers, unless these are in huge pages. So a buffer in use
//! counts twice if it is not in huge pages. But if message buffers were not added, a buffer in huge
//! pages would not count at all. Memory that all sessions share also counts: rings, connections of
//! the control plane.
//!
//! The client draws the sessions of its calls eight calls ahead and prefetches them
//! ([`Cx::prefetch`](dunlin::Cx)), as a program with many sessions would.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use dunlin::Rpc;
use serde::{Deserialize, Serialize};

use crate::harness::case::Case;
use crate::harness::experiment::{Experiment, Section};
use crate::harness::probe::{Against, Measurement, Metric, Probe};
use crate::harness::subject;
use crate::harness::subject::pipeline::{Choice, Draws, Pipeline};
use crate::harness::subject::side::Side;
use crate::harness::subject::{Medium, Server, Setting, over, pipeline, server};
use crate::harness::transport::Transport;
use crate::output::chart::{TRANSPORTS, Wanted, by_transport, chart, colour, ratio_line};
use crate::output::papers::{Beside, Param, Published};
use harness::draw::{Axis, Picture, Scale};
use harness::process::{Parent, Process, Role};
use harness::row::Row;
use harness::seat::{Seat, Seats};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "sessions",
    about: "1 to 20 000 sessions between two endpoints: rate, and memory per session",
    cases: |sweep| Ok(cases(sweep.transports)),
    roles: &[server::ROLE, CALL],
    usual_time: Duration::from_secs(150),
    section: Some(Section {
        title: "Sessions",
        text: "Many sessions between two endpoints; each call uses a random one. The papers' point \
               is that state in the NIC runs out, and state in memory does not.",
    }),
    charts,
    published: PUBLISHED,
    ..Experiment::BASE
};

/// Figures of the paper.
const PUBLISHED: &[Published] = &[
    published(5_000.0, 0.5, "RDMA reads, ConnectX-5", "eRPC, figure 1"),
    published(
        20_000.0,
        1.0,
        "eRPC, CX4, cluster of 100",
        "eRPC, §4.1.2 and §6.3",
    ),
];

/// Issues RPCs over many sessions.
pub(crate) const CALL: Role = Role::new("many-sessions", call);

/// Sessions of one pair of endpoints.
const SESSIONS: [u32; 5] = [1, 100, 1_000, 10_000, 20_000];

/// The number of sessions whose rate is the baseline of the others.
const COMPARED: u32 = 100;

/// RPCs that each session carries before memory is measured.
const RPCS: u64 = 16;

/// Silence before memory is measured, in which servers release held responses.
const SILENCE: Duration = Duration::from_secs(2);

/// Requests that are issued together.
const BATCH: usize = 3;

/// Time before the first RPC that counts.
const WARM_UP: Duration = Duration::from_millis(20);

/// How long 20 000 sessions may take to connect.
const CONNECT: Duration = Duration::from_secs(60);

const METRICS: [Metric; 5] = [
    Metric {
        name: "rpc_per_s",
        unit: "1/s",
        against: Against::Baseline(0),
    },
    Metric::alone("bytes_per_session", "B"),
    Metric::alone("bytes_per_session_client", "B"),
    Metric::alone("bytes_per_session_server", "B"),
    Metric::alone("connects_per_s", "1/s"),
];

/// Speed and memory with a number of sessions.
#[derive(Clone, Copy, Debug)]
struct Sessions {
    transport: Transport,
    sessions: u32,
}

/// Only the speed, with few sessions.
#[derive(Clone, Copy, Debug)]
struct Few {
    transport: Transport,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Params {
    setting: Setting,
    server: SocketAddr,
    sessions: u32,
    silence: Duration,
    span: Duration,
}

/// The client's first report, sent at the end of its silence.
#[derive(Debug, Serialize, Deserialize)]
struct Quiet {
    before: Side,
    after: Side,
    connects_per_s: f64,
}

/// Every number of sessions over these transports.
pub(crate) fn cases(transports: &[Transport]) -> Vec<Case> {
    let mut cases = Vec::new();
    for sessions in SESSIONS {
        for &transport in transports {
            let subject = Sessions {
                transport,
                sessions,
            };
            let params = [("sessions", sessions)];
            let case = Case::new("sessions", transport.name(), &params, subject);
            cases.push(case.against(Few { transport }));
        }
    }
    cases
}

impl Probe for Sessions {
    fn name(&self) -> &'static str {
        "RPCs on random sessions"
    }

    fn metrics(&self) -> &'static [Metric] {
        &METRICS
    }

    fn overhead(&self) -> Duration {
        // About 20 000 sessions connect in a second.
        subject::SET_UP + SILENCE + Duration::from_micros(50) * self.sessions
    }

    fn measure(&mut self, span: Duration) -> anyhow::Result<Measurement> {
        let mut pair = Pair::start(self.transport, self.sessions, SILENCE, span)?;
        let before = pair.server.side()?;
        pair.client.send(&())?;
        let quiet: Quiet = pair.client.receive(CONNECT + SILENCE)?;
        let after = pair.server.side()?;
        pair.client.send(&())?;
        let report: subject::Report = pair.client.receive(crate::harness::probe::patience(span))?;
        let client = per_session(&quiet.before, &quiet.after, self.sessions);
        let server = per_session(&before, &after, self.sessions);
        let mut measurement = report.measurement(&pair.server.side()?);
        measurement.details.push(quiet.after.line("client, quiet"));
        measurement.details.push(after.line("server, quiet"));
        let both = f64::midpoint(client, server);
        measurement
            .values
            .extend([both, client, server, quiet.connects_per_s]);
        Ok(measurement)
    }
}

impl Probe for Few {
    fn name(&self) -> &'static str {
        "100 sessions"
    }

    fn metrics(&self) -> &'static [Metric] {
        &METRICS[..1]
    }

    fn overhead(&self) -> Duration {
        subject::SET_UP + WARM_UP
    }

    fn measure(&mut self, span: Duration) -> anyhow::Result<Measurement> {
        let mut pair = Pair::start(self.transport, COMPARED, Duration::ZERO, span)?;
        pair.client.send(&())?;
        let _: Quiet = pair.client.receive(CONNECT)?;
        pair.client.send(&())?;
        let report: subject::Report = pair.client.receive(crate::harness::probe::patience(span))?;
        Ok(report.values.into())
    }
}

/// A client and its server.
struct Pair {
    client: Process,
    server: Server,
}

impl Pair {
    fn start(
        transport: Transport,
        sessions: u32,
        silence: Duration,
        span: Duration,
    ) -> anyhow::Result<Self> {
        let seats = Seats::pick();
        let server = Server::start(&server::Params::prompt(Setting::adaptive(
            transport,
            seats.server,
        )))?;
        let params = Params {
            setting: Setting::adaptive(transport, seats.client),
            server: server.address,
            sessions,
            silence,
            span,
        };
        let client = Process::spawn(CALL, Seat::default(), &params)?;
        Ok(Self { client, server })
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "bytes of a process are far below 2^53"
)]
fn per_session(before: &Side, after: &Side, sessions: u32) -> f64 {
    (after.memory() as f64 - before.memory() as f64) / f64::from(sessions)
}

/// The client process. It waits for a line from the parent before it connects, and for another
/// before it measures the rate, so that the parent can read the server's memory in between.
///
/// # Errors
/// A session cannot be connected, or an answer is wrong or missing.
pub(crate) fn call(parent: &Parent) -> anyhow::Result<()> {
    let params: Params = parent.receive()?;
    over!(params.setting, run(parent, params))
}

fn run<T: Medium>(parent: &Parent, params: Params) -> anyhow::Result<()> {
    let mut rpc: Rpc<T, Pipeline> = params.setting.open(Pipeline::default())?;
    rpc.on_completion(|pipeline, done, cx| pipeline.on_done(done, cx));
    rpc.run_once();
    parent.receive::<()>()?;
    let before = Side::read(&mut rpc)?;
    let begin = Instant::now();
    let count = params.sessions as usize;
    let sessions = subject::connect(&mut rpc, params.server, count)?;
    let connects_per_s = f64::from(params.sessions) / begin.elapsed().as_secs_f64();
    rpc.app_mut()
        .use_sessions(sessions.clone(), Choice::default());
    pipeline::begin(&mut rpc, BATCH, RPCS * u64::from(params.sessions))?;
    pipeline::finish(&mut rpc)?;
    rpc.run_for(params.silence);
    let after = Side::read(&mut rpc)?;
    parent.say(&Quiet {
        before,
        after,
        connects_per_s,
    })?;
    parent.receive::<()>()?;
    // A random sequence may begin with any number but 0.
    let choice = Choice::Random(Draws::new(0x9e37_79b9_7f4a_7c15, sessions.len()));
    rpc.app_mut().use_sessions(sessions, choice);
    pipeline::begin(&mut rpc, BATCH, u64::MAX)?;
    pipeline::rate(&mut rpc, WARM_UP)?;
    let rate = pipeline::rate(&mut rpc, params.span)?;
    params.setting.seat.step_back()?;
    let side = Side::read(&mut rpc)?;
    let values = vec![rate];
    parent.say(&subject::Report { values, side })
}

fn charts(rows: &[&Row]) -> Vec<Picture> {
    let x = || Axis::new("sessions between two endpoints", "", Scale::Each);
    let wanted = |metric| Wanted {
        metric,
        x: "sessions",
        params: &[],
    };
    let rate = wanted("rpc_per_s");
    let ratios = TRANSPORTS.into_iter().map(|transport| {
        let of = |row: &&&Row| row.transport == transport && rate.is(row);
        let rows: Vec<&Row> = rows.iter().filter(of).copied().collect();
        ratio_line(transport, colour(transport), &rows, "sessions")
    });
    let mut ratios: Vec<_> = ratios.filter(|line| !line.points.is_empty()).collect();
    ratios.extend(rate.published(PUBLISHED, Beside::Ratio));
    let memory = by_transport(rows, wanted("bytes_per_session"));
    vec![
        chart(
            "Rate with many sessions, against 100",
            x(),
            Axis::new("rate, relative to 100 sessions", "", Scale::Linear),
            ratios,
        ),
        chart(
            "Memory of a session that was used and is idle",
            x(),
            Axis::new(
                "bytes per side; with few sessions, mostly of the processes",
                "B",
                Scale::Log,
            ),
            memory,
        ),
    ]
}

const fn published(count: f64, ratio: f64, what: &'static str, source: &'static str) -> Published {
    Published {
        metric: "rpc_per_s",
        params: [Some(("sessions", Param::Number(count))), None, None, None],
        beside: Beside::Ratio,
        value: ratio,
        what,
        source,
    }
}
