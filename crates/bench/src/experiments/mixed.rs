//! `mixed`: round trips of small RPCs, one at a time, while 8 MB messages go over the same session,
//! as requests or as responses; the baseline has no large messages. Measured in the simulator (100
//! Gb/s, round trips of 6 µs, packets of 4096 bytes, the default credits), and between two
//! processes.

use std::time::{Duration, Instant};

use anyhow::{anyhow, ensure};
use dunlin::{Cx, Done, MsgBuf, Session, SessionOptions, Tag};
use dunlin_sim::scenario::bulk::{self, Bulk};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::harness::case::Case;
use crate::harness::experiment::{Experiment, Section};
use crate::harness::probe::{Against, Measurement, Metric, Probe, patience};
use crate::harness::rtt::Recorder;
use crate::harness::subject::client::{self, Caller, Errand};
use crate::harness::subject::side::Side;
use crate::harness::subject::{ANSWER, ECHO, LARGE, Medium, Report, SINK, SOURCE, over, server};
use crate::harness::transport::Transport;
use crate::harness::{rtt, subject, ticks, work};
use crate::output::chart::{bar, bars, colour, word};
use harness::draw::{Picture, zero_based};
use harness::process::{Parent, Role};
use harness::row::Row;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "mixed",
    about: "Small RPCs while 8 MB messages go over the same session",
    cases: |sweep| Ok(cases(sweep.transports)),
    roles: &[server::ROLE, CALL],
    usual_time: Duration::from_secs(30),
    section: Some(Section {
        title: "Small beside large",
        text: "Small RPCs, one at a time, while 8 MB messages go over the same session. The \
               baseline is the same without them.",
    }),
    charts,
    ..Experiment::BASE
};

/// Issues small RPCs, and large ones on the same session.
pub(crate) const CALL: Role = Role::new("mixed", call);

/// Bytes of a small RPC, each way.
const SMALL: u32 = 32;
/// Tags of large calls have this bit.
const IS_LARGE: u64 = 1 << 63;
/// Small RPCs of a round in the simulator.
const SIMULATED: u32 = 1_000;
/// Approximate real time of their simulation.
const SIMULATING: Duration = Duration::from_millis(80);
/// Small RPCs that do not count, while caches and buffers warm up.
const WARM_UP: u64 = 500;
/// Iterations of the event loop between two checks of the time.
const BLOCK: u32 = 64;
/// A measurement fails if it takes this much longer than its span.
const STUCK: Duration = Duration::from_secs(8);

const METRICS: [Metric; 4] = [
    rtt::METRICS[0],
    rtt::METRICS[1],
    rtt::METRICS[2],
    Metric {
        name: "gbps",
        unit: "Gbit/s",
        against: Against::Nothing,
    },
];

/// Without `rtt_p999`: the simulator has too few round trips for it.
const SIMULATED_METRICS: [Metric; 3] = [METRICS[0], METRICS[1], METRICS[3]];

/// The direction of the large messages: requests or responses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
enum Direction {
    Request,
    Response,
}

/// The direction of the large messages, if there are any.
type Beside = Option<Direction>;

/// Every direction, in the simulator and over these transports.
pub(crate) fn cases(transports: &[Transport]) -> Vec<Case> {
    let mut cases = Vec::new();
    for (direction, name) in [
        (Direction::Request, "request"),
        (Direction::Response, "response"),
    ] {
        let params = [("large", Value::from(name))];
        let simulated = |beside| Simulated { beside, seed: 1 };
        let case = Case::new("mixed", "sim", &params, simulated(Some(direction)));
        cases.push(case.against(simulated(None)));
        cases.extend(transports.iter().map(|&transport| {
            let real = |beside| Mixed { transport, beside };
            let case = Case::new("mixed", transport.name(), &params, real(Some(direction)));
            case.against(real(None))
        }));
    }
    cases
}

