//! A copy of the test's program in a process of its own, to which the test can send signals. The
//! program has a test `child` that returns at once unless [`role`] names a role. Lines of the child
//! reach the parent from their first `#` on, because the test harness prints, too.

use std::cell::RefCell;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{self, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};

use crate::wait::{PATIENCE, until};

/// The environment variable with the role. `DUNLIN_…` would be a setting.
const ROLE: &str = "TEST_ROLE";

/// The role of this process, if it is a child.
pub fn role() -> Option<String> {
    std::env::var(ROLE).ok()
}

/// Whether the process catches this signal. Before it does, most signals would end it.
///
/// # Panics
/// If there is no such process.
pub fn catches(process: u32, signal: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"));
    let status = status.expect("the process runs");
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let caught = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    caught.expect("the kernel lists the caught signals") >> (signal - 1) & 1 == 1
}

/// A child. Dropping this kills it.
#[derive(Debug)]
pub struct Child {
    process: RefCell<process::Child>,
    lines: Receiver<String>,
}

impl Child {
    /// Starts a child with this role.
    ///
    /// # Panics
    /// If the system starts no process.
    pub fn start(role: &str) -> Self {
        let program = std::env::current_exe().expect("the program has a path");
        Self::start_as(&program, role)
    }

    /// Starts a child with this role, for which the environment variable `name` is `value`.
    ///
    /// # Panics
    /// If the system starts no process.
    pub fn start_with(role: &str, name: &str, value: &str) -> Self {
        let program = std::env::current_exe().expect("the program has a path");
        Self::spawn(Command::new(program).env(name, value), role)
    }

    /// Starts a copy of this program as a child with this role.
    ///
    /// # Panics
    /// If the system starts no process.
    pub fn start_as(program: &Path, role: &str) -> Self {
        Self::spawn(&mut Command::new(program), role)
    }

    fn spawn(program: &mut Command, role: &str) -> Self {
        let mut process = program
            .args(["--exact", "child", "--nocapture", "--test-threads=1"])
            .env(ROLE, role)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the system starts a process");
        let (send, lines) = channel();
        let output = BufReader::new(process.stdout.take().expect("it is piped"));
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                // The test harness may have begun the line.
                if let Some((_, said)) = line.split_once('#') {
                    let _ = send.send(said.to_owned());
                }
            }
        });
        Self {
            process: RefCell::new(process),
            lines,
        }
    }

    /// The child's next line, without the text before its `#`.
    ///
    /// # Panics
    /// If no line arrives within [`PATIENCE`].
    #[track_caller]
    pub fn line(&self) -> String {
        let line = self.lines.recv_timeout(PATIENCE);
        line.expect("the child prints a line")
    }

    /// The child's lines that have not been taken, until it has ended.
    pub fn rest(&self) -> Vec<String> {
        self.lines.iter().collect()
    }

    /// Sends a signal, named as for the command `kill`: `TERM`.
    ///
    /// # Panics
    /// If the child has ended and was waited for.
    pub fn signal(&self, name: &str) {
        let (id, name) = (self.process.borrow().id().to_string(), format!("-{name}"));
        let sent = Command::new("kill").args([name, id]).status();
        assert!(sent.is_ok_and(|status| status.success()));
    }

    /// Kills the child (SIGKILL), so that it sends no goodbye to its peers. Does nothing if it has
    /// ended.
    pub fn kill(&self) {
        let mut process = self.process.borrow_mut();
        let _ = process.kill();
        let _ = process.wait();
    }

    /// Whether the child still runs.
    ///
    /// # Panics
    /// If the system does not report it.
    pub fn is_running(&self) -> bool {
        let mut process = self.process.borrow_mut();
        process.try_wait().expect("it is our child").is_none()
    }

    /// Waits for the child's end.
    ///
    /// # Panics
    /// If it does not end within [`PATIENCE`].
    #[track_caller]
    pub fn wait(&self) -> ExitStatus {
        until(|| !self.is_running());
        let status = self.process.borrow_mut().wait();
        status.expect("it has ended")
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.kill();
    }
}
