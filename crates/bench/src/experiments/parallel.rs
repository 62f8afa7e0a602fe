//! `parallel`: large messages that share their way. Eight equal requests of one session, which
//! must take about as long as each other, and 60 echoes of 64 KiB over eight sessions, beside
//! goodput over TCP with a connection for each session.

mod tcp;

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{bail, ensure};
use dunlin::{Cx, Done, MsgBuf, Rpc, Session, Tag};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::harness::case::Case;
use crate::harness::experiment::{Experiment, Section};
use crate::harness::probe::{Against, Measurement, Metric, Probe, patience};
use crate::harness::rtt::Recorder;
use crate::harness::subject::side::Side;
use crate::harness::subject::{
    ANSWER, MIRROR, Medium, Report, SINK, Server, Setting, over, server,
};
use crate::harness::transport::Transport;
use crate::harness::{subject, ticks, work};
use harness::process::{Parent, Process, Role};
use harness::seat::Seat;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "parallel",
    about: "Large messages side by side: eight requests of a session, 60 echoes of 64 KiB",
    cases: |sweep| Ok(cases(sweep.transports)),
    roles: &[server::ROLE, CALL, tcp::CALL, tcp::ANSWER_CALLS],
    section: Some(Section {
        title: "Large messages side by side",
        text: "Eight equal requests of one session, answered with 32 bytes, and 60 echoes of \
               64 KiB over eight sessions. The baseline is the same over TCP, a connection for \
               each session, without Nagle's algorithm, with default buffers or those of 4 MB, \
               whichever were better. `p99` is compared with the mean of the same round; `resent` \
               counts packets that either side sent again.",
    }),
    ..Experiment::BASE
};

/// Issues large messages side by side.
pub(crate) const CALL: Role = Role::new("parallel", call);

/// Time before the first message that counts.
const WARM_UP: Duration = Duration::from_millis(50);

/// Iterations of the event loop between two looks at the time.
const BLOCK: u32 = 16;

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
    /// Answered with the bytes of the request, or else with [`ANSWER`] bytes.
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
    /// Messages in flight of the session with this number.
    fn of_session(self, session: usize) -> usize {
        (self.inflight + self.sessions - 1 - session) / self.sessions
    }

    fn answer(self) -> usize {
        match self.echoed {
            true => self.size as usize,
            false => ANSWER,
        }
    }

    /// Gigabits of requests in a second.
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

/// Every message over these transports.
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

#[derive(Debug, Serialize, Deserialize)]
struct Params {
    setting: Setting,
    server: SocketAddr,
    messages: Messages,
    span: Duration,
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
        let (client, server) = subject::spinning_pair(self.transport);
        let mut server = Server::start(&server::Params {
            setting: server,
            handler: Duration::ZERO,
        })?;
        let params = Params {
            setting: client,
            server: server.address,
            messages: self.messages,
            span,
        };
        let mut client = Process::spawn(CALL, Seat::default(), &params)?;
        let mut report: Report = client.receive(patience(span + self.overhead()))?;
        let served = server.side()?;
        let resent = report.side.count("retransmissions") + served.count("responses_resent");
        report.values.push(resent as f64);
        Ok(report.measurement(&served))
    }
}

/// The state of the client.
struct Caller {
    messages: Messages,
    sessions: Vec<Session>,
    /// By the place of a message among those in flight, its low bits in its tag: when it left.
    begun: Vec<u64>,
    issued: u64,
    completed: u64,
    recorder: Recorder,
    wrong: Option<String>,
}

impl Caller {
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
}

/// The client process.
///
/// # Errors
/// A wrong answer, or none.
pub(crate) fn call(parent: &Parent) -> anyhow::Result<()> {
    let params: Params = parent.receive()?;
    over!(params.setting, measure(parent, &params))
}

fn measure<T: Medium>(parent: &Parent, params: &Params) -> anyhow::Result<()> {
    let messages = params.messages;
    let mut rpc: Rpc<T, Option<Caller>> = params.setting.open(None)?;
    let sessions = subject::connect(&mut rpc, params.server, messages.sessions)?;
    rpc.on_completion(|app, done, cx| {
        if let Some(caller) = app {
            caller.on_done(done, cx);
        }
    });
    *rpc.app_mut() = Some(Caller {
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
        if let Some(caller) = app {
            caller.issue(place, request, response, &mut cx);
        }
    }
    // The first messages of all buffers pay for their memory.
    run_for(&mut rpc, WARM_UP, 2 * messages.inflight as u64)?;
    if let Some(caller) = rpc.app_mut() {
        caller.recorder = Recorder::skipping(0);
    }
    let (begin, least) = (Instant::now(), messages.inflight as u64);
    let count = run_for(&mut rpc, params.span, least)?;
    let took = begin.elapsed();
    let Some(caller) = rpc.app_mut() else {
        bail!("there is no state");
    };
    let values = vec![
        messages.gbps(count, took),
        caller.recorder.quantile(0.99),
        caller.recorder.mean(),
    ];
    let side = Side::read(&mut rpc)?;
    parent.say(&Report { values, side })
}

/// Runs for so long, and until `least` messages have completed; returns how many have.
fn run_for<T: Medium>(
    rpc: &mut Rpc<T, Option<Caller>>,
    span: Duration,
    least: u64,
) -> anyhow::Result<u64> {
    let begin = Instant::now();
    let mut first = None;
    loop {
        let Some(caller) = rpc.app_mut() else {
            bail!("there is no state");
        };
        if let Some(wrong) = caller.wrong.take() {
            bail!(wrong);
        }
        let count = caller.completed - *first.get_or_insert(caller.completed);
        if count >= least && begin.elapsed() >= span {
            return Ok(count);
        }
        ensure!(
            begin.elapsed() < span + Duration::from_secs(8),
            "too little was answered"
        );
        for _ in 0..BLOCK {
            rpc.run_once();
        }
    }
}

#[cfg(test)]
mod tests;
