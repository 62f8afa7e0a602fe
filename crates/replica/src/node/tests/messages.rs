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

/// For each follower, the number of entries that it has and the leader does not know of.
fn lags(stage: &Stage, leader: u64) -> Vec<u64> {
    let node = &stage.nodes[&leader];
    let followers = stage.nodes.keys().filter(|id| **id != leader);
    let matched = followers.map(|id| node.matched(*id).unwrap());
    let mut lags: Vec<u64> = matched.map(|it| node.log().last() - it).collect();
    lags.sort_unstable();
    lags
}

/// Three nodes, their leader, and a client; Raft has all answers of followers.
fn answered() -> (Stage, u64, u64) {
    let mut stage = Stage::new(3);
    let leader = stage.leader();
    let client = stage.open(leader);
    stage.tick(1);
    assert_eq!(lags(&stage, leader), [0, 0]);
    (stage, leader, client)
}

#[test]
fn an_answer_that_commits_nothing_waits_for_a_tick() {
    let (mut stage, leader, client) = answered();
    stage.write(leader, client, 1..=2);
    assert_eq!(lags(&stage, leader), [0, 2]);
    stage.tick(1);
    assert_eq!(lags(&stage, leader), [0, 0]);
}

#[test]
fn only_few_answers_of_a_follower_wait() {
    let (mut stage, leader, client) = answered();
    let most = Options::DEFAULT.appends as u64 / 2;
    stage.write(leader, client, 1..=most - 1);
    assert_eq!(lags(&stage, leader), [0, most - 1]);
    stage.write(leader, client, most..=most);
    assert_eq!(lags(&stage, leader), [0, 0]);
    stage.write(leader, client, most + 1..=most + 2);
    assert_eq!(lags(&stage, leader), [0, 2]);
}

#[test]
fn an_answer_that_commits_something_never_waits() {
    let (mut stage, leader, client) = answered();
    for cut in [1 + leader % 3, 1 + (leader + 1) % 3] {
        stage.cut = Some(cut);
        let before = stage.answers.len();
        stage.write(leader, client, 1 + cut * 10..=3 + cut * 10);
        assert_eq!(stage.answers.len(), before + 3);
        stage.cut = None;
        stage.tick(Options::ELECTION_TICKS);
    }
}

#[test]
fn an_answer_that_makes_room_for_more_entries_never_waits() {
    let mut stage = Stage::with(3, options());
    let leader = stage.leader();
    let client = stage.open(leader);
    stage.tick(1);
    // The burst begins with two messages, which have no room for all of these writes.
    (1..=10).for_each(|number| stage.put(leader, client, number));
    stage.settle();
    let last = stage.nodes[&leader].log().last();
    assert!(stage.nodes.values().all(|node| node.log().last() == last));
}

#[test]
fn a_read_brings_no_append_to_a_follower_whose_answer_waits() {
    let (mut stage, leader, client) = answered();
    stage.write(leader, client, 1..=1);
    assert_eq!(lags(&stage, leader), [0, 1]);
    stage.messages = 0;
    let node = stage.nodes.get_mut(&leader).unwrap();
    node.on_get(b"key".to_vec(), 2);
    stage.settle();
    assert_eq!(stage.answers.len(), 2);
    // A heartbeat for each follower, and its answer.
    assert_eq!(stage.messages, 4);
    assert_eq!(lags(&stage, leader), [0, 0]);
}

#[test]
fn the_lead_passes_to_a_follower_whose_answer_waits() {
    let (mut stage, leader, client) = answered();
    stage.write(leader, client, 1..=1);
    let matched = |stage: &Stage, id: u64| stage.nodes[&leader].matched(id);
    let last = stage.nodes[&leader].log().last();
    let others = [1 + leader % 3, 1 + (leader + 1) % 3];
    let behind = others
        .into_iter()
        .find(|id| matched(&stage, *id) < Some(last));
    let behind = behind.unwrap();
    stage.nodes.get_mut(&leader).unwrap().hand_over(behind);
    stage.settle();
    assert!(stage.nodes[&behind].leads());
}

#[test]
fn only_an_append_of_the_present_leader_is_taken_by_reference() {
    let mut stage = Stage::new(3);
    let leader = stage.leader();
    let [follower, other] = [1 + leader % 3, 1 + (leader + 1) % 3];
    let node = stage.nodes.get_mut(&follower).unwrap();
    let (term, last) = (node.term(), node.log().last());
    let append = |from, term| Message {
        msg_type: MessageType::MsgAppend,
        from,
        to: follower,
        term,
        log_term: term,
        index: last,
        commit: last,
        ..Message::default()
    };
    let heartbeat = Message {
        msg_type: MessageType::MsgHeartbeat,
        ..append(leader, term)
    };
    let others = [
        append(leader, term - 1),
        append(leader, term + 1),
        append(other, term),
        heartbeat,
    ];
    assert!(others.iter().all(|it| !node.takes_append(it)));
    assert!(node.takes_append(&append(leader, term)));
    let leads = stage.nodes.get_mut(&leader).unwrap();
    assert!(!leads.takes_append(&append(leader, term)));
}

#[test]
fn a_leader_takes_no_write_while_it_passes_the_lead_on() {
    let (mut stage, leader, client) = answered();
    let to = 1 + leader % 3;
    stage.cut = Some(to);
    stage.nodes.get_mut(&leader).unwrap().hand_over(to);
    stage.put(leader, client, 1);
    stage.step();
    assert_eq!(stage.answers, [(leader, 1, Answer::Busy)]);
}
