//! The process that calls: it runs the steps of a measurement one after the other, with operations
//! of the service or echoes of the same lengths. `memcached` uses it too, for the native client.

mod app;
mod beside;
mod flow;

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use dunlin::kv::{Client, Options};
use dunlin::{ConnectOptions, Rpc, SessionOptions};
use serde::{Deserialize, Serialize};

use crate::harness::items::{Items, Mix};
use crate::harness::probe::{Measurement, patience};
use crate::harness::subject::side::Side;
use crate::harness::subject::{Medium, Setting, over};
use harness::process::{Parent, Process, Role};
use harness::seat::Seat;

use app::App;

/// Calls.
pub(in crate::experiments) const ROLE: Role = Role::new("kv-call", call);

/// Time of each step before the first operation that counts.
pub(in crate::experiments) const WARM_UP: Duration = Duration::from_millis(20);

/// The largest window of a session, with a credit for each of its calls.
const WINDOW: u32 = 64;

/// The longest wait for the server's first answer, for the first operation that ends after the span
/// of a step, and for a step's last operations.
const STUCK: Duration = Duration::from_secs(8);

/// Iterations between two looks at the clock.
const BLOCK: u32 = 64;

/// The client's work.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::experiments) struct Params {
    pub(in crate::experiments) setting: Setting,
    pub(in crate::experiments) server: SocketAddr,
    pub(in crate::experiments) items: Items,
    pub(in crate::experiments) mix: Mix,
    pub(in crate::experiments) steps: Vec<Step>,
}

/// One measurement.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(in crate::experiments) struct Step {
    pub(in crate::experiments) what: What,
    pub(in crate::experiments) pace: Pace,
    /// Keys of an operation. An operation with two or more is a get of many keys.
    pub(in crate::experiments) keys: usize,
    /// Whether the duration of each operation is recorded.
    pub(in crate::experiments) is_timed: bool,
    /// Whether the same client also writes new items that expire, and writes and reads values of
    /// 1 MiB.
    pub(in crate::experiments) beside: bool,
    pub(in crate::experiments) span: Duration,
}

/// The subject of a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(in crate::experiments) enum What {
    /// The service.
    Kv,
    /// Echoes of the same lengths.
    Echo,
}

/// When operations begin.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub(in crate::experiments) enum Pace {
    /// In batches of `batch`. The next batch begins as soon as at most `window` operations will
    /// then be in flight.
    Closed { window: usize, batch: usize },
    /// At random times, independently of each other (Poisson), at a percentage of the rate of the
    /// first step.
    Open { percent: u32 },
}

/// The result of a step. The times are 0 if the step does not record any.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(in crate::experiments) struct Outcome {
    /// Keys that were read or written per second.
    pub(in crate::experiments) per_s: f64,
    /// Quantiles and mean of an operation's duration, in ns.
    pub(in crate::experiments) p50: f64,
    pub(in crate::experiments) p99: f64,
    pub(in crate::experiments) p999: f64,
    pub(in crate::experiments) mean: f64,
}

/// Starts a client. Returns the outcomes of its steps, and a measurement with the alarms of both
/// sides but without values. `server` reads the counters of the server.
///
/// # Errors
/// An operation has failed, or had a wrong result.
pub(in crate::experiments) fn run(
    params: &Params,
    server: impl FnOnce() -> anyhow::Result<Side>,
) -> anyhow::Result<(Vec<Outcome>, Measurement)> {
    let mut client = Process::spawn(ROLE, Seat::default(), params)?;
    let span = params.steps.iter().map(|step| step.span + WARM_UP).sum();
    let (outcomes, side): (Vec<Outcome>, Side) = client.receive(patience(span))?;
    let server = server()?;
    let alarms = [side.alarm("client"), server.alarm("server")];
    let measurement = Measurement {
        values: Vec::new(),
        alarms: alarms.into_iter().flatten().collect(),
        details: vec![side.line("client"), server.line("server")],
    };
    Ok((outcomes, measurement))
}

