//! Turns, room and the ends of sessions, with numbers for sessions.

use dunlin_channel::{Action, Config, Machine};

use super::*;

const NOW: Nanos = Nanos::ZERO;

/// A link of channel `channel`.
fn member(channel: u32) -> Member {
    let mut machine = Machine::new(Config::DEFAULT, 1, NOW);
    machine.on_addresses(["host:1"], NOW);
    match machine.poll(NOW) {
        Some(Action::Connect { link, .. }) => (channel, link),
        other => panic!("{other:?}"),
    }
}

/// A trunk with one open session of this window, and this many members.
fn trunk(window: u32, members: u32) -> Trunk<u32> {
    let mut trunk = Trunk::new(("host:1".into(), 0), 0);
    assert!(trunk.facts().is_none() && !trunk.takes(member(0)));
    (0..members).for_each(|channel| trunk.on_join(member(channel)));
    assert!(trunk.on_open(0, window), "it is the first");
    trunk
}

/// Lets a member begin attempts until none is taken; returns their number.
fn fill(trunk: &mut Trunk<u32>, by: Member) -> u32 {
    let mut begun = 0;
    while trunk.takes(by) {
        assert_eq!(trunk.on_attempt(by), Some(0));
        begun += 1;
    }
    begun
}

#[test]
fn a_member_alone_has_the_whole_room_and_one_of_several_leaves_an_eighth() {
    assert_eq!(fill(&mut trunk(8, 1), member(0)), 8);
    let mut shared = trunk(8, 2);
    assert_eq!(fill(&mut shared, member(0)), 7);
    assert_eq!(fill(&mut shared, member(1)), 1);
    assert_eq!(fill(&mut trunk(1, 2), member(0)), 1);
}

/// A channel whose calls always wait gets as many turns as each other channel.
#[test]
fn a_greedy_member_has_one_turn_of_each_round() {
    let (mut trunk, count) = (trunk(4, 5), 5);
    let greedy = member(0);
    assert_eq!(fill(&mut trunk, greedy), 4);
    (0..count).for_each(|channel| trunk.on_wait(member(channel)));
    let mut turns = Vec::new();
    let mut under_way = VecDeque::from([greedy; 4]);
    for _ in 0..4 * count {
        trunk.on_attempt_end(under_way.pop_front().unwrap(), 0);
        let next = trunk.next_turn().unwrap();
        assert_eq!(trunk.on_attempt(next), Some(0));
        under_way.push_back(next);
        turns.push(next.0);
        // Each of them always has another call.
        trunk.on_wait(next);
    }
    for round in turns.chunks(count as usize) {
        let mut round = round.to_vec();
        round.sort_unstable();
        assert_eq!(round, [0, 1, 2, 3, 4]);
    }
}

#[test]
fn a_member_at_its_limit_holds_up_no_other() {
    let mut trunk = trunk(8, 2);
    let (greedy, other) = (member(0), member(1));
    fill(&mut trunk, greedy);
    trunk.on_wait(greedy);
    assert_eq!(trunk.next_turn(), None);
    assert!(trunk.takes(other), "the last slot is for others");
    trunk.on_wait(other);
    assert_eq!(trunk.next_turn(), Some(other));
    trunk.on_attempt_end(greedy, 0);
    assert_eq!(trunk.next_turn(), Some(greedy));
    assert_eq!(trunk.next_turn(), None, "it waits no longer");
}

#[test]
fn a_trunk_without_room_opens_sessions_one_after_the_other() {
    let mut trunk = trunk(2, 1);
    let only = member(0);
    fill(&mut trunk, only);
    assert!(!trunk.must_grow(NOW), "it does not wait");
    for session in 1..8 {
        trunk.on_wait(only);
        assert!(trunk.must_grow(NOW));
        trunk.on_line(session);
        assert!(!trunk.must_grow(NOW), "one is on its way");
        assert!(!trunk.on_open(session, 2), "it is not the first");
        assert!(!trunk.must_grow(NOW), "it has a turn");
        assert_eq!(trunk.next_turn(), Some(only));
        assert_eq!(trunk.on_attempt(only), Some(session));
        assert_eq!(trunk.on_attempt(only), Some(session));
    }
    trunk.on_wait(only);
    assert!(!trunk.must_grow(NOW), "there are eight");
}

/// Each of these members always has another call, and none of the calls ends.
#[test]
fn every_member_gets_the_room_of_eight_sessions_and_none_gets_more() {
    let (mut trunk, count) = (trunk(8, 3), 3);
    (0..count).for_each(|channel| trunk.on_wait(member(channel)));
    let mut issued = [0; 3];
    let mut sessions = 1;
    loop {
        while let Some(next) = trunk.next_turn() {
            trunk.on_attempt(next).unwrap();
            issued[next.0 as usize] += 1;
            trunk.on_wait(next);
        }
        if !trunk.must_grow(NOW) {
            break;
        }
        trunk.on_line(sessions);
        trunk.on_open(sessions, 8);
        sessions += 1;
    }
    // Seven eighths of the room.
    assert_eq!((issued, sessions), ([56; 3], 21));
}

#[test]
fn a_session_that_cannot_be_added_is_tried_again_later() {
    let mut trunk = trunk(1, 1);
    fill(&mut trunk, member(0));
    trunk.on_wait(member(0));
    trunk.on_line(1);
    assert!(!trunk.on_closed(1, NOW), "the members keep the first");
    assert!(!trunk.must_grow(NOW));
    assert_eq!(trunk.grow_from(), NOW + GROW_AGAIN);
    assert!(trunk.must_grow(trunk.grow_from()));
}

#[test]
fn after_a_loss_the_other_sessions_end_with_their_attempts() {
    let mut trunk = trunk(1, 1);
    let only = member(0);
    for session in [1, 2] {
        trunk.on_line(session);
        trunk.on_open(session, 1);
    }
    assert_eq!(trunk.on_attempt(only), Some(0));
    assert_eq!(trunk.on_attempt(only), Some(1));
    assert!(trunk.on_closed(0, NOW));
    assert_eq!(trunk.take_members(), [only]);
    assert!(!trunk.takes(only) && trunk.next_turn().is_none());
    assert_eq!(trunk.take_useless(), Some(2));
    assert_eq!(trunk.take_useless(), None, "the other one has an attempt");
    assert!(!trunk.is_over());
    trunk.on_attempt_end(only, 1);
    assert_eq!(trunk.take_useless(), Some(1));
    assert!(trunk.is_over());
}

#[test]
fn the_last_member_ends_all_sessions_and_an_earlier_one_none() {
    let mut trunk = trunk(4, 2);
    trunk.on_attempt(member(0));
    trunk.on_wait(member(0));
    trunk.on_leave(member(0));
    assert_eq!(trunk.take_useless(), None);
    assert_eq!(trunk.next_turn(), None);
    trunk.on_leave(member(1));
    assert_eq!(trunk.take_useless(), Some(0));
    assert!(trunk.is_over());
}
