//! A fleet with simulated servers, session by session: servers that are down, that leave the list,
//! and that come back.

mod town;

use dunlin_channel::Reason;
use dunlin_core::{CloseReason, Nanos};
use dunlin_kv::{Error, FleetOptions, WhenDown};
use dunlin_store::Mode;

use town::{Outcome, Town};

#[test]
fn a_get_may_have_65535_keys() {
    let mut town = Town::new(&[], WhenDown::Fail);
    let keys = vec![&b"key"[..]; usize::from(u16::MAX)];
    town.get_many(&keys);
    assert_eq!(town.ends(), [Outcome::Failed(Error::Unavailable)]);
}

#[test]
fn a_server_that_was_never_reached_has_the_mode_of_the_others() {
    let modes = [
        (Mode::Cache, Outcome::Missing),
        (Mode::Store, Outcome::Failed(Error::Unavailable)),
    ];
    for (mode, expected) in modes {
        let mut town = Town::new(&[mode, mode], WhenDown::Miss);
        let key = town.key(1, 0);
        assert_eq!(town.wishes(), [(0, 0), (1, 0)]);
        town.refuse(1, 0);
        town.get(&key);
        assert_eq!(town.ends(), [], "the other server may still tell its mode");
        town.grant(0, 0);
        town.run(5);
        assert_eq!(town.ends(), std::slice::from_ref(&expected), "{mode:?}");
        town.get(&key);
        assert_eq!(town.ends(), [expected], "{mode:?}");
    }
}

#[test]
fn a_get_is_not_a_miss_if_no_server_was_reached() {
    let mut town = Town::new(&[Mode::Cache, Mode::Cache], WhenDown::Miss);
    let key = town.key(1, 0);
    town.get(&key);
    assert_eq!(town.wishes(), [(0, 0), (1, 0)]);
    town.refuse(1, 0);
    // The write does not wait, because its server is down.
    town.set(&key, b"value");
    assert_eq!(town.ends(), [Outcome::Failed(Error::Unavailable)]);
    town.refuse(0, 0);
    town.run(1);
    assert_eq!(town.ends(), [Outcome::Failed(Error::Unavailable)]);
}

#[test]
fn a_partition_is_down_if_its_own_session_is_lost() {
    let mut town = Town::new(&[Mode::Store], WhenDown::Fail);
    let keys = [town.key(0, 0), town.key(0, 1)];
    town.connect_all();
    town.lose(0, 1, CloseReason::PeerFailed);
    town.get(&keys[1]);
    assert_eq!(town.ends(), [Outcome::Failed(Error::Unavailable)]);
    town.get_many(&[&keys[0], &keys[1]]);
    town.run(5);
    assert_eq!(town.ends(), [Outcome::Failed(Error::Unavailable)]);
    town.get(&keys[0]);
    town.run(5);
    assert_eq!(town.ends(), [Outcome::Missing], "the other one is up");
    town.connect_all();
    town.get(&keys[1]);
    town.run(5);
    assert_eq!(town.ends(), [Outcome::Missing]);
}

#[test]
fn operations_that_wait_for_a_partition_end_when_it_is_known_to_be_down() {
    let mut town = Town::new(&[Mode::Store], WhenDown::Fail);
    let key = town.key(0, 1);
    town.wishes();
    town.grant(0, 0);
    town.run(5);
    town.get(&key);
    assert_eq!(town.wishes(), [(0, 1)]);
    assert_eq!(town.ends(), [], "its session may come");
    town.refuse(0, 1);
    assert_eq!(town.ends(), [Outcome::Failed(Error::Unavailable)]);
}

#[test]
fn the_late_end_of_a_session_from_before_a_restart_is_ignored() {
    let mut town = Town::new(&[Mode::Store], WhenDown::Fail);
    let key = town.key(0, 1);
    town.connect_all();
    town.restart(0);
    town.lose(0, 0, CloseReason::PeerFailed);
    town.run(300);
    assert_eq!(town.wishes(), [(0, 0)]);
    town.grant(0, 0);
    town.run(5);
    // The new map has arrived. Only then does the old session with the other partition end.
    town.lose(0, 1, CloseReason::PeerFailed);
    town.get(&key);
    assert_eq!(town.ends(), [], "the new session may come");
    town.connect_all();
    assert_eq!(town.ends(), [Outcome::Missing]);
}