/// # Errors
/// An operation has failed, or had a wrong result.
fn call(parent: &Parent) -> anyhow::Result<()> {
    let params: Params = parent.receive()?;
    over!(params.setting, steps(parent, &params))
}

fn steps<T: Medium>(parent: &Parent, params: &Params) -> anyhow::Result<()> {
    let app = App::new(params.items, params.mix)?;
    let mut rpc: Rpc<T, App> = params.setting.open(app)?;
    rpc.on_completion(App::on_done);
    rpc.on_session(|app, event, cx| app.kv().on_session(event, cx));
    connect(&mut rpc, params)?;
    let mut outcomes: Vec<Outcome> = Vec::new();
    for step in &params.steps {
        let largest = outcomes.first().map_or(0.0, |first| first.per_s);
        outcomes.push(measure(&mut rpc, step, largest)?);
    }
    params.setting.seat.step_back()?;
    let side = Side::read(&mut rpc)?;
    parent.say(&(outcomes, side))
}

/// Connects the client's session, and another one for echoes if a step has any.
fn connect<T: Medium>(rpc: &mut Rpc<T, App>, params: &Params) -> anyhow::Result<()> {
    let options = |endpoint| ConnectOptions {
        endpoint: Some(endpoint),
        session: SessionOptions::DEFAULT
            .with_window(WINDOW)
            .with_credits(WINDOW),
        ..ConnectOptions::default()
    };
    let begin = Instant::now();
    while rpc.app_mut().kv().map().is_none() {
        rpc.run_once();
        let now = rpc.now();
        while let Some(index) = rpc.app_mut().kv().wish(now) {
            let session = rpc.connect_with(params.server, &options(index))?;
            rpc.app_mut().kv().on_connecting(index, session);
        }
        ensure!(begin.elapsed() < STUCK, "the server does not answer");
    }
    if params.steps.iter().any(|step| step.what == What::Echo) {
        let session = rpc.connect_with(params.server, &options(0))?;
        rpc.wait_connected(session)?;
        rpc.app_mut().use_session(session);
    }
    Ok(())
}

/// A client of the service that expects values of the items' length, so that they fit into one
/// answer.
fn kv_client(items: Items) -> anyhow::Result<Client> {
    Ok(Client::new(Options {
        expected_value: u32::try_from(items.value).context("values are short")?,
        ..Options::DEFAULT
    }))
}

/// Runs one step: a warm-up, and the time that counts. At the end, nothing is in flight.
fn measure<T: Medium>(rpc: &mut Rpc<T, App>, step: &Step, largest: f64) -> anyhow::Result<Outcome> {
    rpc.app_mut().begin(step, largest)?;
    run_for(rpc, WARM_UP, |_| false)?;
    rpc.app_mut().flow().forget();
    let begin = Instant::now();
    run_for(rpc, step.span, |_| false)?;
    let outcome = rpc.app_mut().flow().outcome(begin.elapsed());
    rpc.app_mut().stop();
    run_for(rpc, STUCK, App::is_idle)?;
    ensure!(rpc.app_mut().is_idle(), "an operation does not end");
    Ok(outcome)
}

/// Runs for `span`, or until `is_enough` returns true.
fn run_for<T: Medium>(
    rpc: &mut Rpc<T, App>,
    span: Duration,
    mut is_enough: impl FnMut(&mut App) -> bool,
) -> anyhow::Result<()> {
    let begin = Instant::now();
    let first = rpc.app_mut().flow().ended();
    loop {
        for _ in 0..BLOCK {
            rpc.run_once();
            let (app, mut cx) = rpc.with();
            app.turn(&mut cx);
        }
        let app = rpc.app_mut();
        app.flow().check()?;
        let has_moved = app.flow().ended() > first;
        // On a busy machine, the server may not have run at all during a short span.
        if is_enough(app) || begin.elapsed() >= span && has_moved {
            return Ok(());
        }
        ensure!(
            begin.elapsed() < span + STUCK,
            "nothing ended for {} s",
            STUCK.as_secs()
        );
    }
}
