//! `bandwidth`: the rate of request bytes, with one or four messages in flight, each answered with
//! 32 bytes. The baselines are the rates of memory copies (shm), of raw datagrams (udp) or of bare
//! packets (xdp, dpdk). The same messages over one TCP stream have rows of their own.

pub(crate) mod raw;
pub(crate) mod tcp;

use std::time::{Duration, Instant};

use anyhow::ensure;
use dunlin::{ConnectOptions, Cx, Done, MsgBuf, Rpc, Session, Tag};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::baselines::frames::{bulk, exchange, rtt};
use crate::harness::case::Case;
use crate::harness::experiment::{Experiment, Section};
use crate::harness::probe::{Against, Measurement, Metric, Probe, patience};
use crate::harness::subject::client::{self, Caller, Errand};
use crate::harness::subject::side::Side;
use crate::harness::subject::{ANSWER, Loss, Medium, Report, SINK, over_lossy, server};
use crate::harness::transport::Transport;
use crate::harness::{subject, work};
use crate::output::aims::{Aim, Bound};
use crate::output::chart::{Wanted, by_transport, chart};
use crate::output::papers::{Beside, Param, Published};
use harness::draw::{Axis, Picture, Scale};
use harness::process::{Parent, Role};
use harness::row::Row;

/// The aims over transports that bypass the kernel.
const AIMS: &[Aim] = &[
    Aim::of_ratio(("gbps", "xdp"), &[("size", "1048576")], Bound::AtLeast(0.8)),
    Aim::of_ratio(("gbps", "xdp"), &[("size", "8388608")], Bound::AtLeast(0.8)),
    Aim::of_ratio(
        ("gbps", "xdp:native"),
        &[("size", "1048576")],
        Bound::AtLeast(0.8),
    ),
    Aim::of_ratio(
        ("gbps", "xdp:native"),
        &[("size", "8388608")],
        Bound::AtLeast(0.8),
    ),
    Aim::of_ratio(
        ("gbps", "dpdk"),
        &[("size", "1048576")],
        Bound::AtLeast(0.8),
    ),
    Aim::of_ratio(
        ("gbps", "dpdk"),
        &[("size", "8388608")],
        Bound::AtLeast(0.8),
    ),
];

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "bandwidth",
    about: "Messages of 32 bytes to 1 GiB, one and four at a time, against copies, datagrams and \
            TCP",
    cases: |sweep| Ok(cases(sweep.transports)),
    roles: &[
        server::ROLE,
        SEND,
        tcp::SEND,
        tcp::RECEIVE,
        rtt::PING,
        rtt::ECHO,
        exchange::ROLE,
        bulk::SEND,
        bulk::RECEIVE,
    ],
    allowed: &Transport::WITH_LINKS,
    section: Some(Section {
        title: "Bandwidth",
        text: "Large requests with small responses over one session. The baseline of shared memory \
               is one copy of the same bytes, the baseline of UDP bare datagrams; TCP is measured \
               in addition. Over AF_XDP, the link has an MTU of 9000, over DPDK one of 1500, and \
               the baseline is a transfer of bare packets, whose bytes both sides sum, from a \
               buffer as large as the messages in flight to another one, where the receiver checks \
               each. \
               Every cache line is checked at the receiver.",
    }),
    charts,
    published: PUBLISHED,
    aims: AIMS,
    ..Experiment::BASE
};

/// Figures of the paper.
const PUBLISHED: &[Published] = &[
    published(75.0, "eRPC, 100 Gb/s InfiniBand", "eRPC, figure 6"),
    published(92.0, "the same without the server's copy", "eRPC, §6.4"),
];

/// Issues large requests.
pub(crate) const SEND: Role = Role::new("bandwidth", send);

/// Bytes of a request.
const SIZES: [u32; 6] = [32, 1 << 10, 32 << 10, 1 << 20, 8 << 20, 1 << 30];

/// Messages in flight together.
const INFLIGHT: [u32; 2] = [1, 4];

/// The maximum number of packets in flight. Together they hold few bytes compared with one copy of
/// a large message.
const CREDITS: u32 = 256;

/// Iterations of the event loop between two checks of the time.
const BLOCK: u32 = 64;

/// How much longer the first messages may take on a busy machine if some of their packets are lost.
const LOSSY: Duration = Duration::from_secs(20);

