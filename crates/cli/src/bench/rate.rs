//! `rate`: RPCs per second with many in flight, beside the raw packets per second of the same
//! medium. `one_way`: one process issues, the other serves. `symmetric`: each does both, and the
//! figure is that of the slower one.

use std::net::SocketAddr;
use std::time::Duration;

use dunlin::{Rpc, Session, SessionEvent};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Transport;
use super::case::Case;
use super::probe::{Against, Measurement, Metric, Probe, patience};
use super::raw::{
    exchange::Exchange,
    udp_rate::{self, UdpRate},
};
pub(super) use super::subject::pipeline::SIZE as USUAL_SIZE;
use super::subject::pipeline::{self, Choice, HasPipeline, INFLIGHT, Pipeline};
use super::subject::side::Side;
use super::subject::{self, Medium, Report, Server, Setting, over, server};
use crate::role::Role;
use harness::process::{Parent, Process};
use harness::seat::Seat;

/// Requests that are issued together.
const BATCHES: [u32; 4] = [1, 3, 8, 16];

/// Sessions between the two endpoints, each with the default window and credits.
const SESSIONS: usize = 8;

/// Time before the first RPC that counts.
const WARM_UP: Duration = Duration::from_millis(20);

/// Time for which a process issues behind the last RPC that counts.
const COOL_DOWN: Duration = Duration::from_millis(5);

const METRICS: [Metric; 1] = [Metric {
    name: "rpc_per_s",
    unit: "1/s",
    against: Against::Baseline(0),
}];

/// Who issues requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Pattern {
    /// One side; the other serves.
    OneWay,
    /// Both sides.
    Symmetric,
}

/// The rate of RPCs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rate {
    transport: Transport,
    pattern: Pattern,
    batch: u32,
    /// Bytes of a request and of its response.
    size: u16,
    packing: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Params {
    setting: Setting,
    /// Whom to connect to; who is told nobody listens, and issues when the other one does.
    server: Option<SocketAddr>,
    batch: u32,
    size: u16,
    span: Duration,
}

/// Every pattern, batch and size over these transports; over udp also one way without packing.
pub(super) fn cases(transports: &[Transport], sizes: &[u16]) -> Vec<Case> {
    let mut cases = Vec::new();
    for &size in sizes {
        for pattern in [Pattern::OneWay, Pattern::Symmetric] {
            for batch in BATCHES {
                for &transport in transports {
                    let usual = Rate::usual(transport, pattern, batch);
                    let rate = Rate { size, ..usual };
                    cases.push(case(rate));
                    if transport == Transport::Udp && pattern == Pattern::OneWay {
                        let packing = false;
                        cases.push(case(Rate { packing, ..rate }));
                    }
                }
            }
        }
    }
    cases
}

/// One rate over one transport.
pub(super) fn case(rate: Rate) -> Case {
    let mut params: Vec<(&str, Value)> = vec![
        ("pattern", rate.pattern.name().into()),
        ("batch", rate.batch.into()),
        ("inflight", INFLIGHT.into()),
        ("size", rate.size.into()),
    ];
    if rate.transport == Transport::Udp {
        params.push(("packing", rate.packing.into()));
    }
    let case = Case::new("rate", rate.transport.name(), &params, rate);
    match rate.transport {
        Transport::Shm | Transport::Auto => case.against(Exchange {
            size: rate.size,
            batch: rate.batch,
            symmetric: rate.pattern == Pattern::Symmetric,
        }),
        Transport::Udp => case.against(UdpRate {
            segments: 1,
            size: udp_rate::datagram(rate.size),
        }),
    }
}

impl Pattern {
    const fn name(self) -> &'static str {
        match self {
            Self::OneWay => "one_way",
            Self::Symmetric => "symmetric",
        }
    }
}

impl Rate {
    /// Of messages of the usual size, packed.
    pub(super) const fn usual(transport: Transport, pattern: Pattern, batch: u32) -> Self {
        Self {
            transport,
            pattern,
            batch,
            size: USUAL_SIZE,
            packing: true,
        }
    }

