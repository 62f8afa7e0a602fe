//! `serve` in a process of its own, which gets signals.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use crate::service::{Book, WorkClient, Worker};
use crate::{PATIENCE, Way, block_on, until};

const ROLE: &str = "DUNLIN_SERVER_TEST";

/// A server in a process, which is killed when this is dropped.
struct Process {
    child: Child,
    lines: Receiver<String>,
}

impl Process {
    fn start(address: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child", "--nocapture", "--test-threads=1"])
            .env(ROLE, address)
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
        Self { child, lines }
    }

    fn line(&self) -> String {
        self.lines.recv_timeout(PATIENCE).unwrap()
    }

    fn signal(&self, name: &str) {
        let (id, name) = (self.child.id().to_string(), format!("-{name}"));
        let sent = Command::new("kill").args([name, id]).status().unwrap();
        assert!(sent.success());
    }

    fn wait(&mut self) -> ExitStatus {
        let mut ended = None;
        until(|| {
            ended = self.child.try_wait().unwrap();
            ended.is_some()
        });
        ended.unwrap()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Serves as the parent's test demands, if this process is a child.
pub(crate) fn main_if_asked() {
    let Ok(address) = std::env::var(ROLE) else {
        return;
    };
    let book = Arc::<Book>::default();
    let watched = Arc::clone(&book);
    std::thread::spawn(move || {
        until(|| watched.hangs.load(Ordering::Relaxed) == 1);
        println!("#hangs");
    });
    let server = Way::Shm.server().service(Worker::server(&book));
    let drained = server.serve(address.as_str()).unwrap();
    println!("#{} {}", drained.finished, drained.cut_off);
}

/// A free port of this host.
fn free_port() -> String {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    free.local_addr().unwrap().to_string()
}

#[test]
fn a_signal_drains_a_server() {
    for signal in ["TERM", "INT"] {
        let address = free_port();
        let mut server = Process::start(&address);
        let work = WorkClient::over(Way::Shm.open(&address));
        assert_eq!(block_on(work.run(&(1, 0))).unwrap(), 1);
        let slow = std::thread::spawn({
            let work = work.clone();
            move || block_on(work.run(&(2, 300)))
        });
        std::thread::sleep(Duration::from_millis(100));
        server.signal(signal);
        assert_eq!(slow.join().unwrap().unwrap(), 2);
        assert_eq!(server.line(), "1 0");
        assert!(server.wait().success());
    }
}

#[test]
fn a_second_signal_ends_a_server_at_once() {
    let address = free_port();
    let mut server = Process::start(&address);
    let work = WorkClient::over(Way::Shm.open(&address));
    let hangs = std::thread::spawn(move || block_on(work.hang(&())));
    assert_eq!(server.line(), "hangs");
    server.signal("TERM");
    // The server still drains.
    std::thread::sleep(Duration::from_millis(200));
    assert!(server.child.try_wait().unwrap().is_none());
    server.signal("TERM");
    assert_eq!(server.wait().code(), Some(128 + 15));
    assert!(hangs.join().unwrap().is_err());
}
