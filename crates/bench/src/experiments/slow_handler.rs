//! `slow-handler`: RPCs whose handlers take long, in the dispatch thread (where they compute) and
//! in worker threads (where they sleep, like a handler that waits for a disk). A client must not
//! retransmit such requests, although they take longer than the retransmission timeout. Handlers in
//! worker threads must not delay the small RPCs that the same endpoint serves meanwhile.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{bail, ensure};
use dunlin::{Cx, Done, MsgBuf, ReqType, Rpc, Session, Tag};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::harness::case::Case;
use crate::harness::experiment::{Experiment, Section};
use crate::harness::probe::{Against, Measurement, Metric, Probe, patience};
use crate::harness::rtt::Recorder;
use crate::harness::subject::side::Side;
use crate::harness::subject::{
    ECHO, Medium, Report, SLOW, SLOW_BACKGROUND, Server, Setting, over, server,
};
use crate::harness::transport::Transport;
use crate::harness::{subject, ticks, work};
use crate::output::chart::{TRANSPORTS, Wanted, baseline_line, chart, colour, measured_line};
use harness::draw::{Axis, Picture, Scale};
use harness::process::{Parent, Process, Role};
use harness::row::Row;
use harness::seat::Seat;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "slow-handler",
    about: "Fast RPCs while other handlers compute in the dispatch thread or sleep in worker \
            threads",
    cases: |sweep| Ok(cases(sweep.transports)),
    roles: &[server::ROLE, CALL],
    section: Some(Section {
        title: "Slow handlers",
        text: "Round trips of fast RPCs while other requests of the same client take long. The \
               baseline has no other requests.",
    }),
    charts,
    ..Experiment::BASE
};

/// Issues RPCs whose handlers are slow.
pub(crate) const CALL: Role = Role::new("slow-handler", call);

/// Times that handlers take, in microseconds.
const HANDLERS_US: [u32; 5] = [1, 10, 100, 1_000, 10_000];

/// The smallest retransmission timeout, far below the time of the slowest handlers.
const RTO_FLOOR: Duration = Duration::from_millis(1);

/// Number of worker threads, and of slow requests in flight while the fast RPCs run.
const WORKERS: usize = 2;

/// Bytes of a request and of its response.
const SIZE: usize = 32;

/// Minimum number of RPCs that each stream completes in a phase.
const LEAST: u64 = 5;

/// Iterations of the event loop between two checks of the time.
const BLOCK: u32 = 64;

const METRICS: [Metric; 5] = [
    metric(
        "rtt_p50",
        "ns",
        Against::Own {
            index: 5,
            name: "the handler itself",
        },
    ),
    metric("retransmissions", "count", Against::Nothing),
    metric(
        "fast_rtt_p99",
        "ns",
        Against::Own {
            index: 6,
            name: "without slow requests",
        },
    ),
    metric("fast_delay_p99", "ns", Against::Nothing),
    metric("retransmissions_beside", "count", Against::Nothing),
];

const fn metric(name: &'static str, unit: &'static str, against: Against) -> Metric {
    Metric {
        name,
        unit,
        against,
    }
}

/// RPCs with a slow handler.
#[derive(Clone, Copy, Debug)]
struct SlowHandler {
    transport: Transport,
    handler: Duration,
    background: bool,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Params {
    setting: Setting,
    server: SocketAddr,
    background: bool,
    span: Duration,
}

/// One case for each combination of mode, handler time and transport.
pub(crate) fn cases(transports: &[Transport]) -> Vec<Case> {
    let mut cases = Vec::new();
    for background in [false, true] {
        for handler_us in HANDLERS_US {
            for &transport in transports {
                let mode = if background { "background" } else { "dispatch" };
                let params: [(&str, Value); 2] =
                    [("handler_us", handler_us.into()), ("mode", mode.into())];
                let subject = SlowHandler {
                    transport,
                    handler: Duration::from_micros(handler_us.into()),
                    background,
                };
                let name = transport.name();
                cases.push(Case::new("slow-handler", name, &params, subject));
            }
        }
    }
    cases
}

impl Probe for SlowHandler {
    fn name(&self) -> &'static str {
        "RPC with a slow handler"
    }

