//! `serve` in a process of its own, which gets signals.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use dunlin_testkit::address::free_port;
use dunlin_testkit::child::Child;

use crate::server::service::{Book, WorkClient, Worker};
use crate::server::{Way, block_on, until};

/// Serves at this address until signals come, in the process of a child.
pub(crate) fn serve(address: &str) {
    let book = Arc::<Book>::default();
    let watched = Arc::clone(&book);
    std::thread::spawn(move || {
        until(|| watched.runs.lock().unwrap().len() == 2);
        println!("#runs");
    });
    let watched = Arc::clone(&book);
    std::thread::spawn(move || {
        until(|| watched.hangs.load(Ordering::Relaxed) == 1);
        println!("#hangs");
    });
    let server = Way::Shm.server().service(Worker::server(&book));
    let drained = server.serve(address).unwrap();
    println!("#{} {}", drained.finished, drained.cut_off);
}

#[test]
fn a_signal_drains_a_server() {
    for signal in ["TERM", "INT"] {
        let address = free_port();
        let server = Child::start(&format!("Drained {address}"));
        let work = WorkClient::over(Way::Shm.open(&address));
        assert_eq!(block_on(work.run(&(1, 0))).unwrap(), 1);
        let slow = std::thread::spawn({
            let work = work.clone();
            move || block_on(work.run(&(2, 300)))
        });
        assert_eq!(server.line(), "runs");
        server.signal(signal);
        assert_eq!(slow.join().unwrap().unwrap(), 2);
        assert_eq!(server.line(), "1 0");
        assert!(server.wait().success());
    }
}

#[test]
fn a_second_signal_ends_a_server_at_once() {
    let address = free_port();
    let server = Child::start(&format!("Drained {address}"));
    let work = WorkClient::over(Way::Shm.open(&address));
    let hangs = std::thread::spawn(move || block_on(work.hang(&())));
    assert_eq!(server.line(), "hangs");
    server.signal("TERM");
    // The server still drains.
    std::thread::sleep(Duration::from_millis(200));
    assert!(server.is_running());
    server.signal("TERM");
    assert_eq!(server.wait().code(), Some(128 + 15));
    assert!(hangs.join().unwrap().is_err());
}
