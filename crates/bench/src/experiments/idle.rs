//! `idle`: the processor time of a server without work, and the time of the first RPC after a
//! silence, with endpoints that idle in the default way. The baseline is a raw wake-up over the
//! same medium, because no sleeping process can answer faster.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use dunlin::Rpc;
use serde::{Deserialize, Serialize};

#[cfg(feature = "full")]
use crate::baselines::frames;
use crate::baselines::wake::Wake;
use crate::harness::case::Case;
use crate::harness::experiment::{Experiment, Section};
use crate::harness::probe::{Against, Measurement, Metric, Probe, patience};
use crate::harness::subject;
use crate::harness::subject::exchange::{App, Exchange};
use crate::harness::subject::pipeline::{Choice, Pipeline};
use crate::harness::subject::side::Side;
use crate::harness::subject::{Medium, Report, Server, Setting, over, pipeline, server};
use crate::harness::transport::Transport;
use crate::output::aims::{Aim, Bound};
use crate::output::chart::{Wanted, bar, bars, by_transport, chart, colour};
use harness::draw::{Axis, Picture, Scale, zero_based};
use harness::process::{Parent, Process, Role};
use harness::row::Row;
use harness::row::Spread;
use harness::seat::{Seat, Seats};
use harness::signal;

/// The aims over transports that bypass the kernel.
const AIMS: &[Aim] = &[
    Aim::of_ratio(("rtt_first", "xdp"), &[], Bound::AtMost(1.3)),
    Aim::of_ratio(("rtt_first", "xdp:native"), &[], Bound::AtMost(1.3)),
];

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "idle",
    about: "The first RPC after a silence, and processor time of a server without work",
    cases: |sweep| Ok(cases(sweep.transports)),
    roles: &[
        server::ROLE,
        AFTER_SILENCE,
        LOAD_THEN_SILENCE,
        #[cfg(feature = "full")]
        frames::wake::PING,
        #[cfg(feature = "full")]
        frames::wake::ECHO,
    ],
    allowed: SLEEPING,
    usual_time: Duration::from_secs(200),
    section: Some(Section {
        title: "Idling",
        text: "The cost of having nothing to do, and the time of the first RPC after that. The \
               client has slept until then, and the server still sleeps, so the kernel wakes it. \
               The client of the baseline spins for the answer; that of the library does so for \
               up to 200 µs, and then sleeps again. The papers' threads poll, and never sleep.",
    }),
    charts,
    aims: AIMS,
    ..Experiment::BASE
};

/// Transports whose endpoints sleep in `epoll`.
#[cfg(feature = "full")]
const SLEEPING: &[Transport] = &[
    Transport::Shm,
    Transport::Auto,
    Transport::Udp,
    Transport::Xdp,
    Transport::XdpNative,
];
#[cfg(not(feature = "full"))]
const SLEEPING: &[Transport] = &Transport::ALL;

/// Issues an RPC after a silence.
pub(crate) const AFTER_SILENCE: Role = Role::new("after-silence", call_after_silence);

/// Loads a server, and then stays silent.
const LOAD_THEN_SILENCE: Role = Role::new("load-then-silence", load_then_silence);

/// Lengths of silence, in milliseconds.
const SILENCES_MS: [u32; 5] = [1, 10, 100, 1_000, 10_000];

/// About how long the silences of one measurement take together.
const LISTENING: Duration = Duration::from_millis(400);

/// The most silences of one measurement.
const MOST_SAMPLES: u32 = 100;

/// RPCs before the first silence.
const WARM_UP: u32 = 200;

/// Sessions of the idle server.
const SESSIONS: u32 = 100;

/// How long the server is under load before it idles.
const LOAD: Duration = Duration::from_millis(100);

/// How long the processor time of the idle server is measured.
const WATCHED: Duration = Duration::from_secs(3);

/// Silence before the measurement of processor time, because servers hold responses for a second.
const REST: Duration = Duration::from_millis(1_200);

const FIRST: [Metric; 2] = [
    Metric {
        name: "rtt_first",
        unit: "ns",
        against: Against::Baseline(0),
    },
    Metric {
        name: "retransmissions",
        unit: "count",
        against: Against::Nothing,
    },
];

