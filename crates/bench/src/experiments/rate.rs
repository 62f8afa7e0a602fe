//! `rate`: RPCs per second with many in flight. The baseline is usually the rate of raw packets
//! over the same medium; for packed `xdp`, it is the rate of the same RPCs over `udp` on that link.
//! `one_way`: one process issues, the other serves. `symmetric`: each process does both, and the
//! figure is the rate of the slower one.

use std::net::SocketAddr;
use std::time::Duration;

use dunlin::{Rpc, Session, SessionEvent};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::baselines::exchange::Exchange;
#[cfg(feature = "full")]
use crate::baselines::frames::exchange::FrameExchange;
use crate::baselines::udp_rate;
use crate::baselines::udp_rate::UdpRate;
use crate::harness::case::Case;
use crate::harness::experiment::{Experiment, Section, Sweep};
#[cfg(feature = "full")]
use crate::harness::link::Kind;
use crate::harness::probe::{Against, Measurement, Metric, Probe, patience};
use crate::harness::subject;
pub(crate) use crate::harness::subject::pipeline::SIZE as USUAL_SIZE;
use crate::harness::subject::pipeline::{Choice, HasPipeline, INFLIGHT, Pipeline};
use crate::harness::subject::side::Side;
use crate::harness::subject::{Medium, Report, Server, Setting, over_link, pipeline, server};
use crate::harness::transport::Transport;
use crate::harness::work;
use crate::output::aims::{Aim, Bound};
use crate::output::chart::{Wanted, by_transport, chart, word};
use crate::output::papers::{Beside, Param, Published};
use harness::draw::{Axis, Picture, Scale};
use harness::process::{Parent, Process, Role};
use harness::row::Row;
use harness::seat::Seat;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "rate",
    about: "RPCs per second, 60 in flight over 8 sessions, in batches",
    cases: |sweep| Ok(cases(sweep)),
    roles: &[server::ROLE, ISSUE],
    transports: &Transport::ALL,
    allowed: &Transport::WITH_LINKS,
    sizes: &work::SIZES,
    usual_time: Duration::from_secs(120),
    section: Some(Section {
        title: "Rate against batch",
        text: "60 RPCs in flight over 8 sessions, issued in batches, by one thread; the charts \
               show RPCs of 32 bytes. \
               The baseline of shared memory exchanges the same messages over bare rings, the \
               baseline of UDP sends datagrams in one direction. Over AF_XDP, the baseline is an \
               exchange of bare packets if each packet has its own datagram, and the rate of these \
               RPCs over UDP on the same link if packets share datagrams. Over DPDK, it is an \
               exchange of bare packets in both cases. The paper's threads each call ten others \
               and serve them.",
    }),
    charts,
    published: PUBLISHED,
    aims: AIMS,
    ..Experiment::BASE
};

/// The aims over transports that bypass the kernel.
const AIMS: &[Aim] = &[
    Aim::of_ratio(
        ("rpc_per_s", "xdp"),
        &[("size", "32"), ("batch", "16"), ("packing", "false")],
        Bound::AtLeast(0.75),
    ),
    Aim::of_ratio(
        ("rpc_per_s", "xdp"),
        &[("size", "32"), ("batch", "16"), ("packing", "true")],
        Bound::AtLeast(1.2),
    ),
    Aim::of_ratio(
        ("rpc_per_s", "xdp:native"),
        &[("size", "32"), ("batch", "16"), ("packing", "false")],
        Bound::AtLeast(0.75),
    ),
    Aim::of_ratio(
        ("rpc_per_s", "xdp:native"),
        &[("size", "32"), ("batch", "16"), ("packing", "true")],
        Bound::AtLeast(1.2),
    ),
];

/// Figures of the paper.
const PUBLISHED: &[Published] = &[
    published(4.96e6, "eRPC, CX4", "eRPC, table 3 and figure 4"),
    published(5.44e6, "eRPC, CX4, no congestion control", "eRPC, §6.2"),
];

/// Issues many RPCs at a time; in `symmetric`, serves as many as well.
pub(crate) const ISSUE: Role = Role::new("issue", issue);

/// Requests that are issued together.
const BATCHES: [u32; 4] = [1, 3, 8, 16];