/// Messages of at least this size take a long time.
const HUGE: u32 = 256 << 20;

pub(crate) const METRICS: [Metric; 1] = [Metric {
    name: "gbps",
    unit: "Gbit/s",
    against: Against::Baseline(0),
}];

/// Messages of one size.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Messages {
    pub(crate) size: u32,
    pub(crate) inflight: u32,
}

impl Messages {
    /// Time that a measurement takes in addition to its span, because messages are not cut short.
    /// On a slow machine, four messages of a gigabyte take longer than the usual time; without
    /// `--seconds`, such cases are left out.
    fn overhead(self) -> Duration {
        let last = if self.size >= HUGE { 4000 } else { 20 };
        subject::SET_UP + Duration::from_millis(last) * self.inflight
    }

    /// Gigabits per second, from a number of messages.
    #[expect(
        clippy::cast_precision_loss,
        reason = "messages of a run are far below 2^53"
    )]
    pub(crate) fn gbps(self, count: u64, took: Duration) -> f64 {
        count as f64 * f64::from(self.size) * 8.0 / took.as_secs_f64() / 1e9
    }
}

/// Large requests over one session.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bandwidth {
    transport: Transport,
    messages: Messages,
    /// Packets that client and server lose on purpose.
    loss: Option<Loss>,
}

/// Every size over these transports, and over TCP.
pub(crate) fn cases(transports: &[Transport]) -> Vec<Case> {
    let mut cases = Vec::new();
    for size in SIZES {
        for inflight in INFLIGHT {
            let messages = Messages { size, inflight };
            cases.extend(transports.iter().map(|&it| case(it, messages)));
            cases.push(tcp::case(messages));
        }
    }
    cases
}

fn case(transport: Transport, messages: Messages) -> Case {
    let mut params: Vec<(&str, Value)> = vec![
        ("size", messages.size.into()),
        ("inflight", messages.inflight.into()),
    ];
    params.extend(transport.params(true));
    let subject = Bandwidth {
        transport,
        messages,
        loss: None,
    };
    let case = Case::new("bandwidth", transport.name(), &params, subject);
    match transport {
        Transport::Shm | Transport::Auto => case.against(raw::Memory(messages)),
        Transport::Udp => case.against(raw::Datagrams),
        Transport::Xdp | Transport::XdpNative | Transport::Dpdk => {
            let kind = transport.link().expect("they need one");
            case.against(raw::packets(kind, messages))
        }
        #[cfg(feature = "full")]
        Transport::Sim => case,
    }
}

impl Bandwidth {
    /// 8 MB requests, one at a time, over a transport that loses `per_million` of a million frames,
    /// and delivers `late_per_million` of them late.
    pub(crate) fn of_lossy(transport: Transport, per_million: u32, late_per_million: u32) -> Self {
        let loss = Loss {
            per_million,
            late_per_million,
            seed: 1,
        };
        Self {
            transport,
            messages: Messages {
                size: 8 << 20,
                inflight: 1,
            },
            loss: Some(loss),
        }
    }
}

impl Probe for Bandwidth {
    fn name(&self) -> &'static str {
        "RPC bandwidth"
    }

    fn metrics(&self) -> &'static [Metric] {
        &METRICS
    }

    fn overhead(&self) -> Duration {
        self.messages.overhead() + self.transport.start_takes()
    }

    fn measure(&mut self, span: Duration) -> anyhow::Result<Measurement> {
        let (mut client, mut server) = subject::linked_pair(self.transport)?;
        (client.jumbo, server.jumbo) = (true, true);
        client.largest = self.messages.size;
        server.largest = self.messages.size;
        client.loss = self.loss;
        if let Some(loss) = &mut self.loss {
            // In each round, each process loses different packets.
            loss.seed += 1;
            server.loss = Some(*loss);
            loss.seed += 1;
        }
        let losses = self.loss.map_or(Duration::ZERO, |_| LOSSY);
        let patience = patience(span + 4 * self.overhead() + losses);
        let pair = (client, server);
        let (report, server) = client::report(SEND, pair, self.messages, span, patience)?;
        Ok(report.measurement(&server))
    }
}

/// The state of the client.
struct Sender {
    session: Session,
    issued: u64,
    completed: u64,
    wrong: Option<String>,
}

