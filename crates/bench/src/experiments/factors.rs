//! `factors`: the gain from each common-case optimisation of eRPC, table 3, and the price of
//! congestion control. The experiment compares the rates, and the instructions, of small RPCs over
//! shared memory with one optimisation off and with all on. For the rates, two processes switch the
//! optimisation off and on in turn.
//!
//! Everything is switched while the endpoints run. The switches of congestion control are
//! [`dunlin::Bypasses`] and the sessions' scheme. Shared memory has no RX queue with descriptors,
//! and therefore no multi-packet descriptors; their counterpart is a receiver that gives back
//! several cells of a ring together. Preallocated responses and zero-copy requests are part of the
//! interface: to switch one off, handlers do the work that they would have to do without it.

pub(crate) mod instructions;
pub(crate) mod pair;

use std::time::Duration;

use anyhow::Context;
use dunlin::{Bypasses, Clock, Cx, Done, ErrorCode, Request, Scheme, Session, SessionEvent, Shm};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::harness::case::Case;
use crate::harness::experiment::{Experiment, Section};
use crate::harness::probe::{Against, Measurement, Metric, Probe};
use crate::harness::subject::ECHO;
use crate::harness::subject::pipeline::{Choice, HasPipeline, INFLIGHT, Pipeline};
use crate::harness::transport::Transport;
use crate::harness::{subject, work};
use crate::output::papers::{Beside, Param, Published};
use harness::row::Row;
use harness::row::Spread;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "factors",
    about: "RPCs over shared memory without one of the optimisations in eRPC's table 3, or without \
            congestion control; not part of `all`",
    cases: |_| cases(),
    roles: &[pair::ROLE, instructions::COUNT],
    transports: &[Transport::Shm],
    allowed: &[Transport::Shm],
    usual_runs: 11,
    is_in_all: false,
    is_compared: false,
    section: Some(Section {
        title: "Optimisations",
        text: "Small RPCs in both directions, while one optimisation of the paper, or congestion \
               control, is switched off and on in turn. In the baseline, all of them are on. The \
               paper switches one after the other off; each ratio is to the row before.",
    }),
    published: PUBLISHED,
    findings: cost_of_control,
    ..Experiment::BASE
};

/// Figures of the paper.
const PUBLISHED: &[Published] = &[
    published("batched_timestamps", 4.84 / 4.96),
    published("timely_bypass", 4.52 / 4.84),
    published("rate_limiter_bypass", 4.30 / 4.52),
    published("all_three", 4.30 / 4.96),
    published("preallocated_responses", 3.55 / 4.06),
    published("zero_copy_requests", 3.05 / 3.55),
    published("everything", 3.05 / 4.96),
    published("control", 5.44 / 4.96),
];

/// Sessions between the two endpoints.
const SESSIONS: usize = 8;

/// Requests that are issued together (eRPC, table 3).
const BATCH: usize = 3;

/// The name of the baseline of all factors.
const BASELINE: &str = "all on";

const RATE: [Metric; 2] = [
    Metric {
        name: "rpc_per_s",
        unit: "1/s",
        against: Against::Own {
            index: 2,
            name: BASELINE,
        },
    },
    Metric::alone("rate_ratio", ""),
];

const INSTRUCTIONS: [Metric; 1] = [Metric {
    name: "instructions_per_rpc",
    unit: "instructions",
    against: Against::Own {
        index: 1,
        name: BASELINE,
    },
}];

/// The factor that is off.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum Factor {
    /// One reading of the clock serves a burst (eRPC §5.2.2).
    BatchedTimestamps,
    /// Timely ignores the round trips of uncongested sessions (§5.2.2).
    TimelyBypass,
    /// Packets of uncongested sessions bypass the timing wheel (§5.2.2).
    RateLimiterBypass,
    /// The three factors above.
    AllThree,
    /// Ordinary short messages take the common path.
    CommonPath,
    /// Short packets are staged in lines that the transport sends in one run.
    Lanes,
    /// A receiver gives cells of a ring back together: the counterpart of the multi-packet
    /// descriptors of an RX queue (§4.1.1).
    CellsTogether,
    /// Responses are written into a buffer that exists already (§4.3).
    PreallocatedResponses,
    /// Handlers read a request in the buffer that received it (§4.2.3).
    ZeroCopyRequests,
    /// All of the above.
    Everything,
    /// Timely. While it is off, sessions have Swift, the default over networks.
    Timely,
    /// Congestion control itself.
    Control,
}