/// The batch of messages that do not have the usual size. If every size had every batch, there
/// would be five times as many rows, and less time for each.
const USUAL_BATCH: [u32; 1] = [3];

/// Sessions between the two endpoints, each with the default window and credits.
const SESSIONS: usize = 8;

/// Time before the first RPC that counts.
const WARM_UP: Duration = Duration::from_millis(20);

/// How long a process continues to issue after the last RPC that counts.
const COOL_DOWN: Duration = Duration::from_millis(5);

const METRICS: [Metric; 1] = [Metric {
    name: "rpc_per_s",
    unit: "1/s",
    against: Against::Baseline(0),
}];

/// The processes that issue requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Pattern {
    /// One side issues; the other serves.
    OneWay,
    /// Both sides issue.
    Symmetric,
}

/// The rate of RPCs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rate {
    transport: Transport,
    pattern: Pattern,
    batch: u32,
    /// Bytes of a request and of its response.
    size: u16,
    packing: bool,
    /// udp: whether the processes use the link of `xdp`.
    is_on_link: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Params {
    setting: Setting,
    /// The server to connect to. If there is none, this process listens, and begins to issue
    /// requests when the other process does.
    server: Option<SocketAddr>,
    batch: u32,
    size: u16,
    span: Duration,
}

/// Every pattern and size over the chosen transports, with every batch if the size is the usual one
/// or a chosen one. Over udp, `one_way` is also measured without packing; over xdp and dpdk, every
/// case is.
fn cases(sweep: &Sweep<'_>) -> Vec<Case> {
    let mut cases = Vec::new();
    for &size in sweep.sizes {
        let has_all = size == USUAL_SIZE || sweep.are_sizes_chosen;
        let batches = if has_all { &BATCHES[..] } else { &USUAL_BATCH };
        for pattern in [Pattern::OneWay, Pattern::Symmetric] {
            for &batch in batches {
                for &transport in sweep.transports {
                    let usual = Rate::usual(transport, pattern, batch);
                    let rate = Rate { size, ..usual };
                    cases.push(case(rate));
                    let is_udp = transport == Transport::Udp;
                    if is_udp && pattern == Pattern::OneWay || rate.transport.has_link() {
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
pub(crate) fn case(rate: Rate) -> Case {
    let mut params: Vec<(&str, Value)> = vec![
        ("pattern", rate.pattern.name().into()),
        ("batch", rate.batch.into()),
        ("inflight", INFLIGHT.into()),
        ("size", rate.size.into()),
    ];
    params.extend(rate.transport.params(rate.packing));
    if rate.transport == Transport::Udp {
        params.push(("packing", rate.packing.into()));
    }
    let case = Case::new("rate", rate.transport.name(), &params, rate);
    match rate.transport {
        Transport::Shm => case.against(rate.rings()),
        #[cfg(feature = "full")]
        Transport::Auto => case.against(rate.rings()),
        Transport::Udp => case.against(UdpRate {
            segments: 1,
            size: udp_rate::datagram(rate.size),
        }),
        #[cfg(feature = "full")]
        Transport::Xdp | Transport::XdpNative if rate.packing => case.against(Rate {
            transport: Transport::Udp,
            is_on_link: true,
            ..rate
        }),
        #[cfg(feature = "full")]
        Transport::Xdp | Transport::XdpNative | Transport::Dpdk => case.against(rate.exchange()),
        #[cfg(feature = "full")]
        Transport::Sim => case,
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
    /// The case with messages of the usual size, packed.
    pub(crate) const fn usual(transport: Transport, pattern: Pattern, batch: u32) -> Self {
        Self {
            transport,
            pattern,
            batch,
            size: USUAL_SIZE,
            packing: true,
            is_on_link: false,
        }
    }

    /// The same exchange over bare rings.
    fn rings(&self) -> Exchange {
        Exchange {
            size: self.size,
            batch: self.batch,
            symmetric: self.pattern == Pattern::Symmetric,
        }
    }

    /// The same exchange of bare packets.
    #[cfg(feature = "full")]
    fn exchange(&self) -> FrameExchange {
        FrameExchange {
            size: self.size,
            batch: self.batch,
            symmetric: self.pattern == Pattern::Symmetric,
            kind: self.transport.link().expect("it needs one"),
        }
    }

    fn settings(&self) -> anyhow::Result<(Setting, Setting)> {
        let pair = subject::linked_pair(self.transport)?;
        #[cfg(feature = "full")]
        let pair = match self.is_on_link {
            true => subject::at_link(pair, Kind::Kernel)?,
            false => pair,
        };
        let (client, server) = pair;
        let packing = self.packing;
        Ok((Setting { packing, ..client }, Setting { packing, ..server }))
    }

    fn one_way(&self, span: Duration) -> anyhow::Result<Measurement> {
        let (setting, server) = self.settings()?;
        let mut server = Server::start(&server::Params::prompt(server))?;
        let params = Params {
            setting,
            server: Some(server.address),
            batch: self.batch,
            size: self.size,
            span,
        };
        let mut client = Process::spawn(ISSUE, Seat::default(), &params)?;
        let report: Report = client.receive(patience(span))?;
        Ok(report.measurement(&server.side()?))
    }

    fn symmetric(&self, span: Duration) -> anyhow::Result<Measurement> {
        let (first, second) = self.settings()?;
        let mut params = Params {
            setting: second,
            server: None,
            batch: self.batch,
            size: self.size,
            span,
        };
        let mut second = Process::spawn(ISSUE, Seat::default(), &params)?;
        params.server = Some(second.receive(patience(Duration::ZERO))?);
        params.setting = first;
        let mut first = Process::spawn(ISSUE, Seat::default(), &params)?;
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
        if self.is_on_link {
            "RPC rate over udp, same link"
        } else {
            "RPC rate"
        }
    }

    fn metrics(&self) -> &'static [Metric] {
        &METRICS
    }

    fn overhead(&self) -> Duration {
        subject::SET_UP + self.transport.start_takes() + WARM_UP + COOL_DOWN
    }

    fn measure(&mut self, span: Duration) -> anyhow::Result<Measurement> {
        match self.pattern {
            Pattern::OneWay => self.one_way(span),
            Pattern::Symmetric => self.symmetric(span),
        }
    }
}

/// The state of a process that issues, and in `symmetric` also serves.
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

/// A process that issues requests. After its report it continues to serve until the parent kills
/// it.
///
/// # Errors
/// An answer is wrong or missing.
pub(crate) fn issue(parent: &Parent) -> anyhow::Result<()> {
    let params: Params = parent.receive()?;
    over_link!(params.setting, run(parent, &params))
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
    // The other process may have started a little later and still be measuring.
    pipeline::rate(&mut rpc, COOL_DOWN)?;
    pipeline::stop(&mut rpc)?;
    params.setting.seat.step_back()?;
    parent.say(&Report { values, side })?;
    loop {
        rpc.run_once();
    }
}

fn charts(rows: &[&Row]) -> Vec<Picture> {
    // Rows of other sizes are only in the table. Old rows do not name their size, which was the
    // usual one.
    let is_drawn = |row: &&&Row| {
        let size = word(row, "size");
        word(row, "packing").as_deref() != Some("false") && size.is_none_or(|size| size == "32")
    };
    let rows: Vec<&Row> = rows.iter().filter(is_drawn).copied().collect();
    let of = |pattern, title: &str| {
        let wanted = Wanted {
            metric: "rpc_per_s",
            x: "batch",
            params: &[("pattern", pattern)],
        };
        let mut lines = by_transport(&rows, wanted);
        lines.extend(wanted.published(PUBLISHED, Beside::Median));
        let x = Axis::new("requests issued together", "", Scale::Each);
        let y = Axis::new("RPCs per second and thread", "1/s", Scale::Log);
        chart(title, x, y, lines)
    };
    vec![
        of("one_way", "Rate of 32-byte RPCs, a client and a server"),
        of("symmetric", "Rate of 32-byte RPCs, both sides call"),
    ]
}

const fn published(per_s: f64, what: &'static str, source: &'static str) -> Published {
    Published {
        metric: "rpc_per_s",
        params: [
            Some(("batch", Param::Number(3.0))),
            Some(("pattern", Param::Word("symmetric"))),
            None,
            None,
        ],
        beside: Beside::Median,
        value: per_s,
        what,
        source,
    }
}
