//! The process that gets, scans and echoes. It draws a key and writes a request for each operation,
//! also for echoes, so that the rates differ only by the server's work.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::ensure;
use dunlin::index::{Answer, KEYED, Range, Request, SCAN, Scan, ScanAnswer, Start, What};
use dunlin::{ConnectOptions, Cx, Done, MsgBuf, ReqType, Rng, Rpc, Session, SessionOptions, Tag};
use serde::{Deserialize, Serialize};

use super::scans::SCAN_EVERY;
use super::server::{ANSWER, ECHO};
use super::tree::{ITEMS, KEY, SCANNED, key_of, value_of};
use crate::harness::probe::patience;
use crate::harness::rtt::Recorder;
use crate::harness::subject::side::Side;
use crate::harness::subject::steps::{STUCK, Stepping, run_for};
use crate::harness::subject::{Medium, Setting, over};
use crate::harness::ticks;
use harness::process::{Parent, Process, Role};
use harness::seat::Seat;

/// Gets.
pub(super) const ROLE: Role = Role::new("index-get", get);

/// Time of each step before the first answer that counts.
pub(super) const WARM_UP: Duration = Duration::from_millis(20);

/// Operations in flight.
pub(super) const INFLIGHT: usize = 60;

/// Operations that are issued together.
const BATCH: usize = 16;

/// The window of the session, with a credit for each request.
const WINDOW: u32 = 64;

/// Bytes of a get.
const GET: usize = 4 + KEY;
/// Bytes of a scan, and of its answer.
const SCANS: (usize, usize) = (12 + KEY, 24);

/// The client's work.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Params {
    pub(super) setting: Setting,
    pub(super) server: SocketAddr,
    pub(super) steps: Vec<Step>,
    /// The time of a step.
    pub(super) span: Duration,
}

/// The subject of a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum Step {
    Echo,
    Get,
    /// Gets, and scans among them.
    Mixed,
}

/// The outcome of a step. Echoes count as gets.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Outcome {
    pub(super) gets_per_s: f64,
    pub(super) scans_per_s: f64,
    /// Times from the call to its end, in ns.
    pub(super) get_p50: f64,
    pub(super) get_p99: f64,
    pub(super) scan_p50: f64,
}

/// Starts a client. Returns the outcome of each step, and the client's counts.
///
/// # Errors
/// A request has failed, or had a wrong answer.
pub(super) fn run(params: &Params) -> anyhow::Result<(Vec<Outcome>, Side)> {
    let mut client = Process::spawn(ROLE, Seat::default(), params)?;
    let steps = u32::try_from(params.steps.len())?;
    client.receive(patience((params.span + WARM_UP) * steps))
}

/// An operation.
#[derive(Clone, Copy)]
struct Begun {
    number: u32,
    is_scan: bool,
    at: u64,
}

/// The state of the endpoint.
struct App {
    step: Step,
    session: Option<Session>,
    rng: Rng,
    /// Operations in flight, by the tags of their calls.
    begun: [Begun; INFLIGHT],
    /// Places without an operation, with their buffers.
    free: Vec<(usize, [MsgBuf; 2])>,
    is_ending: bool,
    gets: u64,
    scans: u64,
    get_times: Recorder,
    scan_times: Recorder,
    wrong: Option<String>,
}

/// # Errors
/// A request has failed, or had a wrong answer.
fn get(parent: &Parent) -> anyhow::Result<()> {
    let params: Params = parent.receive()?;
    over!(params.setting, steps(parent, &params))
}

fn steps<T: Medium>(parent: &Parent, params: &Params) -> anyhow::Result<()> {
    let mut rpc: Rpc<T, App> = params.setting.open(App::new())?;
    rpc.on_completion(App::on_done);
    let options = ConnectOptions {
        session: SessionOptions::DEFAULT
            .with_window(WINDOW)
            .with_credits(WINDOW),
        ..ConnectOptions::default()
    };
    let session = rpc.connect_with(params.server, &options)?;
    rpc.wait_connected(session)?;
    rpc.app_mut().session = Some(session);
    for place in 0..INFLIGHT {
        let bufs = [rpc.buf(SCANS.0)?, rpc.buf(SCANS.1)?];
        rpc.app_mut().free.push((place, bufs));
    }
    let mut outcomes = Vec::new();
    for &step in &params.steps {
        outcomes.push(measure(&mut rpc, step, params.span)?);
    }
    params.setting.seat.step_back()?;
    let side = Side::read(&mut rpc)?;
    parent.say(&(outcomes, side))
}

