//! Turns, room and the ends of sessions, with numbers for sessions.

use std::sync::LazyLock;

use super::*;
use crate::{Action, Config, Machine};

const NOW: Nanos = Nanos::ZERO;

/// The link of a channel that has one.
static LINK: LazyLock<LinkId> = LazyLock::new(|| {
    let mut machine = Machine::new(Config::DEFAULT, 1, NOW);
    machine.on_addresses(["host:1"], NOW);
    match machine.poll(NOW) {
        Some(Action::Connect { link, .. }) => link,
        other => panic!("{other:?}"),
    }
});

/// A link of channel `channel`.
fn member(channel: u32) -> Member {
    (channel, *LINK)
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
fn the_only_member_takes_the_whole_room_and_one_of_several_leaves_an_eighth() {
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
fn the_sessions_end_when_the_last_member_leaves_and_not_before() {
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

/// A server that takes one step for each call, in the order in which they come, and channels whose
/// calls go there over a trunk. Times are steps.
struct Queue {
    trunk: Trunk<u32>,
    members: Vec<Member>,
    /// The sessions that the endpoint has room for.
    sessions: u32,
    opened: u32,
    /// Calls at the server: the channel, the time at which the call was made, and its session.
    at_server: VecDeque<(usize, u64, u32)>,
    /// Calls of each channel that wait for a session.
    waiting: Vec<VecDeque<u64>>,
    now: u64,
}

impl Queue {
    fn new(channels: u32, sessions: u32) -> Self {
        Self {
            trunk: trunk(8, channels),
            members: (0..channels).map(member).collect(),
            sessions,
            opened: 1,
            at_server: VecDeque::new(),
            waiting: vec![VecDeque::new(); channels as usize],
            now: 0,
        }
    }

    fn call(&mut self, channel: usize) {
        self.waiting[channel].push_back(self.now);
        let member = self.members[channel];
        match self.waiting[channel].len() == 1 && self.trunk.takes(member) {
            true => self.send(channel),
            false => self.trunk.on_wait(member),
        }
        if self.opened < self.sessions && self.trunk.must_grow(NOW) {
            self.trunk.on_line(self.opened);
            self.trunk.on_open(self.opened, 8);
            self.opened += 1;
        }
        while let Some(next) = self.trunk.next_turn() {
            let channel = next.0 as usize;
            self.send(channel);
            if !self.waiting[channel].is_empty() {
                self.trunk.on_wait(next);
            }
        }
    }

    fn send(&mut self, channel: usize) {
        let session = self.trunk.on_attempt(self.members[channel]).unwrap();
        let begin = self.waiting[channel].pop_front().unwrap();
        self.at_server.push_back((channel, begin, session));
    }

    /// The server answers a call, and its channel makes the next one. Returns the channel, and the
    /// time that the call took.
    fn answer(&mut self) -> (usize, u64) {
        self.now += 1;
        let (channel, begin, session) = self.at_server.pop_front().unwrap();
        self.trunk.on_attempt_end(self.members[channel], session);
        let took = self.now - begin;
        self.call(channel);
        (channel, took)
    }
}

/// The time that 99 of 100 calls of channels 1 to 999 take at most, each with one call at a time,
/// while channel 0 has `greedy` calls.
fn p99(greedy: usize, sessions: u32) -> u64 {
    let mut queue = Queue::new(1000, sessions);
    (0..greedy).for_each(|_| queue.call(0));
    (1..1000).for_each(|channel| queue.call(channel));
    let answers = (0..10_000).map(|_| queue.answer());
    let of_others = answers.filter(|(channel, _)| *channel > 0);
    let mut times: Vec<_> = of_others.map(|(_, took)| took).collect();
    times.sort_unstable();
    times[times.len() * 99 / 100]
}

/// Channels promise only that the calls of the others take at most three times as long. Without
/// limit, there are sessions for all channels; with eight sessions, channels take turns.
#[test]
fn a_greedy_channel_among_1000_delays_the_calls_of_the_others_by_a_tenth_at_most() {
    for sessions in [1, 8, u32::MAX] {
        let (alone, beside) = (p99(0, sessions), p99(4000, sessions));
        println!("{sessions} sessions: {alone} steps alone, {beside} with a greedy channel");
        assert!(10 * beside <= 11 * alone, "{alone} alone, {beside}");
    }
}