#[test]
fn a_late_session_with_a_server_that_has_left_the_list_is_ended() {
    let mut town = Town::new(&[Mode::Store; 3], WhenDown::Fail);
    assert_eq!(town.wishes(), [(0, 0), (1, 0), (2, 0)]);
    for list in [&[0, 1][..], &[0], &[0, 2]] {
        town.list(list);
        town.run(1);
    }
    let late = town.asked(1, 0);
    assert_eq!(
        town.wishes(),
        [(2, 0)],
        "server 2 has the place of server 1, which has left"
    );
    let session = town.make(1, 0);
    town.connecting(late, session);
    town.run(5);
    assert!(town.has_ended(session), "no server has it");
    // The fleet accepts a session with the server that has stayed.
    town.grant(0, 0);
    town.run(5);
    let key = town.key(0, 0);
    town.get(&key);
    town.run(5);
    assert_eq!(town.ends(), [Outcome::Missing]);
}

#[test]
fn the_last_error_of_a_server_comes_from_its_session() {
    let mut town = Town::new(&[Mode::Store, Mode::Store], WhenDown::Fail);
    assert_eq!(town.wishes(), [(0, 0), (1, 0)]);
    town.refuse(1, 0);
    town.grant(0, 0);
    town.run(5);
    town.lose(0, 0, CloseReason::Reset);
    let errors = town.errors();
    let closed = |reason| Some(Reason::Closed(reason));
    assert_eq!(
        errors,
        [closed(CloseReason::Reset), closed(CloseReason::Refused)]
    );
}

/// The documentation of the service warns of this.
#[test]
fn a_server_that_comes_back_to_the_list_has_the_values_that_it_had() {
    let mut town = Town::new(&[Mode::Store, Mode::Store], WhenDown::Fail);
    let key = town.key(1, 0);
    town.connect_all();
    town.set(&key, b"old");
    town.run(5);
    town.list(&[0]);
    town.run(1);
    town.set(&key, b"new");
    town.get(&key);
    town.run(5);
    let written = [Outcome::Written, Outcome::Written];
    assert_eq!(
        town.ends()[..],
        [&written[..], &[Outcome::found(b"new")]].concat()
    );
    town.list(&[0, 1]);
    town.connect_all();
    town.get(&key);
    town.run(5);
    assert_eq!(town.ends(), [Outcome::found(b"old")]);
}

#[test]
fn partitions_with_sessions_serve_while_the_first_endpoint_is_down() {
    let mut town = Town::new(&[Mode::Store], WhenDown::Fail);
    let keys = [town.key(0, 0), town.key(0, 1)];
    town.connect_all();
    town.lose(0, 0, CloseReason::PeerFailed);
    town.get(&keys[1]);
    town.run(5);
    assert_eq!(town.ends(), [Outcome::Missing], "its own session is open");
    town.get(&keys[0]);
    assert_eq!(town.ends(), [Outcome::Failed(Error::Unavailable)]);
    town.lose(0, 1, CloseReason::PeerFailed);
    town.get(&keys[1]);
    assert_eq!(town.ends(), [Outcome::Failed(Error::Unavailable)]);
    town.connect_all();
    for key in &keys {
        town.get(key);
    }
    town.run(5);
    assert_eq!(town.ends(), [Outcome::Missing, Outcome::Missing]);
}

#[test]
fn keys_of_a_partition_that_is_down_are_misses_and_the_others_are_found() {
    let mut town = Town::new(&[Mode::Cache, Mode::Cache], WhenDown::Miss);
    let keys = [town.key(0, 0), town.key(0, 1), town.key(1, 0)];
    town.connect_all();
    for key in &keys {
        town.set(key, b"value");
    }
    town.run(5);
    assert_eq!(town.ends(), vec![Outcome::Written; 3]);
    let asked: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
    town.lose(0, 1, CloseReason::PeerFailed);
    town.get_many(&asked);
    town.run(5);
    assert_eq!(town.ends(), [Outcome::Many(vec![true, false, true])]);
    // A get that is in flight when the partition goes down.
    town.connect_all();
    town.get_many(&asked);
    town.lose(0, 0, CloseReason::PeerFailed);
    town.run(200);
    assert_eq!(town.ends(), [Outcome::Many(vec![false, true, true])]);
}

