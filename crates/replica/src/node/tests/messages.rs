//! How many messages bring entries to followers, and how long they are.

use super::*;

/// The most bytes of entries in a message: room for several of a test's entries, but not for all.
const MOST: usize = 200;

fn options() -> Options {
    Options {
        append_bytes: MOST as u64,
        ..Options::DEFAULT
    }
}

fn assert_short(stage: &Stage) {
    assert!((1..=MOST).contains(&stage.longest), "{}", stage.longest);
    let applied: Vec<u64> = stage.nodes.values().map(Node::applied).collect();
    assert!(applied.iter().all(|it| *it == applied[0]), "{applied:?}");
}

#[test]
fn writes_of_one_burst_travel_as_one_message_for_each_follower() {
    let mut stage = Stage::new(5);
    let leader = stage.leader();
    let client = stage.open(leader);
    stage.appends = 0;
    for number in 1..=20 {
        stage.put(leader, client, number);
    }
    stage.settle();
    assert_eq!(stage.answers.len(), 20);
    assert_eq!(stage.appends, 4);
}

#[test]
fn a_put_costs_each_follower_one_message_and_one_answer() {
    let mut stage = Stage::new(3);
    let leader = stage.leader();
    let client = stage.open(leader);
    stage.messages = 0;
    stage.put(leader, client, 1);
    stage.settle();
    assert_eq!(stage.answers.len(), 1);
    assert_eq!(stage.messages, 4);
}

#[test]
fn writes_that_come_together_leave_in_messages_of_the_limit() {
    let mut stage = Stage::with(3, options());
    let leader = stage.leader();
    let client = stage.open(leader);
    (1..=40).for_each(|number| stage.put(leader, client, number));
    stage.settle();
    stage.tick(Options::ELECTION_TICKS);
    assert_short(&stage);
}

#[test]
fn a_follower_catches_up_by_messages_of_the_limit() {
    let mut stage = Stage::with(3, options());
    let leader = stage.leader();
    let client = stage.open(leader);
    stage.cut = Some(1 + leader % 3);
    stage.write(leader, client, 1..=40);
    assert_eq!(stage.longest, 0, "these writes came one by one");
    stage.cut = None;
    stage.tick(3 * Options::ELECTION_TICKS);
    assert_short(&stage);
}
