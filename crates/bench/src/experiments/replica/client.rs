//! The process that puts. It drives the library's client as `dunlin::replica::Connection` does, and
//! for comparison sends echoes of the same lengths, with the same number in flight, to the leader's
//! endpoint.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use dunlin::replica::{Answer, Change, Client, ClientOptions, End, Token};
use dunlin::{ConnectOptions, Done, MsgBuf, Nanos, Rng, Rpc, Session, SessionOptions, Tag};
use serde::{Deserialize, Serialize};

use super::members::{ANSWER, ECHO};
use crate::harness::probe::patience;
use crate::harness::rtt::Recorder;
use crate::harness::subject::side::Side;
use crate::harness::subject::{Medium, Setting, over};
use crate::harness::ticks;
use harness::process::{Parent, Process, Role};
use harness::seat::Seat;

/// Runs the client, which sends puts and echoes.
pub(super) const ROLE: Role = Role::new("replica-put", put);

/// Bytes of a key.
pub(super) const KEY: usize = 16;
/// Bytes of a value.
pub(super) const VALUE: usize = 64;
/// Each put draws one of this number of keys (eRPC §7.1).
const KEYS: u32 = 1_000_000;

/// Bytes of a put before its key, if the put's number takes three bytes.
pub(super) const HEAD: usize = 16;

/// Time of each step before the first answer that counts.
pub(super) const WARM_UP: Duration = Duration::from_millis(50);

/// A step fails if nothing is answered for this long.
const STUCK: Duration = Duration::from_secs(8);

/// The window of sessions, with a credit for each request.
const WINDOW: u32 = 64;

/// Turns without an ended operation between two looks at the clock.
const BLOCK: u32 = 64;

/// The client's work.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Params {
    pub(super) setting: Setting,
    pub(super) replicas: Vec<String>,
    pub(super) leader: SocketAddr,
    pub(super) outstanding: usize,
    pub(super) steps: Vec<Step>,
    /// The time of a step.
    pub(super) span: Duration,
}

/// The kind of operation that a step measures.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum Step {
    Echo,
    Put,
}

/// The outcome of a step.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Outcome {
    pub(super) per_s: f64,
    /// Quantiles of the time from begin to end, in ns.
    pub(super) p50: f64,
    pub(super) p99: f64,
}

/// A key, drawn from all keys.
pub(super) fn key_of(rng: &mut Rng) -> [u8; KEY] {
    let number = rng.below(KEYS);
    let mut key = *b"key-000000000000";
    key[KEY - 4..].copy_from_slice(&number.to_be_bytes());
    key
}

/// A client that runs.
pub(super) struct Running {
    process: Process,
    patience: Duration,
}

impl Running {
    /// Starts a client.
    ///
    /// # Errors
    /// The process does not start.
    pub(super) fn start(params: &Params) -> anyhow::Result<Self> {
        let steps = u32::try_from(params.steps.len())?;
        Ok(Self {
            process: Process::spawn(ROLE, Seat::default(), params)?,
            patience: patience((params.span + WARM_UP) * steps),
        })
    }

    /// Waits for the outcome of each step, and the client's counts.
    ///
    /// # Errors
    /// A request has failed, or had a wrong answer.
    pub(super) fn end(mut self) -> anyhow::Result<(Vec<Outcome>, Side)> {
        self.process.receive(self.patience)
    }
}

/// Runs a client.
///
/// # Errors
/// A request has failed, or had a wrong answer.
pub(super) fn run(params: &Params) -> anyhow::Result<(Vec<Outcome>, Side)> {
    Running::start(params)?.end()
}

/// The state of the endpoint.
struct App {
    client: Client,
    echoes: VecDeque<Done>,
}

/// An operation that has not ended: its key and number, and when it began.
#[derive(Clone, Copy)]
struct Begun {
    key: [u8; KEY],
    number: u64,
    at: u64,
}

/// A client with its endpoint and its operations.
struct Putter<T: Medium> {
    rpc: Rpc<T, App>,
    connect: ConnectOptions,
    session: Session,
    rng: Rng,
    /// Operations in flight, by their tokens, which are reused.
    begun: Vec<Option<Begun>>,
    numbers: u64,
    /// The put with the highest version: its key, version and number.
    newest: Option<([u8; KEY], u64, u64)>,
    free: Vec<[MsgBuf; 2]>,
    recorder: Recorder,
    answers: u64,
}

