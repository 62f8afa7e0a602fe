//! `latency`: round trips of one RPC at a time, from the call to the continuation, beside a raw
//! ping-pong of a packet of that size over the same medium. Both sides spin.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{bail, ensure};
use dunlin::{Cx, Done, MsgBuf, Rpc, Session, Tag};
use serde::{Deserialize, Serialize};

use crate::baselines::shm_rtt::ShmRtt;
use crate::baselines::udp_rtt::UdpRtt;
use crate::harness::case::Case;
use crate::harness::experiment::{Experiment, Section};
use crate::harness::probe::{Measurement, Metric, Probe, patience};
use crate::harness::rtt::Recorder;
use crate::harness::subject::side::Side;
use crate::harness::subject::{ECHO, Medium, Report, Server, Setting, over, server};
use crate::harness::transport::Transport;
use crate::harness::{rtt, subject, ticks, work};
use crate::output::chart::{Wanted, by_transport, chart};
use crate::output::papers::{Beside, Param, Published};
use harness::draw::{Axis, Picture, Scale};
use harness::process::{Parent, Process, Role};
use harness::row::Row;
use harness::seat::Seat;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "latency",
    about: "Round trips of one RPC at a time, 8 to 1024 bytes",
    cases: |sweep| Ok(cases(sweep.transports, sweep.sizes)),
    roles: &[server::ROLE, PING],
    transports: &Transport::ALL,
    sizes: &SIZES,
    usual_time: Duration::from_secs(30),
    section: Some(Section {
        title: "Latency against size",
        text: "One RPC at a time between two processes, the same number of bytes each way. The \
               baseline sends the same bytes through a bare cache line or a bare socket. The \
               paper's round trips go through a switch and two NICs.",
    }),
    charts,
    published: PUBLISHED,
    ..Experiment::BASE
};

/// Figures of the paper.
const PUBLISHED: &[Published] = &[
    published(2_100.0, "eRPC, CX3 (InfiniBand)"),
    published(2_300.0, "eRPC, CX5 (Ethernet)"),
    published(3_700.0, "eRPC, CX4 (Ethernet)"),
    published(1_700.0, "RDMA read, CX3"),
    published(2_900.0, "RDMA read, CX4"),
    published(2_000.0, "RDMA read, CX5"),
];

/// Issues one RPC after the other.
pub(crate) const PING: Role = Role::new("ping", ping);

/// Bytes of request and response, if none are asked for.
pub(crate) const SIZES: [u16; 5] = [8, 32, 64, 256, 1024];

/// Iterations of the event loop between two looks at the time.
const BLOCK: u32 = 256;

/// Round trips of RPCs of `size` bytes.
#[derive(Clone, Copy, Debug)]
struct Latency {
    transport: Transport,
    size: u32,
}

#[derive(Debug, Serialize, Deserialize)]
struct Params {
    setting: Setting,
    server: SocketAddr,
    size: u32,
    span: Duration,
}

/// Every size over these transports.
pub(crate) fn cases(transports: &[Transport], sizes: &[u16]) -> Vec<Case> {
    let of_size = |size: u16| {
        transports
            .iter()
            .map(move |&transport| case(transport, size.into()))
    };
    sizes.iter().copied().flat_map(of_size).collect()
}

/// One size over one transport.
pub(crate) fn case(transport: Transport, size: u32) -> Case {
    let subject = Latency { transport, size };
    let case = Case::new("latency", transport.name(), &[("size", size)], subject);
    match transport {
        Transport::Shm | Transport::Auto => case.against(ShmRtt { size }),
        Transport::Udp => case.against(UdpRtt { size }),
    }
}

impl Probe for Latency {
    fn name(&self) -> &'static str {
        "RPC"
    }

    fn metrics(&self) -> &'static [Metric] {
        &rtt::METRICS
    }

    fn overhead(&self) -> Duration {
        subject::SET_UP
    }

    fn measure(&mut self, span: Duration) -> anyhow::Result<Measurement> {
        let (client, server) = subject::spinning_pair(self.transport);
        let mut server = Server::start(&server::Params {
            setting: server,
            handler: Duration::ZERO,
        })?;
        let params = Params {
            setting: client,
            server: server.address,
            size: self.size,
            span,
        };
        let mut client = Process::spawn(PING, Seat::default(), &params)?;
        let report: Report = client.receive(patience(span))?;
        Ok(report.measurement(&server.side()?))
    }
}