const fn name(beside: Beside) -> &'static str {
    match beside {
        Some(_) => "small RPCs beside large messages",
        None => "without large messages",
    }
}

/// A measurement in the simulator.
#[derive(Clone, Copy, Debug)]
struct Simulated {
    beside: Beside,
    seed: u64,
}

impl Probe for Simulated {
    fn name(&self) -> &'static str {
        name(self.beside)
    }

    fn metrics(&self) -> &'static [Metric] {
        &SIMULATED_METRICS
    }

    fn overhead(&self) -> Duration {
        SIMULATING
    }

    /// Ignores the span, which is real time: the simulator has its own clock.
    #[expect(clippy::cast_precision_loss, reason = "round trips are far below 2^53")]
    fn measure(&mut self, _span: Duration) -> anyhow::Result<Measurement> {
        let (request_bytes, answer_bytes) = match self.beside {
            Some(Direction::Response) => (SMALL, LARGE),
            _ => (LARGE, SMALL),
        };
        let bulk = Bulk {
            seed: self.seed,
            request_bytes,
            answer_bytes,
            credits: SessionOptions::default().credits,
            requests: u32::from(self.beside.is_some()),
            small_requests: SIMULATED,
            ..Bulk::default()
        };
        self.seed += 1;
        let report = bulk::run(&bulk).map_err(|wrong| anyhow!(wrong))?;
        let [p50, p99] = report.small_rtt.map(|rtt| rtt.0 as f64);
        Ok(Measurement {
            details: vec![format!("{report:?}")],
            ..Measurement::from(vec![p50, p99, report.gbps])
        })
    }
}

/// A measurement between two processes.
#[derive(Clone, Copy, Debug)]
struct Mixed {
    transport: Transport,
    beside: Beside,
}

impl Probe for Mixed {
    fn name(&self) -> &'static str {
        name(self.beside)
    }

    fn metrics(&self) -> &'static [Metric] {
        &METRICS
    }

    fn overhead(&self) -> Duration {
        subject::SET_UP + Duration::from_millis(20)
    }

    fn measure(&mut self, span: Duration) -> anyhow::Result<Measurement> {
        let pair = subject::spinning_pair(self.transport);
        let (report, server) = client::report(CALL, pair, self.beside, span, patience(span))?;
        Ok(report.measurement(&server))
    }
}

/// The state of the client.
struct Mixer {
    session: Session,
    beside: Beside,
    /// The number of the small call in flight.
    small: u64,
    /// The number of the large call in flight, if the case has large calls.
    large: u64,
    recorder: Recorder,
    begin: u64,
    wrong: Option<String>,
}

impl Mixer {
    #[inline]
    fn issue_small(&mut self, mut request: MsgBuf, response: MsgBuf, cx: &mut Cx<'_>) {
        self.begin = ticks::now();
        work::fill(request.data_mut(), self.small);
        if let Err(refused) = cx.call(self.session, ECHO, request, response, Tag(self.small)) {
            self.wrong = Some(refused.to_string());
        }
    }

    fn issue_large(&mut self, mut request: MsgBuf, response: MsgBuf, cx: &mut Cx<'_>) {
        work::mark(request.data_mut(), self.large);
        let req_type = match self.beside {
            Some(Direction::Response) => SOURCE,
            _ => SINK,
        };
        let tag = Tag(self.large | IS_LARGE);
        if let Err(refused) = cx.call(self.session, req_type, request, response, tag) {
            self.wrong = Some(refused.to_string());
        }
    }

    /// True if there is a round trip to report, and a large message if the case has any.
    fn has_enough(&self) -> bool {
        self.recorder.count() > 0 && (self.beside.is_none() || self.large > 0)
    }

    /// The values of [`METRICS`].
    #[expect(
        clippy::cast_precision_loss,
        reason = "messages of a run are far below 2^53"
    )]
    fn values(&self, took: Duration) -> Vec<f64> {
        let bits = self.large as f64 * f64::from(LARGE) * 8.0;
        let mut values = self.recorder.quantiles().to_vec();
        values.push(bits / took.as_secs_f64() / 1e9);
        values
    }
}

