//! `latency`: round trips of one RPC at a time, from the call to the continuation. The baseline is
//! a raw ping-pong of a packet of the same size over the same medium. Both sides spin.

use std::time::{Duration, Instant};

use anyhow::ensure;
use dunlin::{Cx, Done, MsgBuf, Session, Tag};
use serde_json::Value;

#[cfg(feature = "full")]
use crate::baselines::frames::rtt::FrameRtt;
use crate::baselines::shm_rtt::ShmRtt;
use crate::baselines::udp_rtt::UdpRtt;
use crate::harness::case::Case;
use crate::harness::experiment::{Experiment, Section};
use crate::harness::probe::{Measurement, Metric, Probe, patience};
use crate::harness::rtt::Recorder;
use crate::harness::subject::client::{self, Caller, Errand};
use crate::harness::subject::side::Side;
use crate::harness::subject::{ECHO, Medium, Report, over_link, server};
use crate::harness::transport::Transport;
use crate::harness::{rtt, subject, ticks, work};
use crate::output::aims::{Aim, Bound};
use crate::output::chart::{Wanted, by_transport, chart};
use crate::output::papers::{Beside, Param, Published};
use harness::draw::{Axis, Picture, Scale};
use harness::process::{Parent, Role};
use harness::row::Row;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "latency",
    about: "Round trips of one RPC at a time, 8 to 1000 bytes",
    cases: |sweep| Ok(cases(sweep.transports, sweep.sizes)),
    roles: &[server::ROLE, PING],
    transports: &Transport::ALL,
    allowed: &Transport::WITH_LINKS,
    sizes: &work::SIZES,
    usual_time: Duration::from_secs(30),
    section: Some(Section {
        title: "Latency against size",
        text: "One RPC at a time between two processes, the same number of bytes each way. The \
               baseline sends the same bytes through a bare cache line or a bare socket. The \
               paper's round trips go through a switch and two NICs.",
    }),
    charts,
    published: PUBLISHED,
    aims: AIMS,
    ..Experiment::BASE
};

/// The aims over transports that bypass the kernel.
const AIMS: &[Aim] = &[
    Aim::of_ratio(("rtt_p50", "xdp"), &[("size", "32")], Bound::AtMost(1.15)),
    Aim::of_ratio(
        ("rtt_p50", "xdp:native"),
        &[("size", "32")],
        Bound::AtMost(1.15),
    ),
    Aim::of_ratio(("rtt_p50", "dpdk"), &[("size", "32")], Bound::AtMost(1.3)),
];

/// Figures of the paper.
const PUBLISHED: &[Published] = &[
    published(2_100.0, "eRPC, CX3 (InfiniBand)"),
    published(2_300.0, "eRPC, CX5 (Ethernet)"),
    published(3_700.0, "eRPC, CX4 (Ethernet)"),
    published(1_700.0, "RDMA read, CX3"),
    published(2_900.0, "RDMA read, CX4"),
    published(2_000.0, "RDMA read, CX5"),
];

/// Issues one RPC after another.
pub(crate) const PING: Role = Role::new("ping", ping);

/// Iterations of the event loop between two checks of the time.
const BLOCK: u32 = 256;

/// A measurement fails if it takes this much longer than its span.
const STUCK: Duration = Duration::from_secs(8);

/// Round trips of RPCs of `size` bytes.
#[derive(Clone, Copy, Debug)]
struct Latency {
    transport: Transport,
    size: u32,
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
    let mut params: Vec<(&str, Value)> = vec![("size", size.into())];
    params.extend(transport.params(true));
    let case = Case::new("latency", transport.name(), &params, subject);
    match transport {
        Transport::Shm => case.against(ShmRtt { size }),
        #[cfg(feature = "full")]
        Transport::Auto => case.against(ShmRtt { size }),
        Transport::Udp => case.against(UdpRtt {
            size,
            is_connected: false,
        }),
        #[cfg(feature = "full")]
        Transport::Xdp | Transport::XdpNative | Transport::Dpdk => {
            let kind = transport.link().expect("they need one");
            case.against(FrameRtt { size, kind })
        }
        #[cfg(feature = "full")]
        Transport::Sim => case,
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
        subject::SET_UP + self.transport.start_takes()
    }

    fn measure(&mut self, span: Duration) -> anyhow::Result<Measurement> {
        let pair = subject::linked_pair(self.transport)?;
        let (report, server) = client::report(PING, pair, self.size, span, patience(span))?;
        Ok(report.measurement(&server))
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
    /// Issues an RPC. As in the raw ping-pong, the measured time includes writing the request and
    /// checking its answer.
    #[inline]
    fn issue(&mut self, mut request: MsgBuf, response: MsgBuf, cx: &mut Cx<'_>) {
        self.begin = ticks::now();
        work::fill(request.data_mut(), self.counter);
        if let Err(refused) = cx.call(self.session, ECHO, request, response, Tag(self.counter)) {
            self.wrong = Some(refused.to_string());
        }
    }
}

impl Caller for Ping {
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

    fn take_wrong(&mut self) -> Option<String> {
        self.wrong.take()
    }
}

/// The client process.
///
/// # Errors
/// An answer is wrong or missing.
pub(crate) fn ping(parent: &Parent) -> anyhow::Result<()> {
    let errand: Errand<u32> = parent.receive()?;
    over_link!(errand.setting, measure(parent, &errand))
}

fn measure<T: Medium>(parent: &Parent, errand: &Errand<u32>) -> anyhow::Result<()> {
    let mut rpc = client::open::<T, Ping>(&errand.setting)?;
    let sessions = subject::connect(&mut rpc, errand.server, 1)?;
    let size = errand.job as usize;
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
    let values = client::run_until(&mut rpc, BLOCK, |ping| {
        let took = begin.elapsed();
        let is_over = ping.recorder.count() > 0 && took >= errand.span;
        ensure!(
            is_over || took < errand.span + STUCK,
            "nothing was answered"
        );
        Ok(is_over.then(|| ping.recorder.quantiles().to_vec()))
    })?;
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
        // An RDMA read has no server that answers, so published figures of RDMA are only in the
        // table.
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
        params: [Some(("size", Param::Number(32.0))), None, None, None],
        beside: Beside::Median,
        value: ns,
        what,
        source: "eRPC, table 2",
    }
}