    fn settings(&self) -> (Setting, Setting) {
        let (client, server) = subject::spinning_pair(self.transport);
        let packing = self.packing;
        (Setting { packing, ..client }, Setting { packing, ..server })
    }

    fn one_way(&self, span: Duration) -> anyhow::Result<Measurement> {
        let (setting, server) = self.settings();
        let mut server = Server::start(&server::Params {
            setting: server,
            handler: Duration::ZERO,
        })?;
        let params = Params {
            setting,
            server: Some(server.address),
            batch: self.batch,
            size: self.size,
            span,
        };
        let mut client = Process::spawn(Role::Issue, Seat::default(), &params)?;
        let report: Report = client.receive(patience(span))?;
        Ok(report.measurement(&server.side()?))
    }

    fn symmetric(&self, span: Duration) -> anyhow::Result<Measurement> {
        let (first, second) = self.settings();
        let mut params = Params {
            setting: second,
            server: None,
            batch: self.batch,
            size: self.size,
            span,
        };
        let mut second = Process::spawn(Role::Issue, Seat::default(), &params)?;
        params.server = Some(second.receive(patience(Duration::ZERO))?);
        params.setting = first;
        let mut first = Process::spawn(Role::Issue, Seat::default(), &params)?;
        let first: Report = first.receive(patience(span))?;
        let second: Report = second.receive(patience(span))?;
        let slower = first.values[0].min(second.values[0]);
        let mut measurement = first.measurement(&second.side);
        measurement.values = vec![slower];
        Ok(measurement)
    }
}

impl Probe for Rate {
    fn name(&self) -> &'static str {
        "RPC rate"
    }

    fn metrics(&self) -> &'static [Metric] {
        &METRICS
    }

    fn overhead(&self) -> Duration {
        subject::SET_UP + WARM_UP + COOL_DOWN
    }

    fn measure(&mut self, span: Duration) -> anyhow::Result<Measurement> {
        match self.pattern {
            Pattern::OneWay => self.one_way(span),
            Pattern::Symmetric => self.symmetric(span),
        }
    }
}

/// The state of a process that issues, and perhaps serves.
#[derive(Default)]
struct Peer {
    pipeline: Pipeline,
    accepted: Vec<Session>,
}

impl HasPipeline for Peer {
    fn pipeline(&mut self) -> &mut Pipeline {
        &mut self.pipeline
    }
}

/// A process that issues requests. After its report it serves on until the parent kills it.
///
/// # Errors
/// A wrong answer, or none.
pub(crate) fn issue(parent: &Parent) -> anyhow::Result<()> {
    let params: Params = parent.receive()?;
    over!(params.setting, run(parent, &params))
}

fn run<T: Medium>(parent: &Parent, params: &Params) -> anyhow::Result<()> {
    let mut rpc: Rpc<T, Peer> = params.setting.open(Peer::default())?;
    server::on_echo(&mut rpc);
    rpc.on_completion(|peer, done, cx| peer.pipeline.on_done(done, cx));
    rpc.on_session(|peer, event, _| {
        if let SessionEvent::Accepted(session) = event {
            peer.accepted.push(session);
        }
    });
    let sessions = match params.server {
        Some(server) => subject::connect(&mut rpc, server, SESSIONS)?,
        None => subject::accept(parent, &mut rpc, SESSIONS, |peer| &mut peer.accepted)?,
    };
    let peer = rpc.app_mut();
    peer.pipeline = Pipeline::of_size(params.size);
    peer.pipeline.use_sessions(sessions, Choice::default());
    pipeline::begin(&mut rpc, params.batch as usize, u64::MAX)?;
    pipeline::rate(&mut rpc, WARM_UP)?;
    let values = vec![pipeline::rate(&mut rpc, params.span)?];
    let side = Side::read(&mut rpc)?;
    // The other one may have begun a little later.
    pipeline::rate(&mut rpc, COOL_DOWN)?;
    pipeline::stop(&mut rpc)?;
    params.setting.seat.step_back()?;
    parent.say(&Report { values, side })?;
    loop {
        rpc.run_once();
    }
}