impl Caller for Mixer {
    fn on_done(&mut self, done: Done, cx: &mut Cx<'_>) {
        let answer = done.response.data();
        let is_large = done.tag.0 & IS_LARGE != 0;
        let is_right = done.result.is_ok()
            && match (is_large, self.beside) {
                (false, _) => {
                    answer.len() == SMALL as usize
                        && work::is_answer(answer, SMALL as usize, self.small)
                }
                (true, Some(Direction::Response)) => {
                    answer.len() == LARGE as usize && work::is_marked(answer, self.large)
                }
                (true, _) => answer.len() == ANSWER && work::is_request(answer, self.large),
            };
        if !is_right {
            self.wrong = Some(format!("request {:x}: {:?}", done.tag.0, done.result));
        } else if is_large {
            self.large += 1;
            self.issue_large(done.request, done.response, cx);
        } else {
            self.recorder.record(ticks::now().wrapping_sub(self.begin));
            self.small += 1;
            self.issue_small(done.request, done.response, cx);
        }
    }

    fn take_wrong(&mut self) -> Option<String> {
        self.wrong.take()
    }
}

/// The client process.
///
/// # Errors
/// An answer is wrong or missing.
pub(crate) fn call(parent: &Parent) -> anyhow::Result<()> {
    let errand: Errand<Beside> = parent.receive()?;
    over!(errand.setting, measure(parent, &errand))
}

fn measure<T: Medium>(parent: &Parent, errand: &Errand<Beside>) -> anyhow::Result<()> {
    let mut rpc = client::open::<T, Mixer>(&errand.setting)?;
    let sessions = subject::connect(&mut rpc, errand.server, 1)?;
    let small = (rpc.buf(SMALL as usize)?, rpc.buf(SMALL as usize)?);
    let large = match errand.job {
        Some(Direction::Request) => Some((rpc.buf(LARGE as usize)?, rpc.buf(ANSWER)?)),
        Some(Direction::Response) => Some((rpc.buf(ANSWER)?, rpc.buf(LARGE as usize)?)),
        None => None,
    };
    let (app, mut cx) = rpc.with();
    let mixer = app.insert(Mixer {
        session: sessions[0],
        beside: errand.job,
        small: 0,
        large: 0,
        recorder: Recorder::skipping(WARM_UP),
        begin: 0,
        wrong: None,
    });
    if let Some((request, response)) = large {
        mixer.issue_large(request, response, &mut cx);
    }
    mixer.issue_small(small.0, small.1, &mut cx);
    let begin = Instant::now();
    let values = client::run_until(&mut rpc, BLOCK, |mixer| {
        let took = begin.elapsed();
        let is_over = took >= errand.span && mixer.has_enough();
        ensure!(
            is_over || took < errand.span + STUCK,
            "too little was answered"
        );
        Ok(is_over.then(|| mixer.values(took)))
    })?;
    let side = Side::read(&mut rpc)?;
    parent.say(&Report { values, side })
}

fn charts(rows: &[&Row]) -> Vec<Picture> {
    let of = |metric, title: &str| {
        let wanted = rows.iter().filter(|row| row.metric == metric);
        let all = wanted.map(|row| {
            let large = word(row, "large").unwrap_or_default();
            bar(
                row,
                format!("{}, large {large}s", row.transport),
                colour(&row.transport),
            )
        });
        let axis = zero_based("round trip of a 32-byte RPC on the same session", "ns");
        bars(title, axis, "without large messages", all.collect())
    };
    vec![
        of("rtt_p50", "Small RPCs beside 8 MB messages, median"),
        of(
            "rtt_p99",
            "Small RPCs beside 8 MB messages, 99th percentile",
        ),
    ]
}
