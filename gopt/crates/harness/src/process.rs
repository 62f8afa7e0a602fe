//! The processes of an experiment. The parent starts copies of this program with a hidden
//! subcommand, writes the parameters of each as a line of JSON to its standard input, and reads its
//! reports as lines of JSON from its standard output. A child ends when the parent drops it, on
//! every path, and when the parent dies.

mod child;
mod role;

pub use child::Parent;
pub use role::{Role, RoleArgs, SUBCOMMAND, run_role};

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, TryRecvError};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail, ensure};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::seat::Seat;
use crate::signal;

/// How often a wait checks whether the user pressed Ctrl-C.
const GLANCE: Duration = Duration::from_millis(20);

/// How long the parent waits for the last report of a child that no longer reads.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// One line that a child writes.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Line<T> {
    /// The report of its role.
    Said(T),
    /// The reason why it ends.
    Failed(String),
}

/// A running child.
#[derive(Debug)]
pub struct Process {
    child: Child,
    lines: Receiver<String>,
    /// The name of its role.
    role: &'static str,
}

impl Process {
    /// Starts a child in `role`, whose first thread takes `seat`.
    ///
    /// # Errors
    /// The system cannot start another process.
    pub fn spawn<P: Serialize>(role: Role, seat: Seat, params: &P) -> anyhow::Result<Self> {
        Self::spawn_by(Command::new(std::env::current_exe()?), role, seat, params)
    }

    /// Like [`Process::spawn`], but starts another program, such as a profiler, with this program
    /// as its last argument.
    ///
    /// # Errors
    /// The system cannot start another process.
    pub fn spawn_by<P: Serialize>(
        mut command: Command,
        role: Role,
        seat: Seat,
        params: &P,
    ) -> anyhow::Result<Self> {
        let role = role.name();
        command.arg(SUBCOMMAND).arg(role);
        if let Some(cpu) = seat.cpu {
            command.arg("--cpu").arg(cpu.to_string());
        }
        if seat.first {
            command.arg("--first");
        }
        // The child gets a process group of its own, so the terminal's Ctrl-C does not reach it:
        // the parent ends it.
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0);
        let mut child = command.spawn().context("cannot start another process")?;
        let stdout = child
            .stdout
            .take()
            .context("the child's output is a pipe")?;
        let (tx, lines) = mpsc::channel();
        std::thread::spawn(move || {
            // The loop ends when the child ends, or when the receiver was dropped.
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if tx.send(line).is_err() {
                    break;
                }
            }
        });
        let mut process = Self { child, lines, role };
        process.send(params)?;
        Ok(process)
    }

    /// Sends one line of JSON to the child.
    ///
    /// # Errors
    /// The child has ended: the failure that it reported, or its status.
    pub fn send<T: Serialize>(&mut self, message: &T) -> anyhow::Result<()> {
        let mut line = serde_json::to_string(message)?;
        line.push('\n');
        let stdin = self
            .child
            .stdin
            .as_mut()
            .context("the child's input is a pipe")?;
        match stdin.write_all(line.as_bytes()) {
            Ok(()) => Ok(()),
            Err(_) => Err(self.why_it_ended()),
        }
    }

    /// The reason why the child no longer reads: the failure that it reported, or the status with
    /// which it ended.
    fn why_it_ended(&mut self) -> anyhow::Error {
        loop {
            // Earlier reports do not explain the end.
            if let Err(why) = self.receive::<serde_json::Value>(LAST_WORDS) {
                return why;
            }
        }
    }

    /// The child's process number, for signals and `/proc`.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for the child to end by itself, at most for `limit`.
    ///
    /// # Errors
    /// [`signal::Interrupted`]; or the child took too long, or failed.
    pub fn wait(&mut self, limit: Duration) -> anyhow::Result<()> {
        let deadline = Instant::now() + limit;
        loop {
            signal::check()?;
            if let Some(status) = self.child.try_wait()? {
                ensure!(status.success(), "{} ended with {status}", self.role);
                return Ok(());
            }
            ensure!(Instant::now() < deadline, "{} does not end", self.role);
            std::thread::sleep(GLANCE);
        }
    }

    /// Waits for the child's next report, at most for `limit`.
    ///
    /// # Errors
    /// [`signal::Interrupted`]; or the child failed, ended, took too long, or sent an invalid line.
    pub fn receive<T: DeserializeOwned>(&mut self, limit: Duration) -> anyhow::Result<T> {
        let name = self.role;
        let deadline = Instant::now() + limit;
        let line = loop {
            signal::check()?;
            match self.lines.recv_timeout(GLANCE) {
                Ok(line) => break line,
                Err(RecvTimeoutError::Timeout) if Instant::now() < deadline => {}
                Err(RecvTimeoutError::Timeout) => {
                    bail!("{name} has reported nothing for {} s", limit.as_secs())
                }
                Err(RecvTimeoutError::Disconnected) => {
                    bail!("{name} ended without a report: {}", self.child.wait()?)
                }
            }
        };
        self.parse(&line)
    }

    /// The child's next report, if it has already come.
    ///
    /// # Errors
    /// The child failed, ended, or sent an invalid line.
    pub fn try_receive<T: DeserializeOwned>(&mut self) -> anyhow::Result<Option<T>> {
        match self.lines.try_recv() {
            Ok(line) => self.parse(&line).map(Some),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => {
                bail!("{} ended: {}", self.role, self.child.wait()?)
            }
        }
    }

    fn parse<T: DeserializeOwned>(&self, line: &str) -> anyhow::Result<T> {
        let name = self.role;
        match serde_json::from_str(line) {
            Ok(Line::Said(report)) => Ok(report),
            Ok(Line::Failed(why)) => Err(anyhow!("{name}: {why}")),
            Err(error) => Err(error).with_context(|| format!("{name} said {line:?}")),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // An error means that the child has already ended, as it should.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests;
