//! A process that calls, and its state: the client half of `latency`, `mixed`, `bandwidth` and
//! `parallel`. The parent starts it with an [`Errand`]; the client opens an endpoint, makes its
//! state once its sessions are open, runs until its state has enough results, and reports.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, bail};
use dunlin::{Cx, Done, Open, Rpc};
use serde::{Deserialize, Serialize};

use super::side::Side;
use super::{Medium, Report, Server, Setting, server};
use harness::process::{Process, Role};
use harness::seat::Seat;

/// The parent's line to a client: the client's processor, the server, the span, and the
/// experiment's own parameters.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Errand<Job> {
    pub(crate) setting: Setting,
    pub(crate) server: SocketAddr,
    pub(crate) span: Duration,
    pub(crate) job: Job,
}

/// Starts a server that answers immediately and a client of this role. Waits up to `patience` for
/// the client's report, and returns it together with the server's side.
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

/// The state of a client that issues a new call for each call that completes.
pub(crate) trait Caller: Sized + 'static {
    /// Checks the answer, and issues the next call.
    fn on_done(&mut self, done: Done, cx: &mut Cx<'_>);

    /// Takes out the description of a wrong call or answer, if there was one.
    fn take_wrong(&mut self) -> Option<String>;
}

/// Opens the endpoint of a client. The client has no state yet, because its state needs a session.
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
/// The client has no state yet.
pub(crate) fn state<T: Open, C>(rpc: &mut Rpc<T, Option<C>>) -> anyhow::Result<&mut C> {
    rpc.app_mut().as_mut().context("the client has no state")
}

/// Runs the event loop until `outcome` returns a value or an error. `outcome` gets the state after
/// each `block` iterations.
///
/// # Errors
/// A call or an answer was wrong; or `outcome` returned an error.
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