/// # Errors
/// A request has failed, or had a wrong answer.
fn put(parent: &Parent) -> anyhow::Result<()> {
    let params: Params = parent.receive()?;
    over!(params.setting, steps(parent, &params))
}

fn steps<T: Medium>(parent: &Parent, params: &Params) -> anyhow::Result<()> {
    let mut putter = Putter::<T>::open(params)?;
    let mut outcomes = Vec::new();
    for &step in &params.steps {
        outcomes.push(putter.measure(step, params.outstanding, params.span)?);
    }
    putter.check_newest()?;
    params.setting.seat.step_back()?;
    let side = Side::read(&mut putter.rpc)?;
    parent.say(&(outcomes, side))
}

impl<T: Medium> Putter<T> {
    fn open(params: &Params) -> anyhow::Result<Self> {
        let client = Client::new(params.replicas.clone(), ClientOptions::DEFAULT);
        let app = App {
            client,
            echoes: VecDeque::new(),
        };
        let mut rpc: Rpc<T, App> = params.setting.open(app)?;
        rpc.on_completion(|app, done, cx| {
            if let Some(other) = app.client.on_done(done, cx) {
                app.echoes.push_back(other);
            }
        });
        rpc.on_session(|app, event, cx| app.client.on_session(event, cx));
        let connect = ConnectOptions {
            session: SessionOptions::DEFAULT
                .with_window(WINDOW)
                .with_credits(WINDOW),
            ..ConnectOptions::default()
        };
        let session = rpc.connect_with(params.leader, &connect)?;
        rpc.wait_connected(session)?;
        let mut free = Vec::new();
        for _ in 0..params.outstanding {
            free.push([rpc.buf(HEAD + KEY + VALUE)?, rpc.buf(ANSWER)?]);
        }
        Ok(Self {
            rpc,
            connect,
            session,
            rng: Rng::new(u64::from(std::process::id())),
            begun: vec![None; params.outstanding],
            numbers: 0,
            newest: None,
            free,
            recorder: Recorder::skipping(0),
            answers: 0,
        })
    }

