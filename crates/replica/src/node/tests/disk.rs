//! Nodes whose disks are busy: which work goes on, and which waits.

use super::*;

impl Stage {
    /// Three nodes with disks, and a client of their leader.
    fn on_disks() -> (Self, u64, u64) {
        let mut stage = Self::new(3);
        let nodes = std::mem::take(&mut stage.nodes).into_iter();
        stage.nodes = nodes.map(|(id, node)| (id, node.with_disk())).collect();
        let leader = stage.leader();
        let client = stage.open(leader);
        (stage, leader, client)
    }

    fn get(&mut self, leader: u64, asker: u32) {
        let node = self.nodes.get_mut(&leader).unwrap();
        node.on_get(b"key".to_vec(), asker);
    }
}

#[test]
fn a_leader_sends_entries_while_its_own_disk_is_busy_and_answers_after_it() {
    let (mut stage, leader, client) = Stage::on_disks();
    stage.busy = vec![leader];
    stage.put(leader, client, 1);
    stage.settle();
    let last = stage.nodes[&leader].log().last();
    assert_eq!(last, stage.opened + 1);
    assert!(stage.nodes.values().all(|node| node.log().last() == last));
    assert_eq!(
        stage.nodes[&leader].committed(),
        last,
        "the others are a majority"
    );
    assert_eq!(stage.answers, []);
    stage.busy.clear();
    stage.settle();
    assert_eq!(stage.answers, [(leader, 1, Answer::Written(last))]);
}

#[test]
fn reads_and_heartbeats_go_on_while_all_disks_are_busy() {
    let (mut stage, leader, client) = Stage::on_disks();
    stage.put(leader, client, 1);
    stage.settle();
    stage.answers.clear();
    let term = stage.nodes[&leader].term();
    stage.busy = vec![1, 2, 3];
    stage.put(leader, client, 2);
    stage.settle();
    stage.get(leader, 9);
    stage.settle();
    let found = Answer::Found(stage.opened + 1, b"value".to_vec());
    assert_eq!(stage.answers, [(leader, 9, found)]);
    stage.tick(5 * Options::ELECTION_TICKS);
    assert_eq!(
        (stage.leader(), stage.nodes[&leader].term()),
        (leader, term)
    );
    assert_eq!(stage.nodes[&leader].committed(), stage.opened + 1);
    stage.answers.clear();
    stage.busy.clear();
    stage.settle();
    assert_eq!(
        stage.answers,
        [(leader, 2, Answer::Written(stage.opened + 2))]
    );
}

#[test]
fn no_vote_leaves_before_it_is_saved() {
    let (mut stage, old, _) = Stage::on_disks();
    stage.cut = Some(old);
    let voter = 1 + old % 3;
    stage.busy = vec![voter];
    stage.tick(5 * Options::ELECTION_TICKS);
    let leads = stage
        .nodes
        .iter()
        .any(|(id, node)| *id != old && node.leads());
    assert!(!leads, "the vote of {voter} is not on its disk");
    stage.busy.clear();
    assert_ne!(stage.leader(), old);
}

#[test]
fn a_full_disk_refuses_writes_and_answers_reads() {
    let (mut stage, leader, client) = Stage::on_disks();
    stage.put(leader, client, 1);
    stage.settle();
    stage.answers.clear();
    let progress = |is_full| Saved {
        is_full,
        ..Saved::default()
    };
    stage
        .nodes
        .get_mut(&leader)
        .unwrap()
        .on_saved(progress(true));
    stage.put(leader, client, 2);
    stage.get(leader, 9);
    stage.settle();
    let found = Answer::Found(stage.opened + 1, b"value".to_vec());
    assert_eq!(
        stage.answers,
        [(leader, 2, Answer::Full), (leader, 9, found)]
    );
    stage
        .nodes
        .get_mut(&leader)
        .unwrap()
        .on_saved(progress(false));
    stage.answers.clear();
    stage.put(leader, client, 2);
    stage.settle();
    assert_eq!(
        stage.answers,
        [(leader, 2, Answer::Written(stage.opened + 2))]
    );
}

#[test]
fn a_candidate_waits_for_votes_that_take_longer_than_time_outs() {
    const SYNC: usize = 3 * Options::ELECTION_TICKS;
    let (mut stage, old, _) = Stage::on_disks();
    let term = stage.nodes[&old].term();
    stage.cut = Some(old);
    // Each disk write takes longer than any timeout.
    for _ in 0..4 {
        stage.busy = vec![1, 2, 3];
        stage.tick(SYNC);
        stage.busy.clear();
        stage.settle();
    }
    assert_ne!(stage.leader(), old);
    let terms = stage.nodes.values().map(Node::term);
    assert_eq!(terms.max(), Some(term + 1), "the first candidate has won");
}

#[test]
fn the_only_voter_asks_for_no_votes_before_it_has_written_its_log() {
    let mut stage = Stage::new(1);
    let node = stage.nodes.remove(&1).unwrap();
    stage.nodes.insert(1, node.with_disk());
    let leader = stage.leader();
    stage.open(leader);
    let (term, last) = (stage.nodes[&1].term(), stage.nodes[&1].log().last());
    let message = |kind| Message {
        msg_type: kind,
        from: 9,
        to: 1,
        term: term + 1,
        log_term: term,
        index: last,
        ..Message::default()
    };
    // Another process claims to lead a later term, and then sends an entry.
    let take = |stage: &mut Stage, message| {
        stage.nodes.get_mut(&1).unwrap().on_message(message);
        stage.settle();
    };
    take(&mut stage, message(MessageType::MsgHeartbeat));
    stage.busy = vec![1];
    let entry = Entry {
        term: term + 1,
        index: last + 1,
        ..Entry::default()
    };
    take(
        &mut stage,
        Message {
            entries: vec![entry].into(),
            ..message(MessageType::MsgAppend)
        },
    );
    stage.tick(5 * Options::ELECTION_TICKS);
    assert_eq!(stage.nodes[&1].log().last(), last + 1);
    assert!(!stage.nodes[&1].leads(), "its log is not on its disk");
    stage.busy.clear();
    stage.settle();
    assert_eq!(stage.leader(), 1);
}
