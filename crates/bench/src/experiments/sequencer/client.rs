//! The process that takes numbers. For numbers as for echoes, it sends the same bytes again and
//! again, in message buffers that it reuses, so that the rates differ by the servers' work alone.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use dunlin::sequencer::{Answer, OPEN, Open, Opened, TAKE, Take};
use dunlin::{ConnectOptions, Cx, Done, MsgBuf, ReqType, Rpc, Session, SessionOptions, Tag};
use serde::{Deserialize, Serialize};

use super::server::{ANSWER, ECHO};
use crate::harness::probe::patience;
use crate::harness::subject::side::Side;
use crate::harness::subject::steps::{STUCK, Stepping, run_for};
use crate::harness::subject::{Medium, Setting, over};
use harness::process::{Parent, Process, Role};
use harness::seat::Seat;

/// Takes numbers.
pub(super) const ROLE: Role = Role::new("numbers-take", take);

/// Time of each step before the first answer that counts.
pub(super) const WARM_UP: Duration = Duration::from_millis(20);

/// Requests in flight.
pub(super) const INFLIGHT: usize = 60;

/// The window of a session, with a credit for each request.
const WINDOW: u32 = 64;

/// The client's work.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Params {
    pub(super) setting: Setting,
    pub(super) server: SocketAddr,
    /// Sessions.
    pub(super) clients: usize,
    /// Requests, or echoes, that are issued together.
    pub(super) batch: usize,
    pub(super) speculates: bool,
    pub(super) steps: Vec<Step>,
    /// The time of a step.
    pub(super) span: Duration,
}

/// The subject of a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum Step {
    Echo,
    Take,
}

/// The state of the endpoint.
#[derive(Debug)]
pub(super) struct App {
    step: Step,
    batch: usize,
    sessions: Vec<Session>,
    next: usize,
    request: [u8; Take::SIZE],
    upper: u32,
    free: Vec<[MsgBuf; 2]>,
    is_ending: bool,
    answers: u64,
    /// Numbers that were taken, and the highest of them.
    taken: u64,
    highest: u64,
    /// The answer to the request that opens the sequence.
    opened: Option<Done>,
    wrong: Option<String>,
}

/// Starts a client. Returns the rate of each step, and the client's counts.
///
/// # Errors
/// A request has failed, or had a wrong answer.
pub(super) fn run(params: &Params) -> anyhow::Result<(Vec<f64>, Side)> {
    let mut client = Process::spawn(ROLE, Seat::default(), params)?;
    let steps = u32::try_from(params.steps.len())?;
    client.receive(patience((params.span + WARM_UP) * steps))
}

/// # Errors
/// A request has failed, or had a wrong answer.
fn take(parent: &Parent) -> anyhow::Result<()> {
    let params: Params = parent.receive()?;
    over!(params.setting, steps(parent, &params))
}

fn steps<T: Medium>(parent: &Parent, params: &Params) -> anyhow::Result<()> {
    let mut rpc: Rpc<T, App> = params.setting.open(App::new(params.batch))?;
    connect(&mut rpc, params, || {})?;
    let mut rates = Vec::new();
    for &step in &params.steps {
        rates.push(measure(&mut rpc, step, params.span)?);
    }
    rpc.app().check_all()?;
    params.setting.seat.step_back()?;
    let side = Side::read(&mut rpc)?;
    parent.say(&(rates, side))
}

/// Connects, opens the sequence, and makes the requests. `others` runs the server, if it is in this
/// thread.
///
/// # Errors
/// A session or the sequence cannot be opened.
pub(super) fn connect<T: Medium>(
    rpc: &mut Rpc<T, App>,
    params: &Params,
    mut others: impl FnMut(),
) -> anyhow::Result<()> {
    rpc.on_completion(App::on_done);
    let options = ConnectOptions {
        session: SessionOptions::DEFAULT
            .with_window(WINDOW)
            .with_credits(WINDOW),
        ..ConnectOptions::default()
    };
    for _ in 0..params.clients {
        let session = rpc.connect_with(params.server, &options)?;
        while rpc.session_info(session).is_ok_and(|info| !info.open) {
            rpc.run_once();
            others();
        }
        rpc.wait_connected(session)?;
        rpc.app_mut().sessions.push(session);
    }
    let open = Open {
        known_epoch: 0,
        create: true,
        name: b"bench",
    };
    let (request, response) = (rpc.cx().copy(&open.encode())?, rpc.buf(Opened::SIZE)?);
    let session = rpc.app().sessions[0];
    rpc.call(session, OPEN, request, response, Tag(0))?;
    while rpc.app().opened.is_none() {
        rpc.run_once();
        others();
    }
    let app = rpc.app_mut();
    let done = app.opened.take().context("the loop waited for it")?;
    done.result?;
    let Ok(opened) = Opened::decode(done.response.data())? else {
        bail!("the server makes no sequence");
    };
    let take = Take {
        sequence: opened.sequence,
        epoch: opened.epoch,
        count: 1,
        expected: params.speculates.then_some(0),
    };
    app.request = take.encode();
    for _ in 0..INFLIGHT {
        let request = rpc.cx().copy(&take.encode())?;
        let response = rpc.buf(ANSWER)?;
        rpc.app_mut().free.push([request, response]);
    }
    Ok(())
}

