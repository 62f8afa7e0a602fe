//! Entries, look-ups that end and that fail.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use super::Directory;
use dunlin_testkit::wait::until;

#[test]
fn a_host_is_one_server_and_each_address_of_a_name_another() {
    let list = ["localhost:7", "dns+127.0.0.1:8", "[::1]:9"];
    let directory = Directory::open(list).unwrap();
    assert_eq!(
        directory.servers(),
        ["localhost:7", "127.0.0.1:8", "[::1]:9"]
    );
    let local = directory.addresses("localhost:7");
    assert!(!local.is_empty() && local.iter().all(|it| it.ip().is_loopback()));
    assert_eq!(directory.addresses("127.0.0.1:8").len(), 1);
    assert!(directory.may_change());
    assert!(!Directory::open(["127.0.0.1:8"]).unwrap().may_change());
}

#[test]
fn a_list_without_any_address_is_an_error_that_names_the_entry() {
    let error = Directory::open(["no port"]).unwrap_err().to_string();
    assert!(error.contains("`no port`"), "{error}");
    assert!(Directory::open([]).is_err());
    // A server that cannot be found now may come later.
    let directory = Directory::open(["no port", "127.0.0.1:8"]).unwrap();
    assert_eq!(directory.servers(), ["no port", "127.0.0.1:8"]);
    assert!(directory.addresses("no port").is_empty());
}

#[test]
fn a_look_up_ends_and_keeps_the_addresses_of_names_that_fail() {
    let mut directory = Directory::open(["localhost:7", "127.0.0.1:8"]).unwrap();
    directory.begin();
    directory.begin();
    let mut ended = None;
    until(|| {
        ended = directory.poll();
        ended.is_some()
    });
    assert_eq!((ended, directory.is_busy()), (Some(true), false));
    let mut directory = Directory::open(["no port", "127.0.0.1:8"]).unwrap();
    directory.begin();
    until(|| {
        ended = directory.poll();
        ended.is_some()
    });
    assert_eq!(ended, Some(false));
    assert_eq!(directory.addresses("127.0.0.1:8").len(), 1);
}
