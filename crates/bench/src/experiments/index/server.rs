//! The process that serves the index, and answers the echoes of the baseline.

use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::time::Duration;

use dunlin::index::{Index, serve, serve_in_dispatch};
use dunlin::{ReqType, Rpc};
use serde::{Deserialize, Serialize};

use super::scans::Scans;
use super::tree;
use crate::harness::probe::patience;
use crate::harness::subject::server::{apart, listen_to_parent};
use crate::harness::subject::side::Side;
use crate::harness::subject::{Medium, Setting, over};
use harness::process::{Parent, Process, Role};
use harness::seat::Seat;

/// Serves an index.
pub(super) const ROLE: Role = Role::new("index-serve", hold);

/// An echo: the answer is the first [`ANSWER`] bytes of the request.
pub(super) const ECHO: ReqType = ReqType(0x10);

/// Bytes of the answer to a get: its kind, and a value.
pub(super) const ANSWER: usize = 1 + tree::KEY;

/// How long it takes a slow machine to fill an index.
const FILLING: Duration = Duration::from_secs(60);

/// Iterations between two looks at the parent.
const BLOCK: u32 = 1024;

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Params {
    setting: Setting,
    scans: Scans,
    /// How long to measure gets by the tree's own crate.
    alone: Duration,
}

/// The first message of a server to its parent.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Found {
    pub(super) address: SocketAddr,
    /// Gets per second by the tree's own crate; 0 if they were not measured.
    pub(super) tree_per_s: f64,
}

/// A process with an index, as its parent sees it.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) found: Found,
    process: Process,
}

impl Server {
    /// Starts a server, and waits until its index is filled.
    ///
    /// # Errors
    /// The server does not start.
    pub(super) fn start(setting: Setting, scans: Scans, alone: Duration) -> anyhow::Result<Self> {
        let setting = Setting {
            workers: usize::from(scans == Scans::Workers),
            ..setting
        };
        let params = Params {
            setting,
            scans,
            alone,
        };
        let mut process = Process::spawn(ROLE, Seat::default(), &params)?;
        let found = process.receive(patience(FILLING + 4 * alone))?;
        Ok(Self { found, process })
    }

    /// Ends the server, and returns its counts.
    ///
    /// # Errors
    /// The server has already ended.
    pub(super) fn stop(&mut self) -> anyhow::Result<Side> {
        self.process.send(&())?;
        self.process.receive(patience(Duration::ZERO))
    }
}

/// # Errors
/// The endpoint cannot be opened.
fn hold(parent: &Parent) -> anyhow::Result<()> {
    let params: Params = parent.receive()?;
    over!(params.setting, run(parent, &params))
}

fn run<T: Medium>(parent: &Parent, params: &Params) -> anyhow::Result<()> {
    let asked = listen_to_parent();
    let (index, tree_per_s) = apart(|| {
        params.setting.seat.take()?;
        let rate = match params.alone.is_zero() {
            true => 0.0,
            false => tree::rate(params.alone)?,
        };
        Ok((tree::fill(), rate))
    })?;
    let mut rpc: Rpc<T, Index> = params.setting.open(index.clone())?;
    match params.scans {
        Scans::Workers => serve(&mut rpc, &index),
        Scans::None | Scans::Dispatch => serve_in_dispatch(&mut rpc),
    }
    rpc.on(ECHO, |_, request, cx| {
        let data = request.data();
        request.reply(cx, ANSWER, |out| out.copy_from_slice(&data[..ANSWER]));
    });
    parent.say(&Found {
        address: rpc.nexus().address(),
        tree_per_s,
    })?;
    while !asked.load(Ordering::Relaxed) {
        for _ in 0..BLOCK {
            rpc.run_once();
        }
    }
    parent.say(&Side::read(&mut rpc)?)
}
