//! A server in a process of its own, which can be killed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dunlin_testkit::child::Child;

use crate::channel::Way;
use crate::channel::server::{Role, Seen, serve};

/// A server; killed when dropped.
pub(crate) struct Process(Child);

impl Process {
    pub(crate) fn start(way: Way, address: &str, role: Role) -> Self {
        Self(Child::start(&format!("{way:?} {address} {role:?}")))
    }

    /// The address at which the server listens, which is its first line. Call this once.
    pub(crate) fn address(&self) -> String {
        self.0.line()
    }

    /// Waits for a line that begins with `word`.
    pub(crate) fn wait_for(&self, word: &str) {
        while !self.0.line().starts_with(word) {}
    }

    /// Sends the process this signal.
    pub(crate) fn signal(&self, name: &str) {
        self.0.signal(name);
    }

    /// Kills the process without warning (SIGKILL), so it sends no goodbye to its peers.
    pub(crate) fn kill(&self) {
        self.0.kill();
    }
}

/// Serves, or calls, in this role.
pub(crate) fn play(role: &str) {
    let words: Vec<&str> = role.split(' ').collect();
    if let ["Crowd", addresses @ ..] = words.as_slice() {
        return crate::channel::sharing::crowd(addresses);
    }
    if let ["Hosts", port] = words.as_slice() {
        return crate::channel::hosts::call(port);
    }
    let &[way, address, role] = words.as_slice() else {
        panic!("{words:?} is not a role");
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
    // The thread may wait as long as the process lives; the parent ends the process.
    std::thread::spawn(move || {
        while watched.held.load(Ordering::Relaxed) < 8 {
            std::thread::sleep(Duration::from_millis(1));
        }
        println!("#held");
    });
    let never = AtomicBool::new(false);
    serve(way, address, role, seen, &never, |at| println!("#{at}"));
}