impl Factor {
    const ALL: [Self; 12] = [
        Self::BatchedTimestamps,
        Self::TimelyBypass,
        Self::RateLimiterBypass,
        Self::AllThree,
        Self::CommonPath,
        Self::Lanes,
        Self::CellsTogether,
        Self::PreallocatedResponses,
        Self::ZeroCopyRequests,
        Self::Everything,
        Self::Timely,
        Self::Control,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::BatchedTimestamps => "batched_timestamps",
            Self::TimelyBypass => "timely_bypass",
            Self::RateLimiterBypass => "rate_limiter_bypass",
            Self::AllThree => "all_three",
            Self::CommonPath => "common_path",
            Self::Lanes => "lanes",
            Self::CellsTogether => "cells_together",
            Self::PreallocatedResponses => "preallocated_responses",
            Self::ZeroCopyRequests => "zero_copy_requests",
            Self::Everything => "everything",
            Self::Timely => "timely",
            Self::Control => "control",
        }
    }

    /// True if switching this off also switches `one` off.
    fn includes(self, one: Self) -> bool {
        match self {
            Self::Everything => !matches!(one, Self::Timely | Self::Control),
            Self::AllThree => matches!(
                one,
                Self::BatchedTimestamps | Self::TimelyBypass | Self::RateLimiterBypass
            ),
            other => other == one,
        }
    }
}

/// Every factor, measured as rates and, if valgrind is installed, as instructions.
///
/// # Errors
/// [`harness::signal::Interrupted`]; or counting instructions failed.
fn cases() -> anyhow::Result<Vec<Case>> {
    let rates = |off| Case::new("factors", "shm", &params(off), Rates { off });
    let mut cases: Vec<Case> = Factor::ALL.map(rates).into();
    match instructions::count()?.as_deref() {
        Some([all_on, counts @ ..]) => {
            let counts = Factor::ALL.into_iter().zip(counts);
            cases.extend(counts.map(|(off, count)| {
                let counted = Counted([*count, *all_on]);
                Case::new("factors", "shm", &params(off), counted)
            }));
        }
        _ => {
            let without = "no valgrind here: instructions_per_rpc is left out";
            cases[0].note(without.to_owned());
        }
    }
    Ok(cases)
}

/// Lines about the price of congestion control, if it was measured: Timely is the paper's scheme,
/// Swift the default of sessions over a network.
fn cost_of_control(rows: &[Row]) -> Vec<String> {
    // Every ratio is to the rate with Timely.
    let ratio = |off: Factor| {
        let mut rows = rows.iter().filter(|row| row.metric == "rate_ratio");
        let is_it = |row: &&Row| row.params.get("off").and_then(Value::as_str) == Some(off.name());
        rows.find(is_it).map(|row| row.median)
    };
    let Some(without) = ratio(Factor::Control) else {
        return Vec::new();
    };
    let percent = |with: f64| 100.0 * (1.0 - with / without);
    let timely = percent(1.0);
    let timely = format!("Timely costs {timely:.1} % of the rate without control (eRPC: 9 %)");
    let swift = ratio(Factor::Timely).map(percent);
    let swift = swift.map(|it| format!("Swift, the default over networks, costs {it:.1} % of it"));
    [timely].into_iter().chain(swift).collect()
}

fn params(off: Factor) -> [(&'static str, Value); 3] {
    [
        ("off", off.name().into()),
        ("batch", BATCH.into()),
        ("inflight", INFLIGHT.into()),
    ]
}

/// Rates with a factor and without it, in turn.
struct Rates {
    off: Factor,
}

impl Probe for Rates {
    fn name(&self) -> &'static str {
        "RPC rate"
    }

    fn metrics(&self) -> &'static [Metric] {
        &RATE
    }

    fn overhead(&self) -> Duration {
        subject::SET_UP + pair::WARM_UP
    }

    fn measure(&mut self, span: Duration) -> anyhow::Result<Measurement> {
        let reports = pair::measure(self.off, span)?;
        let pairs: Vec<[f64; 2]> = reports
            .iter()
            .flat_map(|report| pair::pairs_of(&report.rates))
            .collect();
        let [first, second] = reports;
        let median = |values: &mut dyn Iterator<Item = f64>| {
            let spread = Spread::of(values).context("nothing was measured")?;
            anyhow::Ok(spread.median)
        };
        let alarms = [first.side.alarm("first"), second.side.alarm("second")];
        Ok(Measurement {
            values: vec![
                median(&mut pairs.iter().map(|[_, off]| *off))?,
                median(&mut pairs.iter().map(|[on, off]| off / on))?,
                median(&mut pairs.iter().map(|[on, _]| *on))?,
            ],
            alarms: alarms.into_iter().flatten().collect(),
            details: vec![first.side.line("first"), second.side.line("second")],
        })
    }
}