const PROCESSOR: [Metric; 1] = [Metric {
    name: "cpu_percent",
    unit: "%",
    against: Against::Nothing,
}];

/// The first RPC after a silence.
#[derive(Clone, Copy, Debug)]
struct First {
    transport: Transport,
    silence: Duration,
    samples: u32,
}

/// Processor time of a server without work.
#[derive(Clone, Copy, Debug)]
struct Processor {
    transport: Transport,
    watched: Duration,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Params {
    setting: Setting,
    server: SocketAddr,
    silence: Duration,
    samples: u32,
}

/// Every length of silence over these transports, and processor time.
fn cases(transports: &[Transport]) -> Vec<Case> {
    let mut cases = Vec::new();
    for &transport in transports {
        for silence_ms in SILENCES_MS {
            cases.push(first(transport, silence_ms));
        }
        cases.push(processor(transport, WATCHED));
    }
    cases
}

/// The first RPC after a silence.
pub(crate) fn first(transport: Transport, silence_ms: u32) -> Case {
    let silence = Duration::from_millis(silence_ms.into());
    let most = LISTENING.as_millis() / silence.as_millis().max(1);
    let samples = u32::try_from(most)
        .unwrap_or(MOST_SAMPLES)
        .clamp(1, MOST_SAMPLES);
    let subject = First {
        transport,
        silence,
        samples,
    };
    let mut params = vec![("silence_ms", silence_ms.into())];
    params.extend(transport.params(true));
    let case = Case::new("idle", transport.name(), &params, subject);
    #[cfg(feature = "full")]
    if let Some(kind) = transport.link() {
        return case.against(frames::wake::FrameWake {
            kind,
            silence,
            samples,
        });
    }
    case.against(Wake {
        transport,
        silence,
        samples,
    })
}

/// Processor time of a server without work.
pub(crate) fn processor(transport: Transport, watched: Duration) -> Case {
    let subject = Processor { transport, watched };
    let mut params = vec![("sessions", SESSIONS.into())];
    params.extend(transport.params(true));
    Case::new("idle", transport.name(), &params, subject)
}

impl Probe for First {
    fn name(&self) -> &'static str {
        "first RPC after a silence"
    }

    fn metrics(&self) -> &'static [Metric] {
        &FIRST
    }

    fn overhead(&self) -> Duration {
        subject::SET_UP + self.silence * self.samples
    }

    #[expect(clippy::cast_precision_loss, reason = "a few events")]
    fn measure(&mut self, _: Duration) -> anyhow::Result<Measurement> {
        let (setting, server) = settings(self.transport)?;
        let mut server = Server::start(&server::Params::prompt(server))?;
        let params = Params {
            setting,
            server: server.address,
            silence: self.silence,
            samples: self.samples,
        };
        let mut client = Process::spawn(AFTER_SILENCE, Seat::default(), &params)?;
        let report: Report = client.receive(patience(self.overhead()))?;
        let server = server.side()?;
        let retransmissions =
            report.side.count("retransmissions") + server.count("retransmissions");
        let mut measurement = report.measurement(&server);
        measurement.values.push(retransmissions as f64);
        Ok(measurement)
    }
}

impl Probe for Processor {
    fn name(&self) -> &'static str {
        "idle server"
    }

    fn metrics(&self) -> &'static [Metric] {
        &PROCESSOR
    }

    fn overhead(&self) -> Duration {
        subject::SET_UP + LOAD + REST + self.watched
    }

    fn measure(&mut self, _: Duration) -> anyhow::Result<Measurement> {
        let (setting, server) = settings(self.transport)?;
        let mut server = Server::start(&server::Params::prompt(server))?;
        let params = Params {
            setting,
            server: server.address,
            silence: Duration::ZERO,
            samples: 0,
        };
        let mut client = Process::spawn(LOAD_THEN_SILENCE, Seat::default(), &params)?;
        let report: Report = client.receive(patience(LOAD))?;
        pause(REST)?;
        let before = server.side()?;
        pause(self.watched)?;
        let after = server.side()?;
        let used = (after.processor - before.processor).as_secs_f64();
        let percent = 100.0 * used / (after.at - before.at).as_secs_f64();
        let mut measurement = report.measurement(&after);
        measurement.values = vec![percent];
        Ok(measurement)
    }
}

