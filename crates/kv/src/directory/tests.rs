//! Entries of the list, and look-ups that succeed or fail.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use super::Directory;
use dunlin_testkit::wait::until;

#[test]
fn a_host_is_one_server_and_a_dns_name_is_one_server_per_address() {
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
    // If another entry has an address, a server without one is listed, too: it may get one later.
    let directory = Directory::open(["no port", "127.0.0.1:8"]).unwrap();
    assert_eq!(directory.servers(), ["no port", "127.0.0.1:8"]);
    assert!(directory.addresses("no port").is_empty());
}

#[test]
fn a_list_is_refused_if_the_servers_of_a_name_are_not_known() {
    // If the list left these servers out, their keys would go to other servers.
    let list = ["dns+no port", "127.0.0.1:8"];
    let error = Directory::open(list).unwrap_err().to_string();
    assert!(error.contains("`no port`"), "{error}");
}

/// Runs one look-up, and returns whether it has found any name. The second `begin` changes nothing.
fn look_up(directory: &mut Directory) -> bool {
    directory.begin();
    directory.begin();
    let mut ended = None;
    until(|| {
        ended = directory.poll();
        ended.is_some()
    });
    assert!(!directory.is_busy());
    ended.unwrap()
}

#[test]
fn a_look_up_ends_and_keeps_the_addresses_of_names_that_fail() {
    let mut directory = Directory::open(["localhost:7", "127.0.0.1:8"]).unwrap();
    assert!(look_up(&mut directory));
    directory.entries[0].name = "no port".to_owned();
    let before = directory.entries[0].addresses.clone();
    look_up(&mut directory);
    assert_eq!(directory.entries[0].addresses, before);
    assert_eq!(directory.addresses("127.0.0.1:8").len(), 1);
}

#[test]
fn a_look_up_of_several_names_fails_only_if_all_of_them_do() {
    let mut directory = Directory::open(["dns+127.0.0.1:8", "no port"]).unwrap();
    // An earlier look-up had found other addresses of the name.
    directory.entries[0].addresses = vec!["127.0.0.9:8".parse().unwrap()];
    assert!(look_up(&mut directory), "the list has changed");
    assert_eq!(directory.servers(), ["127.0.0.1:8", "no port"]);
    directory.entries.remove(0);
    assert!(!look_up(&mut directory));
}
