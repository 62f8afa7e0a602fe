//! `parallel`: large messages that share a path. Eight equal requests on one session must take
//! about the same time. The goodput of 60 echoes of 64 KiB over eight sessions is compared with the
//! goodput of TCP with a connection for each session.

mod tcp;

use std::time::{Duration, Instant};

use anyhow::ensure;
use dunlin::{Cx, Done, MsgBuf, Rpc, Session, Tag};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::harness::case::Case;
use crate::harness::experiment::{Experiment, Section};
use crate::harness::probe::{Against, Measurement, Metric, Probe, patience};
use crate::harness::rtt::Recorder;
use crate::harness::subject::client::{self, Caller, Errand};
use crate::harness::subject::side::Side;
use crate::harness::subject::{ANSWER, MIRROR, Medium, Report, SINK, over, server};
use crate::harness::transport::Transport;
use crate::harness::{subject, ticks, work};
use harness::process::{Parent, Role};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "parallel",
    about: "Large messages side by side: eight requests of a session, 60 echoes of 64 KiB",
    cases: |sweep| Ok(cases(sweep.transports)),
    roles: &[server::ROLE, CALL, tcp::CALL, tcp::ANSWER_CALLS],
    section: Some(Section {
        title: "Large messages side by side",
        text: "Eight equal requests of one session, answered with 32 bytes, and 60 echoes of 64 \
               KiB over eight sessions. The baseline is the same over TCP, a connection for each \
               session, without Nagle's algorithm, with default buffers or with buffers of 4 MB, \
               whichever were better. `p99` is compared with the mean of the same round; `resent` \
               counts packets that either side sent again.",
    }),
    ..Experiment::BASE
};

/// Issues several large messages at the same time.
pub(crate) const CALL: Role = Role::new("parallel", call);

/// Time before the first message that counts.
const WARM_UP: Duration = Duration::from_millis(50);

/// Iterations of the event loop between two checks of the time.
const BLOCK: u32 = 16;

/// A measurement fails if it takes this much longer than its span.
const STUCK: Duration = Duration::from_secs(8);

const METRICS: [Metric; 4] = [
    Metric {
        name: "gbps",
        unit: "Gbit/s",
        against: Against::Baseline(0),
    },
    Metric {
        name: "p99",
        unit: "ns",
        against: Against::Own {
            index: 2,
            name: "mean",
        },
    },
    Metric::alone("mean", "ns"),
    Metric::alone("resent", ""),
];

/// Messages that are in flight together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Messages {
    pub(crate) size: u32,
    pub(crate) sessions: usize,
    pub(crate) inflight: usize,
    /// If true, the answer has the bytes of the request; otherwise it has [`ANSWER`] bytes.
    pub(crate) echoed: bool,
}

const CASES: [Messages; 3] = [
    requests(64 << 10),
    requests(1 << 20),
    Messages {
        size: 64 << 10,
        sessions: 8,
        inflight: 60,
        echoed: true,
    },
];

const fn requests(size: u32) -> Messages {
    Messages {
        size,
        sessions: 1,
        inflight: 8,
        echoed: false,
    }
}

impl Messages {
    /// Messages in flight on the session with this number.
    fn of_session(self, session: usize) -> usize {
        (self.inflight + self.sessions - 1 - session) / self.sessions
    }

    fn answer(self) -> usize {
        match self.echoed {
            true => self.size as usize,
            false => ANSWER,
        }
    }

    /// Gigabits of requests per second.
    #[expect(
        clippy::cast_precision_loss,
        reason = "messages of a run are far below 2^53"
    )]
    fn gbps(self, count: u64, took: Duration) -> f64 {
        count as f64 * f64::from(self.size) * 8.0 / took.as_secs_f64() / 1e9
    }

    /// True if this is the answer to message number `counter`.
    fn is_answer(self, answer: &[u8], counter: u64) -> bool {
        answer.len() == self.answer()
            && match self.echoed {
                true => work::is_marked(answer, counter),
                false => work::is_request(answer, counter),
            }
    }
}

/// Every kind of messages over these transports.
pub(crate) fn cases(transports: &[Transport]) -> Vec<Case> {
    let all = CASES.iter().flat_map(|&messages| {
        transports
            .iter()
            .map(move |&transport| case(transport, messages))
    });
    all.collect()
}

fn case(transport: Transport, messages: Messages) -> Case {
    let params: [(&str, Value); 4] = [
        ("size", messages.size.into()),
        ("sessions", messages.sessions.into()),
        ("inflight", messages.inflight.into()),
        ("echoed", messages.echoed.into()),
    ];
    let subject = Parallel {
        transport,
        messages,
    };
    let case = Case::new("parallel", transport.name(), &params, subject);
    case.against(tcp::Tcp(messages))
}

