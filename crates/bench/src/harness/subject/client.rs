//! A process that calls, and its state: the client half of `latency`, `mixed`, `bandwidth` and
//! `parallel`. The parent starts it with an [`Errand`]; it opens an endpoint, makes its state once
//! its sessions are open, runs until it has seen enough, and reports.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, bail};
use dunlin::{Cx, Done, Open, Rpc};
use serde::{Deserialize, Serialize};

use super::side::Side;
use super::{Medium, Report, Server, Setting, server};
use harness::process::{Process, Role};
use harness::seat::Seat;

/// The parent's line to a client: where it runs, where it calls, for how long, and what is its
/// experiment's own.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Errand<Job> {
    pub(crate) setting: Setting,
    pub(crate) server: SocketAddr,
    pub(crate) span: Duration,
    pub(crate) job: Job,
}

/// Starts a server that answers at once and a client of this role, and waits up to `patience` for
/// the client's report. Returns it with the server's side.
///
/// # Errors
/// A process does not start, fails, or reports nothing in time.
pub(crate) fn report<Job: Serialize>(
    role: Role,
    (client, server): (Setting, Setting),
    job: Job,
    span: Duration,
    patience: Duration,
) -> anyhow::Result<(Report, Side)> {
    let mut server = Server::start(&server::Params::prompt(server))?;
    let errand = Errand {
        setting: client,
        server: server.address,
        span,
        job,
    };
    let mut client = Process::spawn(role, Seat::default(), &errand)?;
    let report = client.receive(patience)?;
    Ok((report, server.side()?))
}

/// The state of a client, which issues a call for each that completes.
pub(crate) trait Caller: Sized + 'static {
    /// Checks the answer, and issues the next call.
    fn on_done(&mut self, done: Done, cx: &mut Cx<'_>);

    /// Takes out what was wrong with a call or an answer.
    fn take_wrong(&mut self) -> Option<String>;
}

/// Opens the endpoint of a client. It has no state yet, because that begins with a session.
///
/// # Errors
/// The system refuses something.
pub(crate) fn open<T: Medium, C: Caller>(setting: &Setting) -> anyhow::Result<Rpc<T, Option<C>>> {
    let mut rpc: Rpc<T, Option<C>> = setting.open(None)?;
    rpc.on_completion(|caller, done, cx| {
        if let Some(caller) = caller {
            caller.on_done(done, cx);
        }
    });
    Ok(rpc)
}

/// The state of a client.
///
/// # Errors
/// It has none yet.
pub(crate) fn state<T: Open, C>(rpc: &mut Rpc<T, Option<C>>) -> anyhow::Result<&mut C> {
    rpc.app_mut().as_mut().context("the client has no state")
}

/// Runs the event loop until `outcome`, which sees the state after each `block` iterations, gives
/// a value or an error.
///
/// # Errors
/// A call or an answer was wrong; that of `outcome`.
pub(crate) fn run_until<T: Open, C: Caller, R>(
    rpc: &mut Rpc<T, Option<C>>,
    block: u32,
    mut outcome: impl FnMut(&mut C) -> anyhow::Result<Option<R>>,
) -> anyhow::Result<R> {
    loop {
        let caller = state(rpc)?;
        if let Some(wrong) = caller.take_wrong() {
            bail!(wrong);
        }
        if let Some(outcome) = outcome(caller)? {
            return Ok(outcome);
        }
        for _ in 0..block {
            rpc.run_once();
        }
    }
}
