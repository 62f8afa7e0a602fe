//! `queue`: eight endpoints of `xdp` at one queue of an interface, one of which stops. The figure
//! is the rate of the other seven; the baseline is their rate while all eight run.

use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use dunlin::Rpc;
use serde::{Deserialize, Serialize};

use crate::harness::case::Case;
use crate::harness::experiment::{Experiment, Section};
use crate::harness::probe::{Against, Measurement, Metric, Probe, patience};
use crate::harness::subject::pipeline::{self, Choice, Pipeline};
use crate::harness::subject::side::Side;
use crate::harness::subject::{self, Medium, Report, Setting, over, server};
use crate::harness::transport::Transport;
use crate::output::aims::{Aim, Bound};
use harness::process::{Parent, Process, Role};
use harness::seat::Seat;

/// The aims over transports that bypass the kernel.
const AIMS: &[Aim] = &[
    Aim::of_ratio(("others_per_s", "xdp"), &[], Bound::AtLeast(0.9)),
    Aim::of_ratio(("others_per_s", "xdp:native"), &[], Bound::AtLeast(0.9)),
];

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "queue",
    about: "Eight endpoints at one queue of xdp, one of which stops; as root; not part of `all`",
    cases: |sweep| Ok(sweep.transports.iter().copied().map(case).collect()),
    roles: &[SERVE, ISSUE],
    transports: &[Transport::Xdp, Transport::XdpNative],
    allowed: &[Transport::Xdp, Transport::XdpNative],
    // The experiment needs root.
    is_in_all: false,
    section: Some(Section {
        title: "Endpoints of one queue",
        text: "Eight endpoints at each end of a link share its queue, in one thread, and make RPCs \
               of 32 bytes, 60 in flight for each. One server stops; the figure is the rate of \
               the seven others, and the baseline their rate while all eight serve.",
    }),
    aims: AIMS,
    ..Experiment::BASE
};

/// Serves with all endpoints. Stops the last one when the parent asks for that.
pub(crate) const SERVE: Role = Role::new("queue-serve", serve);

/// Makes calls with all endpoints, and reports the rate of all but the last.
pub(crate) const ISSUE: Role = Role::new("queue-issue", issue);

/// Endpoints at each end.
const ENDPOINTS: u32 = 8;

/// Sessions of each endpoint.
const SESSIONS: usize = 8;

/// Requests that are issued together.
const BATCH: usize = 16;

/// Rounds of all endpoints between two checks of the time.
const BLOCK: u32 = 16;

/// Time before the first RPC that counts, and again after the stop: long enough for the calls to
/// the stopped server to reach their limit.
const WARM_UP: Duration = Duration::from_millis(50);

/// A measurement fails if an endpoint gets no answer for this long after its span.
const STUCK: Duration = Duration::from_secs(5);

const METRICS: [Metric; 1] = [Metric {
    name: "others_per_s",
    unit: "1/s",
    against: Against::Baseline(0),
}];

fn case(transport: Transport) -> Case {
    let of = |stops| Shared { transport, stops };
    let params = transport.params(true);
    Case::new("queue", transport.name(), &params, of(true)).against(of(false))
}

/// The endpoints of a queue.
#[derive(Clone, Copy, Debug)]
struct Shared {
    transport: Transport,
    /// Whether the last server stops.
    stops: bool,
}

#[derive(Debug, Serialize, Deserialize)]
struct Params {
    setting: Setting,
    servers: Vec<SocketAddr>,
    span: Duration,
}

impl Probe for Shared {
    fn name(&self) -> &'static str {
        match self.stops {
            true => "the others while one is stopped",
            false => "the others while all run",
        }
    }

    fn metrics(&self) -> &'static [Metric] {
        &METRICS
    }

    fn overhead(&self) -> Duration {
        ENDPOINTS * subject::SET_UP + 2 * WARM_UP
    }

    fn measure(&mut self, span: Duration) -> anyhow::Result<Measurement> {
        let (near, far) = subject::linked_pair(self.transport)?;
        let sharing = Some(ENDPOINTS);
        let far = Setting { sharing, ..far };
        let mut server = Process::spawn(SERVE, Seat::default(), &far)?;
        let params = Params {
            setting: Setting { sharing, ..near },
            servers: server.receive(patience(self.overhead()))?,
            span,
        };
        let mut client = Process::spawn(ISSUE, Seat::default(), &params)?;
        client.receive::<()>(patience(self.overhead()))?;
        if self.stops {
            server.send(&())?;
            server.receive::<()>(patience(Duration::ZERO))?;
        }
        client.send(&())?;
        let report: Report = client.receive(patience(span + self.overhead()))?;
        let alarms = report.side.alarm("first client").into_iter().collect();
        Ok(Measurement {
            values: report.values,
            alarms,
            details: vec![report.side.line("first client")],
        })
    }
}