/// The state of the client.
struct Ping {
    session: Session,
    size: usize,
    recorder: Recorder,
    counter: u64,
    begin: u64,
    wrong: Option<String>,
}

impl Ping {
    /// The clock is read before the request is written and after its answer was checked, as in
    /// the raw ping-pong.
    #[inline]
    fn issue(&mut self, mut request: MsgBuf, response: MsgBuf, cx: &mut Cx<'_>) {
        self.begin = ticks::now();
        work::fill(request.data_mut(), self.counter);
        if let Err(refused) = cx.call(self.session, ECHO, request, response, Tag(self.counter)) {
            self.wrong = Some(refused.to_string());
        }
    }

    #[inline]
    fn on_done(&mut self, done: Done, cx: &mut Cx<'_>) {
        let answer = done.response.data();
        let is_right = done.result.is_ok()
            && answer.len() == self.size
            && work::is_answer(answer, self.size, self.counter);
        self.recorder.record(ticks::now().wrapping_sub(self.begin));
        if !is_right {
            self.wrong = Some(format!("request {}: {:?}", self.counter, done.result));
            return;
        }
        self.counter += 1;
        self.issue(done.request, done.response, cx);
    }
}

/// The client process.
///
/// # Errors
/// A wrong answer, or none.
pub(crate) fn ping(parent: &Parent) -> anyhow::Result<()> {
    let params: Params = parent.receive()?;
    over!(params.setting, measure(parent, &params))
}

fn measure<T: Medium>(parent: &Parent, params: &Params) -> anyhow::Result<()> {
    let mut rpc: Rpc<T, Option<Ping>> = params.setting.open(None)?;
    let sessions = subject::connect(&mut rpc, params.server, 1)?;
    let size = params.size as usize;
    rpc.on_completion(|app, done, cx| {
        if let Some(ping) = app {
            ping.on_done(done, cx);
        }
    });
    let (request, response) = (rpc.buf(size)?, rpc.buf(size)?);
    let (app, mut cx) = rpc.with();
    app.insert(Ping {
        session: sessions[0],
        size,
        recorder: Recorder::warming_up(),
        counter: 0,
        begin: 0,
        wrong: None,
    })
    .issue(request, response, &mut cx);
    let begin = Instant::now();
    let patience = params.span + Duration::from_secs(8);
    let values = loop {
        for _ in 0..BLOCK {
            rpc.run_once();
        }
        let Some(ping) = rpc.app_mut() else {
            bail!("there is no state");
        };
        if let Some(wrong) = ping.wrong.take() {
            bail!(wrong);
        }
        if ping.recorder.count() > 0 && begin.elapsed() >= params.span {
            break ping.recorder.quantiles().to_vec();
        }
        ensure!(begin.elapsed() < patience, "nothing was answered");
    };
    let side = Side::read(&mut rpc)?;
    parent.say(&Report { values, side })
}

fn charts(rows: &[&Row]) -> Vec<Picture> {
    let of = |metric, title: &str| {
        let wanted = Wanted {
            metric,
            x: "size",
            params: &[],
        };
        let mut lines = by_transport(rows, wanted);
        // RDMA reads have no server that answers; they are in the table.
        let published = wanted.published(PUBLISHED, Beside::Median).into_iter();
        lines.extend(published.filter(|line| line.name.starts_with("eRPC")));
        let x = Axis::new("bytes of request and response", "B", Scale::Each);
        let y = Axis::new("round trip", "ns", Scale::Log);
        chart(title, x, y, lines)
    };
    vec![
        of("rtt_p50", "Round trip of one RPC at a time, median"),
        of(
            "rtt_p99",
            "Round trip of one RPC at a time, 99th percentile",
        ),
    ]
}

const fn published(ns: f64, what: &'static str) -> Published {
    Published {
        metric: "rtt_p50",
        params: [Some(("size", Param::Number(32.0))), None, None],
        beside: Beside::Median,
        value: ns,
        what,
        source: "eRPC, table 2",
    }
}
