//! A replica that panics in a spawned thread. Its process is a child of the test.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::process::Command;
use std::task::Waker;
use std::{env, io};

use dunlin_nexus::Nexus;
use dunlin_transport::udp::Udp;

use super::*;
use crate::node::Image;
use crate::options::Options;
use crate::wire::Member;
use crate::work::{Disk, Saved, Work};

/// Set in the child.
const CHILD: &str = "DUNLIN_DRIVER_PANICS";
const WORDS: &str = "these are its last words";

/// A disk that has failed.
#[derive(Debug)]
struct Failed;

impl Disk for Failed {
    fn take_seat(&mut self, _roster: &Roster) -> io::Result<()> {
        Ok(())
    }

    fn submit(&mut self, _work: Work, _now: Nanos) {}

    fn saved(&mut self, _now: Nanos) -> Saved {
        panic!("the disk has failed")
    }

    fn has_news(&self, _now: Nanos) -> bool {
        true
    }

    fn wake_with(&mut self, _waker: Waker) {}
}

fn drive() {
    let nexus = Nexus::bind("127.0.0.1:0").unwrap();
    let member = Member {
        id: 1,
        address: nexus.address().to_string(),
    };
    let roster = Roster::first(&Members::new([member]).unwrap());
    let image = Image::of(roster.clone());
    let disk = Box::new(Failed);
    let replica = Replica::with_disk(1, Some((roster, image)), disk, Options::DEFAULT);
    let endpoint = nexus.endpoint_builder::<Udp>();
    let driver = Driver::new(endpoint, replica, ConnectOptions::default());
    let mut driver = driver.unwrap().with_last_words(|| WORDS.to_owned());
    loop {
        let limit = driver.now() + Nanos::from_millis(10);
        driver.turn(limit);
    }
}

#[test]
fn a_panic_of_a_replica_ends_the_process_from_any_thread() {
    if env::var_os(CHILD).is_some() {
        let ended = thread::spawn(drive).join();
        println!("the process goes on: {ended:?}");
        return;
    }
    let name = "driver::tests::a_panic_of_a_replica_ends_the_process_from_any_thread";
    let mut child = Command::new(env::current_exe().unwrap());
    child.args([name, "--exact", "--nocapture"]).env(CHILD, "1");
    let output = child.output().unwrap();
    let [printed, errors] = [&output.stdout, &output.stderr].map(|it| String::from_utf8_lossy(it));
    assert!(!printed.contains("goes on"), "{printed}{errors}");
    assert_eq!(output.status.code(), Some(PANICKED), "{errors}");
    assert!(
        errors.contains("the disk has failed") && errors.contains(WORDS),
        "{errors}"
    );
}
