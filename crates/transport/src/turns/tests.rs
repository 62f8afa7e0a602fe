//! Tests of `turns`: how often the socket is polled in each state.

use super::*;

/// The number of bursts before the next poll of the socket, which finds nothing. `busy`: each burst
/// finds packets in shared memory.
fn interval(turns: &mut Turns, busy: bool) -> u32 {
    for burst in 0..100_000 {
        if turns.is_due() {
            turns.on_look(false);
            return burst;
        }
        if busy {
            turns.on_busy()
        } else {
            turns.on_idle()
        }
    }
    u32::MAX
}

fn with_peers(shm_used: bool, udp_used: bool) -> Turns {
    let mut turns = Turns::new();
    turns.on_peers(shm_used, udp_used);
    turns
}

#[test]
fn a_socket_that_no_peer_knows_is_not_polled() {
    for mut turns in [
        Turns::new(),
        with_peers(true, false),
        with_peers(false, false),
    ] {
        assert_eq!(interval(&mut turns, true), u32::MAX);
        assert_eq!(interval(&mut turns, false), u32::MAX);
    }
}

#[test]
fn the_32nd_busy_burst_is_followed_by_a_look() {
    let mut turns = with_peers(true, true);
    for _ in 0..3 {
        assert_eq!(interval(&mut turns, true), 32);
    }
}

#[test]
fn an_idle_burst_counts_as_a_32nd_of_a_busy_one() {
    let mut turns = with_peers(true, true);
    assert_eq!(interval(&mut turns, false), 1024);
    for _ in 0..31 {
        turns.on_busy();
    }
    assert_eq!(interval(&mut turns, false), 32);
}

#[test]
fn without_peers_on_shared_memory_every_burst_looks() {
    let mut turns = with_peers(false, true);
    for _ in 0..1000 {
        assert_eq!(interval(&mut turns, false), 1);
    }
}

#[test]
fn recent_datagrams_make_every_idle_burst_look_for_a_while() {
    let mut turns = with_peers(true, true);
    turns.on_doubt();
    assert!(turns.is_due());
    turns.on_look(true);
    for _ in 0..RECENT {
        assert_eq!(interval(&mut turns, false), 1);
    }
    assert_eq!(interval(&mut turns, false), 1024);
    turns.on_look(true);
    assert_eq!(
        interval(&mut turns, true),
        32,
        "busy bursts are not slowed down"
    );
}

#[test]
fn doubt_makes_only_the_next_burst_look() {
    let mut turns = Turns::new();
    turns.on_doubt();
    assert_eq!(interval(&mut turns, false), 0);
    assert_eq!(interval(&mut turns, false), u32::MAX);
}

#[test]
fn a_socket_is_polled_no_more_once_its_last_peer_is_gone() {
    let mut turns = with_peers(true, true);
    turns.on_look(true);
    turns.on_peers(true, false);
    assert_eq!(interval(&mut turns, false), u32::MAX);
    turns.on_peers(true, true);
    assert_eq!(interval(&mut turns, false), 1, "datagrams are still recent");
}

#[test]
fn cheap_looks_come_every_other_burst_and_only_for_peers() {
    let mut turns = Turns::with_cheap_looks();
    assert_eq!(interval(&mut turns, true), u32::MAX);
    turns.on_peers(true, true);
    // A poll that finds packets ends its burst, so the next burst is for shared memory.
    for busy in [true, false, true] {
        turns.on_look(true);
        assert_eq!(interval(&mut turns, busy), 1);
    }
    turns.on_peers(true, false);
    turns.on_look(false);
    assert_eq!(interval(&mut turns, false), u32::MAX);
}
