//! Entries that a follower applies after its answer.

use super::*;

#[test]
fn a_follower_answers_an_append_before_it_applies_the_committed_entries() {
    let mut stage = Stage::new(3);
    let leader = stage.leader();
    let client = stage.open(leader);
    stage.put(leader, client, 1);
    stage.settle();
    stage.answers.clear();
    let first = stage.nodes[&leader].log().last();
    stage.put(leader, client, 2);
    // The leader sends the append, and the followers answer it.
    stage.step();
    stage.step();
    let followers = |stage: &Stage| -> Vec<(u64, u64, bool)> {
        let nodes = stage.nodes.values().filter(|node| !node.leads());
        nodes
            .map(|node| (node.committed(), node.applied(), node.has_more()))
            .collect()
    };
    assert_eq!(followers(&stage), [(first, first - 1, true); 2]);
    stage.step();
    assert_eq!(stage.answers, [(leader, 2, Answer::Written(first + 1))]);
    assert_eq!(followers(&stage), [(first, first, false); 2]);
}

#[test]
fn entries_that_are_left_are_applied_between_two_runs() {
    let mut stage = Stage::new(3);
    let leader = stage.leader();
    let client = stage.open(leader);
    stage.put(leader, client, 1);
    stage.settle();
    let first = stage.nodes[&leader].log().last();
    stage.put(leader, client, 2);
    stage.step();
    stage.step();
    let follower = stage.nodes.values_mut().find(|node| !node.leads()).unwrap();
    assert!(follower.has_more() && !follower.has_other_work());
    follower.apply_left(&mut Output::default());
    assert_eq!(follower.applied(), first);
    assert!(!follower.has_more());
}
