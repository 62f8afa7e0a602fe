//! Processes of these tests: a server, or a client that makes load.

use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use dunlin::{Auto, Shm, Udp};

use crate::end_to_end::Named;
use crate::end_to_end::{load, server};

const ROLE: &str = "DUNLIN_END_TO_END";

/// Even on a busy machine, a child starts, or prints its next line, within this time.
const PATIENCE: Duration = Duration::from_secs(20);

/// A running child; killed when dropped.
pub(crate) struct Process {
    child: Child,
    lines: Receiver<String>,
}

/// A server process.
pub(crate) struct Server {
    process: Process,
    pub(crate) address: SocketAddr,
}

impl Process {
    fn start(role: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child", "--nocapture", "--test-threads=1"])
            .env(ROLE, role)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = lines_of(child.stdout.take().unwrap());
        Self { child, lines }
    }

    /// A client that loads the server as much as it can.
    pub(crate) fn load<T: Named>(server: SocketAddr) -> Self {
        Self::start(&format!("load {} {server} 0", T::NAME))
    }

    /// The rest of the next line that begins with `word`; skips lines before it.
    pub(crate) fn expect(&self, word: &str) -> String {
        loop {
            let line = match self.lines.recv_timeout(PATIENCE) {
                Ok(line) => line,
                Err(RecvTimeoutError::Timeout) => panic!("the child does not say {word:?}"),
                Err(RecvTimeoutError::Disconnected) => panic!("it ended before {word:?}"),
            };
            if let Some(rest) = line.strip_prefix(word) {
                return rest.trim().to_owned();
            }
        }
    }

    pub(crate) fn signal(&self, signal: i32) {
        let id = i32::try_from(self.child.id()).unwrap();
        // SAFETY: the child is ours and has not been waited for, so no other process has its
        // number.
        assert_eq!(unsafe { libc::kill(id, signal) }, 0);
    }

    /// Stops it, and waits until it has stopped.
    pub(crate) fn stop(&self) {
        self.signal(libc::SIGSTOP);
        let tasks = format!("/proc/{}/task", self.child.id());
        let is_stopped = |task: std::fs::DirEntry| {
            let stat = std::fs::read_to_string(task.path().join("stat")).unwrap_or_default();
            // The state follows the name, which stands in parentheses (proc(5)).
            let state = stat.rsplit(')').next().map(str::trim_start);
            state.is_none_or(|state| state.starts_with('T'))
        };
        let all_stopped = || {
            let mut tasks = std::fs::read_dir(&tasks).unwrap();
            tasks.all(|task| task.is_ok_and(is_stopped))
        };
        while !all_stopped() {
            std::thread::yield_now();
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    /// A server at this address; port 0: any.
    pub(crate) fn start<T: Named>(address: &str) -> Self {
        Self::start_with_udp_port::<T>(address, 0)
    }

    pub(crate) fn start_with_udp_port<T: Named>(address: &str, port: u16) -> Self {
        let process = Process::start(&format!("serve {} {address} {port}", T::NAME));
        let address = process.expect("address").parse().unwrap();
        Self { process, address }
    }
}

impl std::ops::Deref for Server {
    type Target = Process;

    fn deref(&self) -> &Process {
        &self.process
    }
}

/// The lines that the child prints with our mark; the mark is removed.
fn lines_of(output: ChildStdout) -> Receiver<String> {
    let (send, receive) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            // The test harness prints before the child does, without ending its line.
            if let Some((_, said)) = line.split_once('#')
                && send.send(said.to_owned()).is_err()
            {
                break;
            }
        }
    });
    receive
}

/// Prints a line for the parent.
pub(crate) fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    // The parent may have ended.
    let _ = writeln!(out, "#{text}").and_then(|()| out.flush());
}

/// Plays the role that the environment names, if this process is a child.
pub(crate) fn play_if_asked() {
    let Ok(role) = std::env::var(ROLE) else {
        return;
    };
    let words: Vec<&str> = role.split(' ').collect();
    let &[role, transport, address, port] = words.as_slice() else {
        panic!("{words:?} is not a role");
    };
    let (address, port) = (address.parse().unwrap(), port.parse().unwrap());
    match (role, transport) {
        ("serve", Shm::NAME) => server::serve::<Shm>(address, port),
        ("serve", Udp::NAME) => server::serve::<Udp>(address, port),
        ("serve", Auto::NAME) => server::serve::<Auto>(address, port),
        ("load", Shm::NAME) => load::run::<Shm>(address),
        ("load", Udp::NAME) => load::run::<Udp>(address),
        ("load", Auto::NAME) => load::run::<Auto>(address),
        _ => panic!("{words:?} is not a role"),
    }
}