/// Runs one step: a warm-up, and the time that counts. At the end, nothing is in flight.
#[expect(
    clippy::cast_precision_loss,
    reason = "counts of a run are far below 2^53"
)]
fn measure<T: Medium>(rpc: &mut Rpc<T, App>, step: Step, span: Duration) -> anyhow::Result<f64> {
    let (app, mut cx) = rpc.with();
    app.begin(step, &mut cx);
    run_for(rpc, WARM_UP, |_| false)?;
    let (begin, first) = (Instant::now(), rpc.app().answers);
    run_for(rpc, span, |_| false)?;
    let rate = (rpc.app().answers - first) as f64 / begin.elapsed().as_secs_f64();
    rpc.app_mut().end();
    run_for(rpc, STUCK, App::is_idle)?;
    ensure!(rpc.app().is_idle(), "a request does not end");
    Ok(rate)
}

impl Stepping for App {
    fn answered(&self) -> u64 {
        self.answers
    }

    fn take_wrong(&mut self) -> Option<String> {
        self.wrong.take()
    }
}

impl App {
    pub(super) const fn new(batch: usize) -> Self {
        Self {
            step: Step::Echo,
            batch,
            sessions: Vec::new(),
            next: 0,
            request: [0; Take::SIZE],
            upper: 0,
            free: Vec::new(),
            is_ending: false,
            answers: 0,
            taken: 0,
            highest: 0,
            opened: None,
            wrong: None,
        }
    }

    /// Begins a step, with all requests in flight.
    pub(super) fn begin(&mut self, step: Step, cx: &mut Cx<'_>) {
        (self.step, self.is_ending) = (step, false);
        self.issue(cx);
    }

    /// Issues no more requests.
    pub(super) const fn end(&mut self) {
        self.is_ending = true;
    }

    /// Whether nothing is in flight.
    pub(super) const fn is_idle(&self) -> bool {
        self.free.len() == INFLIGHT
    }

    /// Checks that no number was given twice or left out.
    ///
    /// # Errors
    /// The numbers have gaps or repetitions.
    pub(super) fn check_all(&self) -> anyhow::Result<()> {
        // The sequence is new, and this is its only client.
        ensure!(
            self.highest == self.taken,
            "{} numbers were taken, and the highest is {}",
            self.taken,
            self.highest
        );
        Ok(())
    }

    fn on_done(&mut self, done: Done, cx: &mut Cx<'_>) {
        if self.request[0] == 0 {
            self.opened = Some(done);
            return;
        }
        if let Err(what) = self.check(&done) {
            self.wrong.get_or_insert(what);
        }
        self.answers += 1;
        self.free.push([done.request, done.response]);
        if self.free.len() >= self.batch && !self.is_ending {
            self.issue(cx);
        }
    }

    #[inline]
    fn check(&mut self, done: &Done) -> Result<(), String> {
        done.result.map_err(|error| error.to_string())?;
        let bytes = done.response.data();
        match self.step {
            Step::Echo if *bytes == self.request[..ANSWER] => Ok(()),
            Step::Echo => Err("an echo is wrong".to_owned()),
            Step::Take => {
                let answer = Answer::decode(bytes).map_err(|error| error.to_string())?;
                let number = answer.first(self.upper);
                let number = number.map_err(|status| format!("no number: {status:?}"))?;
                self.taken += 1;
                self.highest = self.highest.max(number);
                Ok(())
            }
        }
    }

    /// Issues whole batches while it has buffers for them.
    fn issue(&mut self, cx: &mut Cx<'_>) {
        let req_type = self.req_type();
        while self.free.len() >= self.batch {
            for _ in 0..self.batch {
                self.issue_one(req_type, cx);
            }
        }
    }

    const fn req_type(&self) -> ReqType {
        match self.step {
            Step::Echo => ECHO,
            Step::Take => TAKE,
        }
    }

    #[inline]
    fn issue_one(&mut self, req_type: ReqType, cx: &mut Cx<'_>) {
        let Some([request, response]) = self.free.pop() else {
            return;
        };
        let session = self.sessions[self.next];
        self.next = (self.next + 1) % self.sessions.len();
        if let Err(refused) = cx.call(session, req_type, request, response, Tag(0)) {
            self.wrong = Some(refused.to_string());
        }
    }
}