/// Settings of a client and of a server.
fn settings(transport: Transport) -> anyhow::Result<(Setting, Setting)> {
    let seats = Seats::pick().anywhere();
    let on = |seat| Setting::adaptive(transport, seat);
    subject::linked(transport, (on(seats.client), on(seats.server)))
}

/// Sleeps; Ctrl-C ends the sleep.
fn pause(span: Duration) -> anyhow::Result<()> {
    let begin = Instant::now();
    while begin.elapsed() < span {
        signal::check()?;
        let left = span.saturating_sub(begin.elapsed());
        std::thread::sleep(left.min(Duration::from_millis(50)));
    }
    Ok(())
}

/// The client, which waits silently and then calls.
///
/// # Errors
/// An answer is wrong or missing.
pub(crate) fn call_after_silence(parent: &Parent) -> anyhow::Result<()> {
    let params: Params = parent.receive()?;
    over!(params.setting, after_silence(parent, &params))
}

#[expect(
    clippy::cast_precision_loss,
    reason = "nanoseconds of a trip are far below 2^53"
)]
fn after_silence<T: Medium>(parent: &Parent, params: &Params) -> anyhow::Result<()> {
    let mut rpc: Rpc<T, App> = params.setting.open(None)?;
    let session = subject::connect(&mut rpc, params.server, 1)?[0];
    let mut exchange = Exchange::new(&mut rpc, session)?;
    for _ in 0..WARM_UP {
        exchange.trip(&mut rpc)?;
    }
    let mut times = Vec::new();
    for _ in 0..params.samples {
        rpc.run_for(params.silence);
        let begin = Instant::now();
        exchange.trip(&mut rpc)?;
        times.push(begin.elapsed().as_nanos() as f64);
    }
    let median = Spread::of(times.into_iter()).map_or(0.0, |spread| spread.median);
    let (values, side) = (vec![median], Side::read(&mut rpc)?);
    parent.say(&Report { values, side })
}

/// The client that loads the server over many sessions, and then stays silent until the parent
/// kills it.
///
/// # Errors
/// An answer is wrong or missing.
pub(crate) fn load_then_silence(parent: &Parent) -> anyhow::Result<()> {
    let params: Params = parent.receive()?;
    over!(params.setting, load(parent, &params))
}

fn load<T: Medium>(parent: &Parent, params: &Params) -> anyhow::Result<()> {
    let mut rpc: Rpc<T, Pipeline> = params.setting.open(Pipeline::default())?;
    rpc.on_completion(|pipeline, done, cx| pipeline.on_done(done, cx));
    let sessions = subject::connect(&mut rpc, params.server, SESSIONS as usize)?;
    rpc.app_mut().use_sessions(sessions, Choice::default());
    pipeline::begin(&mut rpc, 1, u64::MAX)?;
    pipeline::rate(&mut rpc, LOAD)?;
    pipeline::stop(&mut rpc)?;
    let (values, side) = (Vec::new(), Side::read(&mut rpc)?);
    parent.say(&Report { values, side })?;
    loop {
        rpc.run_once();
    }
}

fn charts(rows: &[&Row]) -> Vec<Picture> {
    let wanted = Wanted {
        metric: "rtt_first",
        x: "silence_ms",
        params: &[],
    };
    let x = Axis::new("silence before it, ms", "", Scale::Each);
    let y = Axis::new("round trip", "ns", Scale::Log);
    let busy = rows.iter().filter(|row| row.metric == "cpu_percent");
    let busy = busy.map(|row| bar(row, row.transport.to_string(), colour(&row.transport)));
    vec![
        chart(
            "First RPC after a silence",
            x,
            y,
            by_transport(rows, wanted),
        ),
        bars(
            "Processor time of an idle server with 100 sessions",
            zero_based("percent of a core", "%"),
            "",
            busy.collect(),
        ),
    ]
}