#[test]
fn a_get_of_many_keys_whose_deadline_has_passed_fails() {
    let mut town = Town::new(&[Mode::Store], WhenDown::Fail);
    let keys = [town.key(0, 0), town.key(0, 1)];
    town.connect_all();
    town.get_many_until(&[&keys[0], &keys[1]], Some(Nanos(1)));
    assert_eq!(town.ends(), [Outcome::Failed(Error::Unavailable)]);
}

/// Each crash loses more reads than the repeat budget gains until the next crash.
#[test]
fn reads_wait_for_a_server_that_has_crashed_however_many_were_repeated_before() {
    let mut town = Town::new(&[Mode::Store], WhenDown::Wait);
    let keys = [town.key(0, 0), town.key(0, 1)];
    town.connect_all();
    for life in 0..30 {
        town.crash(0);
        (0..8).for_each(|_| keys.iter().for_each(|key| town.get(key)));
        town.run(1);
        town.lose(0, 0, CloseReason::PeerFailed);
        town.lose(0, 1, CloseReason::PeerFailed);
        assert_eq!(town.ends(), [], "life {life}");
        town.boot(0);
        let mut ends = Vec::new();
        for _ in 0..10 {
            town.connect_all();
            ends.extend(town.ends());
        }
        assert_eq!(ends, vec![Outcome::Missing; 16], "life {life}");
    }
}

/// The answers take a round trip of the simulated network, so servers that are asked one after the
/// other would get their requests that much later.
#[test]
fn a_get_of_many_keys_asks_all_servers_at_the_same_time() {
    const SERVERS: usize = 5;
    let mut town = Town::new(&[Mode::Store; SERVERS], WhenDown::Fail);
    let keys: Vec<Vec<u8>> = (0..SERVERS)
        .flat_map(|server| [town.key(server, 0), town.key(server, 1)])
        .collect();
    town.connect_all();
    let asked: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
    let begin = town.now();
    town.get_many(&asked);
    let (received, end) = town.run_to_end(SERVERS);
    let received: Vec<Nanos> = received.into_iter().map(Option::unwrap).collect();
    let (first, last) = (received.iter().min(), received.iter().max());
    let (first, last) = (*first.unwrap(), *last.unwrap());
    let whole = end.since(begin);
    assert!(
        last.since(first).0 * 4 < whole.0,
        "requests at {received:?}, begun at {begin:?}, ended at {end:?}"
    );
    assert_eq!(town.ends(), [Outcome::Many(vec![false; 2 * SERVERS])]);
}

#[test]
fn a_look_up_changes_the_list_and_one_that_fails_keeps_it() {
    let options = FleetOptions {
        lookup: Some(Nanos::from_secs(30)),
        ..FleetOptions::DEFAULT
    };
    let mut town = Town::with(&[Mode::Store; 3], options);
    let keys: Vec<Vec<u8>> = (0..3).map(|server| town.key(server, 0)).collect();
    town.connect_all();
    for key in &keys {
        town.set(key, b"value");
    }
    town.run(5);
    assert_eq!(town.ends(), vec![Outcome::Written; 3]);
    let before = town.looked_up().len();
    town.answer_look_up(None);
    town.answer_look_up(Some(&[0, 1]));
    town.answer_look_up(Some(&[0, 1, 2]));
    let mut after_look_ups = |count: usize| {
        while town.looked_up().len() < before + count {
            town.run(100);
        }
        town.connect_all();
        let ends = keys.iter().flat_map(|key| {
            town.get(key);
            town.run(5);
            town.ends()
        });
        ends.collect::<Vec<_>>()
    };
    let found = Outcome::found(b"value");
    // The name is not found: the list stays.
    assert_eq!(after_look_ups(1), vec![found.clone(); 3]);
    // The third server has left the list, and its key has another owner.
    let missing = vec![found.clone(), found.clone(), Outcome::Missing];
    assert_eq!(after_look_ups(2), missing);
    // It comes back, with its old items.
    assert_eq!(after_look_ups(3), vec![found; 3]);
    let times = &town.looked_up()[before..];
    assert_eq!(times[2].since(times[1]), Nanos::from_secs(30));
}
