//! Drains of a server: on a signal that tokio handles, in a process of its own, and in a task.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use dunlin_testkit::child::{Child, role};

use crate::service::{JobsClient, Seen};
use crate::{Way, block_on, runtime, until, worker};

const SERVES: &str = "serves";

/// Serves until a signal comes, if this process is a child.
pub(crate) fn main_if_asked() {
    if role().is_none() {
        return;
    }
    let runtime = runtime();
    let seen = Arc::<Seen>::default();
    let server = Way::Shm.serve(1, &worker(&seen), runtime.handle());
    let address = server.address();
    std::thread::spawn(move || {
        until(|| seen.started.load(Ordering::SeqCst) == 2);
        println!("#started");
    });
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
        let server = Child::start(SERVES);
        let jobs = JobsClient::over(Way::Shm.open_at(server.line()));
        assert_eq!(block_on(jobs.run(&(1, 0))).unwrap(), 1);
        let slow = std::thread::spawn({
            let jobs = jobs.clone();
            move || block_on(jobs.run(&(2, 300)))
        });
        assert_eq!(server.line(), "started");
        server.signal(signal);
        assert_eq!(slow.join().unwrap().unwrap(), 2);
        assert_eq!(server.line(), "1 0");
        assert!(server.wait().success());
    }
}

#[test]
fn a_second_signal_ends_the_process_at_once() {
    let server = Child::start(SERVES);
    let jobs = JobsClient::over(Way::Shm.open_at(server.line()));
    let hangs = std::thread::spawn({
        let jobs = jobs.clone();
        move || block_on(jobs.hang(&()))
    });
    assert_eq!(block_on(jobs.run(&(1, 500))).unwrap(), 1);
    server.signal("TERM");
    // A server that drains takes no new calls.
    until(|| {
        let call = jobs.run(&(1, 0)).deadline(Duration::from_millis(100));
        block_on(call).is_err()
    });
    assert!(server.is_running());
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