/// Runs one step: a warm-up, and the time that counts. At the end, nothing is in flight.
#[expect(
    clippy::cast_precision_loss,
    reason = "counts of a run are far below 2^53"
)]
fn measure<T: Medium>(
    rpc: &mut Rpc<T, App>,
    step: Step,
    span: Duration,
) -> anyhow::Result<Outcome> {
    let (app, mut cx) = rpc.with();
    (app.step, app.is_ending) = (step, false);
    app.issue(&mut cx);
    run_for(rpc, WARM_UP, |_| false)?;
    let app = rpc.app_mut();
    (app.get_times, app.scan_times) = (Recorder::skipping(0), Recorder::skipping(0));
    let (begin, first) = (Instant::now(), [app.gets, app.scans]);
    run_for(rpc, span, |_| false)?;
    let seconds = begin.elapsed().as_secs_f64();
    let app = rpc.app_mut();
    let outcome = Outcome {
        gets_per_s: (app.gets - first[0]) as f64 / seconds,
        scans_per_s: (app.scans - first[1]) as f64 / seconds,
        get_p50: app.get_times.quantile(0.5),
        get_p99: app.get_times.quantile(0.99),
        scan_p50: app.scan_times.quantile(0.5),
    };
    app.is_ending = true;
    run_for(rpc, STUCK, |app| app.free.len() == INFLIGHT)?;
    ensure!(
        rpc.app().free.len() == INFLIGHT,
        "an operation does not end"
    );
    Ok(outcome)
}

impl Stepping for App {
    fn answered(&self) -> u64 {
        self.gets
    }

    fn take_wrong(&mut self) -> Option<String> {
        self.wrong.take()
    }
}

impl App {
    fn new() -> Self {
        let none = Begun {
            number: 0,
            is_scan: false,
            at: 0,
        };
        Self {
            step: Step::Echo,
            session: None,
            rng: Rng::new(u64::from(std::process::id())),
            begun: [none; INFLIGHT],
            free: Vec::with_capacity(INFLIGHT),
            is_ending: false,
            gets: 0,
            scans: 0,
            get_times: Recorder::skipping(0),
            scan_times: Recorder::skipping(0),
            wrong: None,
        }
    }

    fn on_done(&mut self, done: Done, cx: &mut Cx<'_>) {
        let place = usize::try_from(done.tag.0).expect("it was a place");
        let begun = self.begun[place];
        let took = ticks::now().wrapping_sub(begun.at);
        if let Err(what) = self.check(begun, &done) {
            self.wrong.get_or_insert(what);
        }
        match begun.is_scan {
            true => {
                self.scans += 1;
                self.scan_times.record(took);
            }
            false => {
                self.gets += 1;
                self.get_times.record(took);
            }
        }
        self.free.push((place, [done.request, done.response]));
        if self.free.len() >= BATCH && !self.is_ending {
            self.issue(cx);
        }
    }

    #[inline]
    fn check(&self, begun: Begun, done: &Done) -> Result<(), String> {
        done.result.map_err(|error| error.to_string())?;
        let bytes = done.response.data();
        if begun.is_scan {
            return match ScanAnswer::decode(bytes) {
                Ok(ScanAnswer::Total(total)) if (1..=u64::from(SCANNED)).contains(&total.items) => {
                    Ok(())
                }
                other => Err(format!("a scan was answered with {other:?}")),
            };
        }
        match self.step {
            Step::Echo if *bytes == done.request.data()[..ANSWER] => Ok(()),
            Step::Echo => Err("an echo is wrong".to_owned()),
            _ => match Answer::decode(bytes) {
                Ok(Answer::Found(value)) if *value == value_of(begun.number) => Ok(()),
                other => Err(format!("item {} was answered with {other:?}", begun.number)),
            },
        }
    }

    /// Issues whole batches while it has buffers for them.
    fn issue(&mut self, cx: &mut Cx<'_>) {
        while self.free.len() >= BATCH {
            for _ in 0..BATCH {
                self.issue_one(cx);
            }
        }
    }

    #[inline]
    fn issue_one(&mut self, cx: &mut Cx<'_>) {
        let (Some((place, [mut request, mut response])), Some(session)) =
            (self.free.pop(), self.session)
        else {
            return;
        };
        let number = self.rng.below(ITEMS);
        let is_scan = self.step == Step::Mixed && self.rng.below(SCAN_EVERY) == 0;
        self.begun[place] = Begun {
            number,
            is_scan,
            at: ticks::now(),
        };
        let (req_type, size, room) = match is_scan {
            true => (SCAN, SCANS.0, SCANS.1),
            false => (self.keyed_type(), GET, ANSWER),
        };
        let fits = request.resize(size).is_ok() && response.resize(room).is_ok();
        debug_assert!(fits, "each buffer has room for a scan");
        write(number, is_scan, request.data_mut());
        let tag = Tag(place as u64);
        if let Err(refused) = cx.call(session, req_type, request, response, tag) {
            self.wrong = Some(refused.to_string());
        }
    }

    const fn keyed_type(&self) -> ReqType {
        match self.step {
            Step::Echo => ECHO,
            Step::Get | Step::Mixed => KEYED,
        }
    }
}

/// Writes a request. An echo has the bytes of a get.
#[inline]
fn write(number: u32, is_scan: bool, out: &mut [u8]) {
    let key = key_of(number);
    if !is_scan {
        return Request::Get { key: &key }.encode(out);
    }
    let scan = Scan {
        range: Range {
            start: Start::At(&key),
            end: None,
        },
        what: What::Total,
        limit: SCANNED,
    };
    out.copy_from_slice(&scan.encode());
}