    /// Runs one step: a warm-up, and the time that counts. At the end, nothing is in flight.
    #[expect(
        clippy::cast_precision_loss,
        reason = "counts of a run are far below 2^53"
    )]
    fn measure(
        &mut self,
        step: Step,
        outstanding: usize,
        span: Duration,
    ) -> anyhow::Result<Outcome> {
        for place in 0..outstanding {
            self.begin(step, place)?;
        }
        self.run_for(step, WARM_UP)?;
        self.recorder = Recorder::skipping(0);
        let (begin, first) = (Instant::now(), self.answers);
        self.run_for(step, span)?;
        let per_s = (self.answers - first) as f64 / begin.elapsed().as_secs_f64();
        let outcome = Outcome {
            per_s,
            p50: self.recorder.quantile(0.5),
            p99: self.recorder.quantile(0.99),
        };
        self.end(step)?;
        Ok(outcome)
    }

    /// Begins a new operation whenever one ends, for at least `span`.
    fn run_for(&mut self, step: Step, span: Duration) -> anyhow::Result<()> {
        let (begin, first) = (Instant::now(), self.answers);
        loop {
            for _ in 0..BLOCK {
                while let Some(place) = self.turn(step)? {
                    self.begin(step, place)?;
                }
            }
            // On a busy machine, the replicas may not have run at all during a short span.
            if begin.elapsed() >= span && self.answers > first {
                return Ok(());
            }
            ensure!(
                begin.elapsed() < span + STUCK,
                "nothing was answered for {} s",
                STUCK.as_secs()
            );
        }
    }

    /// Waits for all operations in flight.
    fn end(&mut self, step: Step) -> anyhow::Result<()> {
        let begin = Instant::now();
        while self.begun.iter().any(Option::is_some) {
            while self.turn(step)?.is_some() {}
            ensure!(begin.elapsed() < STUCK, "an operation does not end");
        }
        Ok(())
    }

    #[inline]
    fn begin(&mut self, step: Step, place: usize) -> anyhow::Result<()> {
        self.numbers += 1;
        let (key, number) = (key_of(&mut self.rng), self.numbers);
        let at = ticks::now();
        self.begun[place] = Some(Begun { key, number, at });
        match step {
            Step::Echo => self.begin_echo(place, number),
            Step::Put => {
                let (app, mut cx) = self.rpc.with();
                let change = Change::Put(value_of(number).to_vec());
                let token = Token(place as u64);
                Ok(app
                    .client
                    .begin_change(&key, change, token, None, &mut cx)?)
            }
        }
    }

    #[inline]
    fn begin_echo(&mut self, place: usize, number: u64) -> anyhow::Result<()> {
        let [mut request, response] = self.free.pop().context("each place has its buffers")?;
        request.data_mut()[..8].copy_from_slice(&number.to_le_bytes());
        let tag = Tag(place as u64);
        self.rpc.call(self.session, ECHO, request, response, tag)?;
        Ok(())
    }

    /// Returns the place of an operation that has ended. If there is none, first runs one iteration
    /// of the endpoint and the client, as `Connection` does.
    #[inline]
    fn turn(&mut self, step: Step) -> anyhow::Result<Option<usize>> {
        if let Some(place) = self.take_end(step)? {
            return Ok(Some(place));
        }
        self.rpc.iterate(|app| app.client.next_wakeup());
        let (app, mut cx) = self.rpc.with();
        app.client.on_time(&mut cx);
        let now = cx.now();
        self.grant(now);
        self.take_end(step)
    }

    /// Makes the sessions that the client wants.
    #[inline]
    fn grant(&mut self, now: Nanos) {
        while let Some(address) = self.rpc.app_mut().client.wish(now) {
            match self.rpc.connect_with(address.as_str(), &self.connect) {
                Ok(session) => self.rpc.app_mut().client.on_connecting(&address, session),
                Err(_) => self.rpc.app_mut().client.on_refused(&address, now),
            }
        }
    }

    #[inline]
    fn take_end(&mut self, step: Step) -> anyhow::Result<Option<usize>> {
        let app = self.rpc.app_mut();
        let (place, begun) = match step {
            Step::Echo => {
                let Some(done) = app.echoes.pop_front() else {
                    return Ok(None);
                };
                let place = usize::try_from(done.tag.0)?;
                let begun = self.begun[place].take().context("an echo has come twice")?;
                done.result?;
                let is_right = *done.response.data() == done.request.data()[..ANSWER]
                    && done.response.data()[..8] == begun.number.to_le_bytes();
                ensure!(is_right, "an echo is wrong");
                self.free.push([done.request, done.response]);
                (place, begun)
            }
            Step::Put => {
                let Some(end) = app.client.next_end() else {
                    return Ok(None);
                };
                let place = usize::try_from(end.token.0)?;
                let begun = self.begun[place].take().context("a put has ended twice")?;
                let version = written(&end)?;
                if self.newest.is_none_or(|(_, newest, _)| version > newest) {
                    self.newest = Some((begun.key, version, begun.number));
                }
                (place, begun)
            }
        };
        self.recorder.record(ticks::now().wrapping_sub(begun.at));
        self.answers += 1;
        Ok(Some(place))
    }

    /// Reads the key that was written last, if there is one, and checks its version and value.
    fn check_newest(&mut self) -> anyhow::Result<()> {
        let Some((key, version, number)) = self.newest else {
            return Ok(());
        };
        let (app, mut cx) = self.rpc.with();
        app.client.begin_get(&key, Token(0), None, &mut cx)?;
        let begin = Instant::now();
        let end = loop {
            self.rpc.run_once();
            let (app, mut cx) = self.rpc.with();
            app.client.on_time(&mut cx);
            if let Some(end) = app.client.next_end() {
                break end;
            }
            ensure!(begin.elapsed() < STUCK, "a get does not end");
        };
        match end.result? {
            Answer::Found(found, value) if found == version && value == value_of(number) => Ok(()),
            other => bail!("a get after put {number}, of version {version}, returned {other:?}"),
        }
    }
}

/// The version that a put has given to its item.
fn written(end: &End) -> anyhow::Result<u64> {
    match &end.result {
        Ok(Answer::Written(version)) => Ok(*version),
        Ok(other) => bail!("a put was answered with {other:?}"),
        Err(error) => Err((*error).into()),
    }
}

/// The value of a put.
pub(super) fn value_of(number: u64) -> [u8; VALUE] {
    let mut value = [0x76; VALUE];
    value[..8].copy_from_slice(&number.to_le_bytes());
    value
}