/// Serves until the parent kills it.
///
/// # Errors
/// An endpoint cannot be opened.
pub(crate) fn serve(parent: &Parent) -> anyhow::Result<()> {
    let setting: Setting = parent.receive()?;
    over!(setting, serve_over(parent, &setting))
}

fn serve_over<T: Medium>(parent: &Parent, setting: &Setting) -> anyhow::Result<()> {
    let asked = server::listen_to_parent();
    let open = |_| {
        let mut rpc: Rpc<T, ()> = setting.open(())?;
        server::on_echo(&mut rpc);
        anyhow::Ok(rpc)
    };
    let mut rpcs = (0..ENDPOINTS).map(open).collect::<Result<Vec<_>, _>>()?;
    let addresses: Vec<SocketAddr> = rpcs.iter().map(|rpc| rpc.nexus().address()).collect();
    parent.say(&addresses)?;
    let mut running = rpcs.len();
    loop {
        for rpc in &mut rpcs[..running] {
            rpc.run_once();
        }
        if asked.swap(false, Ordering::Relaxed) {
            running -= 1;
            parent.say(&())?;
        }
    }
}

/// Makes calls until the parent kills it.
///
/// # Errors
/// An answer is wrong or missing.
pub(crate) fn issue(parent: &Parent) -> anyhow::Result<()> {
    let params: Params = parent.receive()?;
    over!(params.setting, issue_over(parent, &params))
}

fn issue_over<T: Medium>(parent: &Parent, params: &Params) -> anyhow::Result<()> {
    let open = |server: &SocketAddr| {
        let mut rpc: Rpc<T, Pipeline> = params.setting.open(Pipeline::default())?;
        rpc.on_completion(Pipeline::on_done);
        let sessions = subject::connect(&mut rpc, *server, SESSIONS)?;
        rpc.app_mut().use_sessions(sessions, Choice::default());
        anyhow::Ok(rpc)
    };
    let mut clients = params
        .servers
        .iter()
        .map(open)
        .collect::<Result<Vec<_>, _>>()?;
    for rpc in &mut clients {
        pipeline::begin(rpc, BATCH, u64::MAX)?;
    }
    rate(&mut clients, WARM_UP)?;
    let asked = server::listen_to_parent();
    parent.say(&())?;
    while !asked.load(Ordering::Relaxed) {
        turn(&mut clients);
    }
    rate(&mut clients, WARM_UP)?;
    let values = vec![rate(&mut clients, params.span)?];
    let first = clients.first_mut().context("there are servers")?;
    let side = Side::read(first)?;
    parent.say(&Report { values, side })?;
    loop {
        turn(&mut clients);
    }
}

/// Completions per second of all clients but the last, during `span`.
///
/// # Errors
/// An answer is wrong, or one of these clients got none.
#[expect(
    clippy::cast_precision_loss,
    reason = "counts of a run are far below 2^53"
)]
fn rate<T: Medium>(clients: &mut [Rpc<T, Pipeline>], span: Duration) -> anyhow::Result<f64> {
    let (begin, before) = (Instant::now(), completed(clients)?);
    loop {
        for _ in 0..BLOCK {
            turn(clients);
        }
        let took = begin.elapsed();
        if took < span {
            continue;
        }
        let counts = completed(clients)?.into_iter().zip(&before);
        let counts: Vec<u64> = counts.map(|(now, before)| now - before).collect();
        // On a busy machine, a server may not have run at all during a short span.
        if counts.iter().all(|count| *count > 0) {
            return Ok(counts.iter().sum::<u64>() as f64 / took.as_secs_f64());
        }
        ensure!(
            took < span + STUCK,
            "one of the endpoints got no answer: {counts:?}"
        );
    }
}

/// The completions of each client but the last.
fn completed<T: Medium>(clients: &mut [Rpc<T, Pipeline>]) -> anyhow::Result<Vec<u64>> {
    let others = clients.len() - 1;
    let others = clients[..others].iter_mut();
    others.map(|rpc| rpc.app_mut().completed()).collect()
}

fn turn<T: Medium>(clients: &mut [Rpc<T, Pipeline>]) {
    for rpc in clients {
        rpc.run_once();
    }
}