    fn metrics(&self) -> &'static [Metric] {
        &METRICS
    }

    fn overhead(&self) -> Duration {
        subject::SET_UP + 15 * self.handler
    }

    fn measure(&mut self, span: Duration) -> anyhow::Result<Measurement> {
        let (client, server) = subject::spinning_pair(self.transport);
        let slow = |setting| Setting {
            rto_floor: Some(RTO_FLOOR),
            workers: WORKERS,
            ..setting
        };
        let mut server = Server::start(&server::Params {
            setting: slow(server),
            handler: self.handler,
        })?;
        let params = Params {
            setting: slow(client),
            server: server.address,
            background: self.background,
            span,
        };
        let mut client = Process::spawn(CALL, Seat::default(), &params)?;
        let report: Report = client.receive(patience(span + self.overhead()))?;
        let server = server.side()?;
        let [alone, slow, again, beside, again_beside] = report.values[..] else {
            bail!("the client reported {} values", report.values.len());
        };
        let handler = server.handler.unwrap_or(f64::NAN);
        let delay = beside - alone;
        let mut measurement = report.measurement(&server);
        measurement.values = vec![slow, again, beside, delay, again_beside, handler, alone];
        Ok(measurement)
    }
}

/// Requests of one type, one after another.
struct Stream {
    session: Session,
    req_type: ReqType,
    counter: u64,
    begin: u64,
    recorder: Recorder,
    /// `None` while a request is in flight.
    bufs: Option<[MsgBuf; 2]>,
    /// Whether to issue the next request after the present one has ended.
    goes_on: bool,
}

/// The state of the client: one fast stream, then the slow ones.
struct App {
    streams: Vec<Stream>,
    wrong: Option<String>,
}

const FAST: usize = 0;

impl App {
    fn issue(&mut self, index: usize, cx: &mut Cx<'_>) {
        let stream = &mut self.streams[index];
        let Some([mut request, response]) = stream.bufs.take() else {
            return;
        };
        stream.begin = ticks::now();
        work::fill(request.data_mut(), stream.counter);
        let tag = Tag(index as u64);
        if let Err(refused) = cx.call(stream.session, stream.req_type, request, response, tag) {
            self.wrong = Some(refused.to_string());
        }
    }

    fn on_done(&mut self, done: Done, cx: &mut Cx<'_>) {
        let index = usize::try_from(done.tag.0).expect("tags are indices");
        let stream = &mut self.streams[index];
        let answer = done.response.data();
        let is_right = done.result.is_ok()
            && answer.len() == SIZE
            && work::is_answer(answer, SIZE, stream.counter);
        let took = ticks::now().wrapping_sub(stream.begin);
        stream.recorder.record(took);
        if !is_right {
            self.wrong = Some(format!("request {}: {:?}", stream.counter, done.result));
        }
        stream.counter += 1;
        stream.bufs = Some([done.request, done.response]);
        if stream.goes_on {
            self.issue(index, cx);
        }
    }
}

/// The client process: it makes only fast RPCs, then only slow ones, then both together.
///
/// # Errors
/// An answer is wrong or missing.
pub(crate) fn call(parent: &Parent) -> anyhow::Result<()> {
    let params: Params = parent.receive()?;
    over!(params.setting, run(parent, &params))
}

