//! The list follows the results of look-ups.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::Arc;
use std::time::Duration;

use dunlin_hub::Hub;
use dunlin_testkit::wait::until;

use super::{List, Lists};

fn open(hub: &Hub, entries: &[&str], lookup: Option<Duration>) -> std::io::Result<Lists> {
    Lists::open(entries.iter().copied(), hub.channel(), 0, lookup)
}

fn names(list: &List) -> Vec<&str> {
    list.servers.iter().map(|it| it.name()).collect()
}

fn hub() -> Hub {
    Hub::builder().listen("127.0.0.1:0").start().unwrap()
}

#[test]
fn each_address_of_a_name_is_a_server() {
    let hub = hub();
    let entries = ["localhost:8", "dns+127.0.0.1:7", "127.0.0.1:9"];
    let lists = open(&hub, &entries, None).unwrap();
    let list = lists.current();
    assert_eq!(names(&list), ["127.0.0.1:7", "127.0.0.1:9", "localhost:8"]);
    assert!(list.named("127.0.0.1:7").is_some() && list.named("127.0.0.1:8").is_none());
    // The same server, once by its address and once by a name.
    let entries = ["dns+127.0.0.1:7", "127.0.0.1:7"];
    let list = open(&hub, &entries, None).unwrap().current();
    assert_eq!(names(&list), ["127.0.0.1:7"]);
}

#[test]
fn a_list_without_servers_or_with_a_name_that_is_not_found_is_refused() {
    let hub = hub();
    let refused = |entries: &[&str]| open(&hub, entries, None).unwrap_err().to_string();
    assert!(refused(&[]).contains("no server"));
    let error = refused(&["127.0.0.1:7", "dns+no port"]);
    assert!(error.contains("`no port`"), "{error}");
    let error = refused(&["nowhere"]);
    assert!(error.contains("nowhere"), "{error}");
}

/// The name now has other addresses than the earlier look-up found.
#[test]
fn a_look_up_that_is_due_changes_the_list_and_keeps_servers_that_stay() {
    let (hub, name) = (hub(), "dns+127.0.0.1:7");
    let lists = open(&hub, &[name, "127.0.0.1:9"], Some(Duration::ZERO)).unwrap();
    let had = ["127.0.0.1:7", "127.0.0.5:7"].map(|it| it.parse().unwrap());
    {
        let mut now = lists.lock();
        now.directory.as_mut().unwrap().set(0, had.to_vec());
        lists.rebuild(&mut now).unwrap();
    }
    let before = lists.lock().list.clone();
    assert_eq!(
        names(&before),
        ["127.0.0.1:7", "127.0.0.1:9", "127.0.0.5:7"]
    );
    until(|| lists.current().servers.len() == 2);
    let after = lists.current();
    for name in names(&after) {
        let same = [&before, &after].map(|it| it.named(name).unwrap());
        assert!(Arc::ptr_eq(same[0], same[1]), "{name}");
    }
    // Only the keys of the server that has left change their owner.
    for key in (0..200_u32).map(u32::to_le_bytes) {
        let owners = [&before, &after].map(|it| it.owner(&key).unwrap().name());
        assert!(owners[0] == owners[1] || owners[0] == "127.0.0.5:7");
    }
}

#[test]
fn names_are_not_looked_up_before_it_is_time() {
    let hub = hub();
    let lists = open(&hub, &["dns+127.0.0.1:7"], None).unwrap();
    lists.current();
    let now = lists.lock();
    assert!(!now.directory.as_ref().unwrap().is_busy());
}