/// Instructions of an RPC without a factor, and with all factors on.
struct Counted([f64; 2]);

impl Probe for Counted {
    fn name(&self) -> &'static str {
        "instructions"
    }

    fn metrics(&self) -> &'static [Metric] {
        &INSTRUCTIONS
    }

    fn overhead(&self) -> Duration {
        Duration::ZERO
    }

    fn is_timed(&self) -> bool {
        false
    }

    /// Returns counts made beforehand: they are the same in every run.
    fn measure(&mut self, _span: Duration) -> anyhow::Result<Measurement> {
        Ok(self.0.to_vec().into())
    }
}

/// The state of an endpoint that issues and serves.
#[derive(Debug, Default)]
struct Peer {
    pipeline: Pipeline,
    accepted: Vec<Session>,
    off: Option<Factor>,
}

impl HasPipeline for Peer {
    fn pipeline(&mut self) -> &mut Pipeline {
        &mut self.pipeline
    }
}

impl Peer {
    fn is_off(&self, one: Factor) -> bool {
        self.off.is_some_and(|off| off.includes(one))
    }
}

type ShmEndpoint<C> = dunlin_core::Endpoint<Shm, C, Peer>;

/// Makes an endpoint answer requests, and issue a new request whenever one of its own is answered.
fn register<C: Clock>(rpc: &mut ShmEndpoint<C>) {
    rpc.on(ECHO, answer);
    rpc.on_completion(|peer, done: Done, cx| peer.pipeline.on_done(done, cx));
    rpc.on_session(|peer, event, _| {
        if let SessionEvent::Accepted(session) = event {
            peer.accepted.push(session);
        }
    });
}

/// Gives these sessions to the endpoint's pipeline.
fn use_sessions<C: Clock>(rpc: &mut ShmEndpoint<C>, sessions: Vec<Session>) {
    let pipeline = &mut rpc.app_mut().pipeline;
    pipeline.use_sessions(sessions, Choice::default());
}

/// Switches this factor off and all others on.
fn switch<C: Clock>(rpc: &mut ShmEndpoint<C>, off: Option<Factor>) -> anyhow::Result<()> {
    rpc.app_mut().off = off;
    let is_on = |one| !rpc.app().is_off(one);
    let bypasses = Bypasses {
        timely: is_on(Factor::TimelyBypass),
        limiter: is_on(Factor::RateLimiterBypass),
        clock: is_on(Factor::BatchedTimestamps),
        common: is_on(Factor::CommonPath),
        lanes: is_on(Factor::Lanes),
    };
    let scheme = match (is_on(Factor::Control), is_on(Factor::Timely)) {
        (true, true) => Scheme::Timely,
        (true, false) => Scheme::Swift,
        (false, _) => Scheme::None,
    };
    let together = (!is_on(Factor::CellsTogether)).then_some(1);
    rpc.set_bypasses(bypasses);
    rpc.lifecycle().halves_mut().0.give_back_together(together);
    for index in 0..rpc.app().pipeline.sessions().len() {
        let session = rpc.app().pipeline.sessions()[index];
        rpc.set_scheme(session, scheme)?;
    }
    Ok(())
}

/// Answers with every optimisation of handlers that is not switched off.
#[inline]
fn answer(peer: &mut Peer, request: Request<'_>, cx: &mut Cx<'_>) {
    // The answer is computed in the same way for every factor, so that nothing but the factor makes
    // a difference.
    let data = request.data();
    let copy = match peer.is_off(Factor::ZeroCopyRequests) {
        true => cx.copy(data).map(Some),
        false => Ok(None),
    };
    let fresh = match peer.is_off(Factor::PreallocatedResponses) {
        true => cx.buf(data.len()).map(Some),
        false => Ok(None),
    };
    let (Ok(copy), Ok(mut fresh)) = (copy, fresh) else {
        return request.reject(cx, ErrorCode::OVERLOADED);
    };
    let read = copy.as_ref().map_or(data, |copy| copy.data());
    match &mut fresh {
        Some(fresh) => {
            work::answer(read, fresh.data_mut());
            request.reply_bytes(cx, fresh.data());
        }
        None => request.reply(cx, read.len(), |out| work::answer(read, out)),
    }
    cx.recycle(copy.into_iter().chain(fresh));
}

/// The paper switches the factors off cumulatively: each ratio is relative to the row before.
const fn published(off: &'static str, value: f64) -> Published {
    Published {
        metric: "rate_ratio",
        params: [Some(("off", Param::Word(off))), None, None, None],
        beside: Beside::Median,
        value,
        what: "eRPC, CX4",
        source: "eRPC, table 3 and §6.2",
    }
}

#[cfg(test)]
mod tests;
