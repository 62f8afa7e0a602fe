//! A server in a process of its own, which can be killed.

use std::cell::Cell;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};

use crate::server::{Role, Seen, serve};
use crate::{PATIENCE, Way, until};

const ROLE: &str = "DUNLIN_CHANNEL_TEST";

/// A server; killed when dropped.
pub(crate) struct Process {
    child: Cell<Option<Child>>,
    lines: Receiver<String>,
}

impl Process {
    pub(crate) fn start(way: Way, address: &str, role: Role) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child", "--nocapture", "--test-threads=1"])
            .env(ROLE, format!("{way:?} {address} {role:?}"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (send, lines) = channel();
        let output = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                // The test harness prints before the child does, without ending its line.
                if let Some((_, said)) = line.split_once('#') {
                    let _ = send.send(said.to_owned());
                }
            }
        });
        Self {
            child: Cell::new(Some(child)),
            lines,
        }
    }

    /// The address at which the server listens, which is its first line. Call this once.
    pub(crate) fn address(&self) -> String {
        self.wait_for("")
    }

    /// The rest of the server's next line that begins with `word`.
    pub(crate) fn wait_for(&self, word: &str) -> String {
        loop {
            let line = self.lines.recv_timeout(PATIENCE).unwrap();
            if let Some(rest) = line.strip_prefix(word) {
                return rest.to_owned();
            }
        }
    }

    /// Kills the process without warning (SIGKILL), so it sends no goodbye to its peers.
    pub(crate) fn kill(&self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Serves in the role that the environment names, if this process is a child.
pub(crate) fn main_if_asked() {
    let Ok(role) = std::env::var(ROLE) else {
        return;
    };
    let words: Vec<&str> = role.split(' ').collect();
    let &[way, address, role] = words.as_slice() else {
        panic!("{words:?} is no role");
    };
    let way = match way {
        "Shm" => Way::Shm,
        _ => Way::Udp,
    };
    let role = match role {
        "Holds" => Role::Holds,
        _ => Role::Answers,
    };
    let seen = Arc::<Seen>::default();
    let watched = Arc::clone(&seen);
    std::thread::spawn(move || {
        until(|| watched.held.load(Ordering::Relaxed) >= 8);
        println!("#held");
    });
    let never = AtomicBool::new(false);
    serve(way, address, role, seen, &never, |at| println!("#{at}"));
}
