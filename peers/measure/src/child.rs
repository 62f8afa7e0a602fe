//! The processes of a measurement. Each is this program with a hidden command line. A process
//! reports in lines of JSON on its standard output, and writes errors to its standard error. It
//! ends when the parent drops its handle, and when the parent dies.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::{Parser, Subcommand};
use rustix::process::{Signal, set_parent_process_death_signal};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::args::Name;
use crate::load::{Load, Order};

/// The first word of a child's command line.
pub(crate) const SUBCOMMAND: &str = "__task";

/// Time between two checks, during a wait, whether the user pressed Ctrl-C.
const GLANCE: Duration = Duration::from_millis(20);

/// The task of a child.
#[derive(Debug, Parser)]
pub(crate) struct Task {
    #[command(subcommand)]
    side: Side,
}

#[derive(Debug, Subcommand)]
enum Side {
    /// Answers, and prints its address.
    Serve { peer: Name },
    /// Calls, and prints its report.
    Call {
        peer: Name,
        address: String,
        server: u32,
        size: usize,
        inflight: usize,
        span_ms: u64,
    },
}

/// A running child.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    lines: Receiver<String>,
    what: String,
}

/// Runs the task of a child, whose output goes to the parent.
pub(crate) fn run(task: &Task) -> anyhow::Result<ExitCode> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    take_processor(&task.side)?;
    match &task.side {
        Side::Serve { peer } => peer.peer().serve(&mut |address| say(&address))?,
        Side::Call {
            peer,
            address,
            server,
            size,
            inflight,
            span_ms,
        } => {
            let mut load = Load::new(Order {
                size: *size,
                inflight: *inflight,
                span: Duration::from_millis(*span_ms),
                server: *server,
            })?;
            peer.peer().call(address, &mut load)?;
            say(&load.report().context("it ended too early")?)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

impl Process {
    /// Starts a server.
    pub(crate) fn serve(peer: Name) -> anyhow::Result<Self> {
        Self::spawn(
            format!("the server of {}", peer.text()),
            &["serve", &peer.text()],
        )
    }

    /// Starts a client of the server that printed `address`.
    pub(crate) fn call(
        peer: Name,
        address: &str,
        server: &Self,
        [size, inflight]: [usize; 2],
        span: Duration,
    ) -> anyhow::Result<Self> {
        let numbers = [server.child.id() as usize, size, inflight].map(|it| it.to_string());
        let [server, size, inflight] = &numbers;
        let span = span.as_millis().to_string();
        let task = ["call", &peer.text(), address, server, size, inflight, &span];
        Self::spawn(format!("the client of {}", peer.text()), &task)
    }

    fn spawn(what: String, task: &[&str]) -> anyhow::Result<Self> {
        // In a process group of its own, the child does not get the terminal's Ctrl-C: the parent
        // ends it.
        let mut child = Command::new(std::env::current_exe()?)
            .arg(SUBCOMMAND)
            .args(task)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .context("cannot start another process")?;
        let stdout = child
            .stdout
            .take()
            .context("the child's output is a pipe")?;
        let (said, lines) = mpsc::channel();
        thread::spawn(move || {
            // The loop ends when the child does, or when the receiver is gone.
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if said.send(line).is_err() {
                    break;
                }
            }
        });
        Ok(Self { child, lines, what })
    }

    /// The number of the process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// The child's next line, within `limit`; `None`: the user has stopped everything.
    ///
    /// # Errors
    /// The child has ended, prints nothing, or prints something else.
    pub(crate) fn receive<T: DeserializeOwned>(
        &mut self,
        limit: Duration,
        stop: &AtomicBool,
    ) -> anyhow::Result<Option<T>> {
        let deadline = Instant::now() + limit;
        let what = &self.what;
        loop {
            if stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
            match self.lines.recv_timeout(GLANCE) {
                Ok(line) => {
                    let said = serde_json::from_str(&line);
                    return said
                        .map(Some)
                        .with_context(|| format!("{what} said {line:?}"));
                }
                Err(RecvTimeoutError::Timeout) if Instant::now() < deadline => {}
                Err(RecvTimeoutError::Timeout) => {
                    bail!("{what} has reported nothing for {} s", limit.as_secs())
                }
                Err(RecvTimeoutError::Disconnected) => {
                    bail!("{what} ended without a report: {}", self.child.wait()?)
                }
            }
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // An error means that the child has ended already, as it should.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The processors of the server and of the client.
pub(crate) type Processors = [usize; 2];

/// A processor for each side, if there are two, so that it is not left to chance whether their
/// threads share one.
pub(crate) fn processors() -> anyhow::Result<Option<Processors>> {
    let allowed = sched_getaffinity(None)?;
    let mut allowed = (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu));
    let both = (allowed.next(), allowed.next());
    Ok(match both {
        (Some(first), Some(second)) => Some([first, second]),
        _ => None,
    })
}

/// Keeps this thread, and threads that it starts, on this processor.
pub(crate) fn take(processor: usize) -> anyhow::Result<()> {
    let mut own = CpuSet::new();
    own.set(processor);
    Ok(sched_setaffinity(None, &own)?)
}

fn take_processor(side: &Side) -> anyhow::Result<()> {
    match (processors()?, side) {
        (Some([first, _]), Side::Serve { .. }) => take(first),
        (Some([_, second]), Side::Call { .. }) => take(second),
        (None, _) => Ok(()),
    }
}

fn say<T: Serialize>(what: &T) -> anyhow::Result<()> {
    let mut line = serde_json::to_string(what)?;
    line.push('\n');
    let mut stdout = std::io::stdout().lock();
    stdout
        .write_all(line.as_bytes())
        .and_then(|()| stdout.flush())
        .context("the parent has ended")
}
