//! `faces`: how much slower the library's other faces are than the poll API on which they are
//! built. Measures the rate of 32-byte RPCs with 60 in flight over 8 sessions; client and server
//! use the same face. `async`: futures on both sides; `typed`: a service with fixed-layout messages
//! on the poll API.

mod asynchronous;
mod polled;

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{bail, ensure};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::harness::case::Case;
use crate::harness::experiment::{Experiment, Section};
use crate::harness::probe::{Against, Measurement, Metric, Probe, patience};
use crate::harness::subject;
use crate::harness::subject::side::Side;
use crate::harness::subject::{Medium, Report, Setting, over};
use crate::harness::transport::Transport;
use crate::output::chart::{bar, bars, colour, word};
use harness::draw::{Picture, zero_based};
use harness::process::{Parent, Process, Role};
use harness::row::Row;
use harness::seat::Seat;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "faces",
    about: "The same RPCs by the poll API, futures, and a typed service; not part of `all`",
    cases: |sweep| Ok(cases(sweep.transports)),
    roles: &[SERVE, CALL],
    usual_time: Duration::from_secs(30),
    is_in_all: false,
    section: Some(Section {
        title: "Faces",
        text: "The same RPCs by the poll API, by futures, and by a typed service of fixed layout. \
               The baseline is the poll API in the same round.",
    }),
    charts,
    ..Experiment::BASE
};

/// Serves through one of the faces.
pub(crate) const SERVE: Role = Role::new("face-serve", serve);

/// Calls through one of the faces.
pub(crate) const CALL: Role = Role::new("face-call", call);

/// Sessions between the two endpoints.
const SESSIONS: usize = 8;

/// Requests in flight, over all sessions together.
const INFLIGHT: usize = 60;

/// Bytes of a request and of its response.
const SIZE: usize = 32;

/// Time before the first RPC that counts.
const WARM_UP: Duration = Duration::from_millis(20);

/// A measurement fails if no RPC completes for this long.
const STUCK: Duration = Duration::from_secs(5);

/// Iterations between two checks of the time.
const BLOCK: u32 = 64;

const METRICS: [Metric; 1] = [Metric {
    name: "rpc_per_s",
    unit: "1/s",
    against: Against::Baseline(0),
}];

/// The face that client and server use.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
enum Face {
    Poll,
    Async,
    Typed,
}

impl Face {
    const fn name(self) -> &'static str {
        match self {
            Self::Poll => "poll",
            Self::Async => "async",
            Self::Typed => "typed",
        }
    }
}

/// The rate over one face.
#[derive(Clone, Copy, Debug)]
struct Faces {
    transport: Transport,
    face: Face,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Params {
    setting: Setting,
    face: Face,
    /// The server to call; if there is none, this process serves.
    server: Option<SocketAddr>,
    span: Duration,
}

/// Every face over these transports, against the poll API.
pub(crate) fn cases(transports: &[Transport]) -> Vec<Case> {
    let mut cases = Vec::new();
    for &transport in transports {
        for face in [Face::Poll, Face::Async, Face::Typed] {
            let params: [(&str, Value); 2] =
                [("face", face.name().into()), ("inflight", INFLIGHT.into())];
            let subject = Faces { transport, face };
            let case = Case::new("faces", transport.name(), &params, subject);
            let baseline = Faces {
                transport,
                face: Face::Poll,
            };
            cases.push(match face {
                Face::Poll => case,
                _ => case.against(baseline),
            });
        }
    }
    cases
}

impl Probe for Faces {
    fn name(&self) -> &'static str {
        match self.face {
            Face::Poll => "poll API",
            Face::Async => "futures",
            Face::Typed => "typed service",
        }
    }

    fn metrics(&self) -> &'static [Metric] {
        &METRICS
    }

    fn overhead(&self) -> Duration {
        subject::SET_UP + WARM_UP
    }

    fn measure(&mut self, span: Duration) -> anyhow::Result<Measurement> {
        let (client, server) = subject::spinning_pair(self.transport);
        let mut params = Params {
            setting: server,
            face: self.face,
            server: None,
            span,
        };
        let mut server = Process::spawn(SERVE, Seat::default(), &params)?;
        params.setting = client;
        params.server = Some(server.receive(patience(Duration::ZERO))?);
        let mut client = Process::spawn(CALL, Seat::default(), &params)?;
        let report: Report = client.receive(patience(span))?;
        server.send(&())?;
        let server: Side = server.receive(patience(Duration::ZERO))?;
        Ok(report.measurement(&server))
    }
}

/// Serves until the parent kills the process. Answers each line from the parent with a [`Side`].
///
/// # Errors
/// The endpoint cannot be opened, or the parent has ended.
pub(crate) fn serve(parent: &Parent) -> anyhow::Result<()> {
    let params: Params = parent.receive()?;
    over!(params.setting, serve_on(parent, &params))
}

fn serve_on<T: Medium>(parent: &Parent, params: &Params) -> anyhow::Result<()> {
    match params.face {
        Face::Poll => polled::serve::<T>(parent, params, false),
        Face::Typed => polled::serve::<T>(parent, params, true),
        Face::Async => asynchronous::serve::<T>(parent, params),
    }
}

/// A process that calls.
///
/// # Errors
/// An answer is wrong or missing.
pub(crate) fn call(parent: &Parent) -> anyhow::Result<()> {
    let params: Params = parent.receive()?;
    over!(params.setting, call_on(parent, &params))
}

fn call_on<T: Medium>(parent: &Parent, params: &Params) -> anyhow::Result<()> {
    let Some(server) = params.server else {
        bail!("there is no server to call");
    };
    match params.face {
        Face::Poll => polled::call::<T, false>(parent, params, server),
        Face::Typed => polled::call::<T, true>(parent, params, server),
        Face::Async => asynchronous::call::<T>(parent, params, server),
    }
}

/// Completions per second over `span`. `step` runs the client for a while and returns the number of
/// completions so far.
#[expect(
    clippy::cast_precision_loss,
    reason = "counts of a run are far below 2^53"
)]
fn rate(span: Duration, mut step: impl FnMut() -> anyhow::Result<u64>) -> anyhow::Result<f64> {
    let first = step()?;
    let begin = Instant::now();
    loop {
        let completed = step()? - first;
        let elapsed = begin.elapsed();
        if elapsed >= span && completed > 0 {
            return Ok(completed as f64 / elapsed.as_secs_f64());
        }
        ensure!(
            elapsed < span + STUCK,
            "nothing was answered for {} s",
            STUCK.as_secs()
        );
    }
}

/// The rate over `span`, after a warm-up that does not count.
fn measure(
    span: Duration,
    mut step: impl FnMut() -> anyhow::Result<u64>,
) -> anyhow::Result<Vec<f64>> {
    rate(WARM_UP, &mut step)?;
    Ok(vec![rate(span, step)?])
}

fn charts(rows: &[&Row]) -> Vec<Picture> {
    let all = rows
        .iter()
        .filter(|row| row.metric == "rpc_per_s")
        .map(|row| {
            let face = word(row, "face").unwrap_or_default();
            bar(
                row,
                format!("{}, {face}", row.transport),
                colour(&row.transport),
            )
        });
    vec![bars(
        "The same RPCs by each face",
        zero_based("RPCs per second and thread", "1/s"),
        "the poll API in the same round",
        all.collect(),
    )]
}