impl Sender {
    fn issue(&mut self, mut request: MsgBuf, response: MsgBuf, cx: &mut Cx<'_>) {
        work::mark(request.data_mut(), self.issued);
        let tag = Tag(self.issued);
        self.issued += 1;
        if let Err(refused) = cx.call(self.session, SINK, request, response, tag) {
            self.wrong = Some(refused.to_string());
        }
    }
}

impl Caller for Sender {
    fn on_done(&mut self, done: Done, cx: &mut Cx<'_>) {
        let is_right = done.result.is_ok()
            && done.response.len() == ANSWER
            && work::is_request(done.response.data(), done.tag.0);
        if !is_right {
            self.wrong = Some(format!("request {}: {:?}", done.tag.0, done.result));
            return;
        }
        self.completed += 1;
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
pub(crate) fn send(parent: &Parent) -> anyhow::Result<()> {
    let errand: Errand<Messages> = parent.receive()?;
    over_lossy!(errand.setting, measure(parent, &errand))
}

fn measure<T: Medium>(parent: &Parent, errand: &Errand<Messages>) -> anyhow::Result<()> {
    let Messages { size, inflight } = errand.job;
    let mut rpc = client::open::<T, Sender>(&errand.setting)?;
    let mut options = ConnectOptions::default();
    options.session.credits = CREDITS;
    let session = rpc.connect_with(errand.server, &options)?;
    rpc.wait_connected(session)?;
    for _ in 0..inflight {
        let (request, response) = (rpc.buf(size as usize)?, rpc.buf(ANSWER)?);
        let (app, mut cx) = rpc.with();
        let sender = app.get_or_insert(Sender {
            session,
            issued: 0,
            completed: 0,
            wrong: None,
        });
        sender.issue(request, response, &mut cx);
    }
    // The first messages of all buffers also wait for their memory to be mapped.
    run_until(&mut rpc, |sender, _| sender.completed >= inflight.into())?;
    let begin = Instant::now();
    let start = run_until(&mut rpc, |_, _| true)?;
    let last = run_until(&mut rpc, |_, elapsed| elapsed >= errand.span)?;
    // If there are few messages, a part of a message would distort the rate, so the measured time
    // begins and ends with the end of a message.
    let end = run_until(&mut rpc, |sender, _| sender.completed > last)?;
    let values = vec![errand.job.gbps(end - start, begin.elapsed())];
    let side = Side::read(&mut rpc)?;
    parent.say(&Report { values, side })
}

/// Runs until `is_over` returns true; it gets the state and the elapsed time. Returns the number of
/// completed messages.
fn run_until<T: Medium>(
    rpc: &mut Rpc<T, Option<Sender>>,
    is_over: impl Fn(&Sender, Duration) -> bool,
) -> anyhow::Result<u64> {
    let begin = Instant::now();
    let mut last = (0, Instant::now());
    client::run_until(rpc, BLOCK, |sender| {
        if is_over(sender, begin.elapsed()) {
            return Ok(Some(sender.completed));
        }
        if sender.completed != last.0 {
            last = (sender.completed, Instant::now());
        }
        ensure!(
            last.1.elapsed() < Duration::from_secs(30),
            "no message was answered for 30 s"
        );
        Ok(None)
    })
}

fn charts(rows: &[&Row]) -> Vec<Picture> {
    let of = |inflight, title: &str| {
        let wanted = Wanted {
            metric: "gbps",
            x: "size",
            params: &[("inflight", inflight)],
        };
        let mut lines = by_transport(rows, wanted);
        lines.extend(wanted.published(PUBLISHED, Beside::Median));
        let x = Axis::new("bytes of a request", "B", Scale::Each);
        let y = Axis::new("data delivered, Gbit/s", "", Scale::Log);
        chart(title, x, y, lines)
    };
    vec![
        of("1", "Bandwidth, one request at a time"),
        of("4", "Bandwidth, four requests at a time"),
    ]
}

const fn published(gbps: f64, what: &'static str, source: &'static str) -> Published {
    Published {
        metric: "gbps",
        params: [
            Some(("size", Param::Number(8_388_608.0))),
            Some(("inflight", Param::Number(1.0))),
            None,
            None,
        ],
        beside: Beside::Median,
        value: gbps,
        what,
        source,
    }
}