fn run<T: Medium>(parent: &Parent, params: &Params) -> anyhow::Result<()> {
    let app = App {
        streams: Vec::new(),
        wrong: None,
    };
    let mut rpc: Rpc<T, App> = params.setting.open(app)?;
    rpc.on_completion(App::on_done);
    let slow_type = if params.background {
        SLOW_BACKGROUND
    } else {
        SLOW
    };
    let sessions = subject::connect(&mut rpc, params.server, 1 + WORKERS)?;
    for (index, session) in sessions.into_iter().enumerate() {
        let bufs = Some([rpc.buf(SIZE)?, rpc.buf(SIZE)?]);
        rpc.app_mut().streams.push(Stream {
            session,
            req_type: if index == FAST { ECHO } else { slow_type },
            counter: 0,
            begin: 0,
            recorder: Recorder::skipping(0),
            bufs,
            goes_on: false,
        });
    }
    let all: Vec<usize> = (FAST..=WORKERS).collect();
    // The first RPCs are a warm-up.
    phase(&mut rpc, &all[..1], params.span / 16)?;
    phase(&mut rpc, &all[..1], params.span / 4)?;
    let alone = rpc.app().streams[FAST].recorder.quantile(0.99);
    let again = phase(&mut rpc, &all[1..2], params.span / 2)?;
    let slow = rpc.app().streams[1].recorder.quantile(0.5);
    let again_beside = phase(&mut rpc, &all, params.span / 4)?;
    let beside = rpc.app().streams[FAST].recorder.quantile(0.99);
    let values = vec![alone, slow, again, beside, again_beside];
    let side = Side::read(&mut rpc)?;
    parent.say(&Report { values, side })
}

/// Runs these streams for `span`, or longer until each has enough round trips. Afterwards nothing
/// is in flight. Returns the number of retransmissions; a request may have several.
#[expect(clippy::cast_precision_loss, reason = "a few events")]
fn phase<T: Medium>(
    rpc: &mut Rpc<T, App>,
    streams: &[usize],
    span: Duration,
) -> anyhow::Result<f64> {
    let before = rpc.counters().retransmissions;
    let (app, mut cx) = rpc.with();
    for &index in streams {
        let stream = &mut app.streams[index];
        (stream.recorder, stream.goes_on) = (Recorder::skipping(0), true);
        app.issue(index, &mut cx);
    }
    run_until(rpc, span, |app| {
        let counts = |&index: &usize| app.streams[index].recorder.count();
        streams.iter().all(|index| counts(index) >= LEAST)
    })?;
    for stream in &mut rpc.app_mut().streams {
        stream.goes_on = false;
    }
    run_until(rpc, Duration::ZERO, |app| {
        app.streams.iter().all(|stream| stream.bufs.is_some())
    })?;
    Ok((rpc.counters().retransmissions - before) as f64)
}

/// Runs for `span`, or longer until `is_over` returns true.
fn run_until<T: Medium>(
    rpc: &mut Rpc<T, App>,
    span: Duration,
    is_over: impl Fn(&App) -> bool,
) -> anyhow::Result<()> {
    let begin = Instant::now();
    loop {
        for _ in 0..BLOCK {
            rpc.run_once();
        }
        if let Some(wrong) = rpc.app_mut().wrong.take() {
            bail!(wrong);
        }
        let elapsed = begin.elapsed();
        if elapsed >= span && is_over(rpc.app()) {
            return Ok(());
        }
        ensure!(
            elapsed < span + Duration::from_secs(5),
            "a request was not answered"
        );
    }
}

fn charts(rows: &[&Row]) -> Vec<Picture> {
    let of = |mode, title: &str| {
        let wanted = Wanted {
            metric: "fast_rtt_p99",
            x: "handler_us",
            params: &[("mode", mode)],
        };
        let mut lines = Vec::new();
        for transport in TRANSPORTS {
            let is = |row: &&&Row| row.transport == transport && wanted.is(row);
            let rows: Vec<&Row> = rows.iter().filter(is).copied().collect();
            lines.push(measured_line(transport, colour(transport), &rows, wanted.x));
            lines.push(baseline_line(colour(transport), &rows, wanted.x));
        }
        lines.retain(|line| !line.points.is_empty());
        let x = Axis::new("time that the slow handler takes, µs", "", Scale::Each);
        let y = Axis::new(
            "round trip of a fast RPC, 99th percentile",
            "ns",
            Scale::Log,
        );
        chart(title, x, y, lines)
    };
    vec![
        of(
            "dispatch",
            "Fast RPCs beside slow ones in the dispatch thread",
        ),
        of("background", "Fast RPCs beside slow ones in worker threads"),
    ]
}