/// Large messages over the library.
#[derive(Clone, Copy, Debug)]
struct Parallel {
    transport: Transport,
    messages: Messages,
}

impl Probe for Parallel {
    fn name(&self) -> &'static str {
        "large messages side by side"
    }

    fn metrics(&self) -> &'static [Metric] {
        &METRICS
    }

    fn overhead(&self) -> Duration {
        subject::SET_UP + WARM_UP
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "packets of a run are far below 2^53"
    )]
    fn measure(&mut self, span: Duration) -> anyhow::Result<Measurement> {
        let pair = subject::spinning_pair(self.transport);
        let patience = patience(span + self.overhead());
        let (mut report, served) = client::report(CALL, pair, self.messages, span, patience)?;
        let resent = report.side.count("retransmissions") + served.count("responses_resent");
        report.values.push(resent as f64);
        Ok(report.measurement(&served))
    }
}

/// The state of the client.
struct Sender {
    messages: Messages,
    sessions: Vec<Session>,
    /// Start times of the messages in flight. The index is the message's tag modulo the number of
    /// messages in flight.
    begun: Vec<u64>,
    issued: u64,
    completed: u64,
    recorder: Recorder,
    wrong: Option<String>,
}

impl Sender {
    fn issue(&mut self, place: usize, mut request: MsgBuf, response: MsgBuf, cx: &mut Cx<'_>) {
        let places = self.messages.inflight as u64;
        let counter = self.issued * places + place as u64;
        self.issued += 1;
        work::mark(request.data_mut(), counter);
        self.begun[place] = ticks::now();
        let session = self.sessions[place % self.sessions.len()];
        let req_type = if self.messages.echoed { MIRROR } else { SINK };
        if let Err(refused) = cx.call(session, req_type, request, response, Tag(counter)) {
            self.wrong = Some(refused.to_string());
        }
    }
}

impl Caller for Sender {
    fn on_done(&mut self, done: Done, cx: &mut Cx<'_>) {
        let counter = done.tag.0;
        if done.result.is_err() || !self.messages.is_answer(done.response.data(), counter) {
            self.wrong = Some(format!("request {counter}: {:?}", done.result));
            return;
        }
        self.completed += 1;
        let place = usize::try_from(counter % self.messages.inflight as u64)
            .expect("places of messages are few");
        let took = ticks::now().wrapping_sub(self.begun[place]);
        self.recorder.record(took);
        self.issue(place, done.request, done.response, cx);
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
    let errand: Errand<Messages> = parent.receive()?;
    over!(errand.setting, measure(parent, &errand))
}

fn measure<T: Medium>(parent: &Parent, errand: &Errand<Messages>) -> anyhow::Result<()> {
    let messages = errand.job;
    let mut rpc = client::open::<T, Sender>(&errand.setting)?;
    let sessions = subject::connect(&mut rpc, errand.server, messages.sessions)?;
    *rpc.app_mut() = Some(Sender {
        messages,
        sessions,
        begun: vec![0; messages.inflight],
        issued: 0,
        completed: 0,
        recorder: Recorder::skipping(0),
        wrong: None,
    });
    for place in 0..messages.inflight {
        let request = rpc.buf(messages.size as usize)?;
        let response = rpc.buf(messages.answer())?;
        let (app, mut cx) = rpc.with();
        if let Some(sender) = app {
            sender.issue(place, request, response, &mut cx);
        }
    }
    // The first messages of all buffers also wait for their memory to be mapped.
    run_for(&mut rpc, WARM_UP, 2 * messages.inflight as u64)?;
    client::state(&mut rpc)?.recorder = Recorder::skipping(0);
    let (begin, least) = (Instant::now(), messages.inflight as u64);
    let count = run_for(&mut rpc, errand.span, least)?;
    let took = begin.elapsed();
    let recorder = &client::state(&mut rpc)?.recorder;
    let values = vec![
        messages.gbps(count, took),
        recorder.quantile(0.99),
        recorder.mean(),
    ];
    let side = Side::read(&mut rpc)?;
    parent.say(&Report { values, side })
}

/// Runs for `span`, or longer if fewer than `least` messages have completed by then; returns how
/// many have completed.
fn run_for<T: Medium>(
    rpc: &mut Rpc<T, Option<Sender>>,
    span: Duration,
    least: u64,
) -> anyhow::Result<u64> {
    let begin = Instant::now();
    let mut first = None;
    client::run_until(rpc, BLOCK, |sender| {
        let count = sender.completed - *first.get_or_insert(sender.completed);
        let took = begin.elapsed();
        let is_over = count >= least && took >= span;
        ensure!(is_over || took < span + STUCK, "too little was answered");
        Ok(is_over.then_some(count))
    })
}

#[cfg(test)]
mod tests;
