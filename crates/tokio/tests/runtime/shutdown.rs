//! Drains: of a server in a process of its own, on a signal that tokio handles, and in a task.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use crate::service::{JobsClient, Seen};
use crate::{PATIENCE, Way, block_on, runtime, until, worker};

const ROLE: &str = "DUNLIN_TOKIO_TEST";

/// A process with a server. Dropping this kills it.
struct Process {
    child: Child,
    lines: Receiver<String>,
}

impl Process {
    fn start() -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child", "--nocapture", "--test-threads=1"])
            .env(ROLE, "serve")
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

    fn wait(&mut self) -> std::process::ExitStatus {
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

/// Serves until a signal comes, if this process is a child.
pub(crate) fn main_if_asked() {
    if std::env::var_os(ROLE).is_none() {
        return;
    }
    let runtime = runtime();
    let server = Way::Shm.serve(1, &worker(&Arc::default()), runtime.handle());
    let address = server.address();
    let drained = runtime.block_on(async {
        let drained = tokio::spawn(dunlin_tokio::drain_on_signal(server));
        // By then, the task has registered the signals.
        tokio::time::sleep(Duration::from_millis(50)).await;
        println!("#{address}");
        drained.await.unwrap().unwrap()
    });
    println!("#{} {}", drained.finished, drained.cut_off);
}

#[test]
fn a_signal_drains_a_server() {
    for signal in ["TERM", "INT"] {
        let mut server = Process::start();
        let jobs = JobsClient::over(Way::Shm.open_at(server.line()));
        assert_eq!(block_on(jobs.run(&(1, 0))).unwrap(), 1);
        let slow = std::thread::spawn({
            let jobs = jobs.clone();
            move || block_on(jobs.run(&(2, 1500)))
        });
        std::thread::sleep(Duration::from_millis(500));
        server.signal(signal);
        assert_eq!(slow.join().unwrap().unwrap(), 2);
        assert_eq!(server.line(), "1 0");
        assert!(server.wait().success());
    }
}

#[test]
fn a_second_signal_ends_the_process_at_once() {
    let mut server = Process::start();
    let jobs = JobsClient::over(Way::Shm.open_at(server.line()));
    let hangs = std::thread::spawn({
        let jobs = jobs.clone();
        move || block_on(jobs.hang(&()))
    });
    assert_eq!(block_on(jobs.run(&(1, 500))).unwrap(), 1);
    server.signal("TERM");
    // The server still drains.
    std::thread::sleep(Duration::from_millis(200));
    assert!(server.child.try_wait().unwrap().is_none());
    server.signal("INT");
    assert_eq!(server.wait().code(), Some(128 + 2));
    assert!(hangs.join().unwrap().is_err());
}

#[test]
fn a_drain_in_a_task_lets_handlers_finish() {
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().build().unwrap();
    let seen = Arc::<Seen>::default();
    let server = Way::Shm.serve(1, &worker(&seen), runtime.handle());
    let jobs = JobsClient::over(Way::Shm.open(&server));
    runtime.block_on(async {
        jobs.run(&(1, 0)).await.unwrap();
        let slow = tokio::spawn(jobs.run(&(2, 200)));
        while seen.started.load(Ordering::SeqCst) < 2 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let drained = dunlin_tokio::drain(server).await;
        assert_eq!((drained.finished, drained.cut_off), (1, 0));
        assert_eq!(slow.await.unwrap().unwrap(), 2);
    });
}
