//! Nodes that join and leave.

use raft::eraftpb::ConfState;

use super::*;

impl Stage {
    /// Starts a node that knows the members and has no log.
    fn start(&mut self, id: u64, leader: u64) -> Member {
        let member = Member {
            id,
            address: format!("node-{id}"),
        };
        let roster = self.nodes[&leader].roster().for_joining(member.clone());
        let node = Node::new(id, Image::of(roster), Options::DEFAULT);
        self.nodes.insert(id, node);
        member
    }

    fn voters(&self, id: u64) -> Vec<u64> {
        let roster = self.nodes[&id].roster();
        assert!(!roster.is_joint(), "{roster:?}");
        let voters = roster
            .iter()
            .filter(|it| roster.part(it.id).unwrap().is_voter);
        voters.map(|it| it.id).collect()
    }

    fn join(&mut self, id: u64, leader: u64) {
        let member = self.start(id, leader);
        self.nodes.get_mut(&leader).unwrap().on_join(member);
        self.tick(Options::ELECTION_TICKS);
    }
}

#[test]
fn a_node_joins_gets_the_log_and_votes() {
    let mut stage = Stage::new(3);
    let leader = stage.leader();
    let client = stage.open(leader);
    stage.put(leader, client, 1);
    stage.settle();
    stage.join(9, leader);
    assert!(
        stage
            .nodes
            .keys()
            .all(|id| stage.voters(*id) == [1, 2, 3, 9])
    );
    assert_eq!(stage.nodes[&9].applied(), stage.nodes[&leader].applied());
    assert_eq!(stage.nodes[&9].roster().get(9).unwrap().address, "node-9");
    // Two of four nodes are not a majority.
    let others: Vec<u64> = stage
        .nodes
        .keys()
        .copied()
        .filter(|id| *id != leader)
        .collect();
    stage.answers.clear();
    for id in &others[..2] {
        stage.nodes.remove(id);
    }
    stage.put(leader, client, 2);
    stage.step();
    assert_eq!(stage.answers, []);
}

#[test]
fn members_leave_even_if_a_later_leader_has_no_order() {
    let mut stage = Stage::new(5);
    let leader = stage.leader();
    let client = stage.open(leader);
    let left: Vec<u64> = (1..=5).filter(|id| *id != leader).take(2).collect();
    for id in &left {
        stage.nodes.get_mut(&leader).unwrap().on_leave(*id);
    }
    stage.tick(2);
    let stay: Vec<u64> = (1..=5).filter(|id| !left.contains(id)).collect();
    assert_eq!(stage.voters(leader), stay);
    stage.put(leader, client, 1);
    stage.cut = Some(left[0]);
    stage.settle();
    assert!(matches!(stage.answers[..], [(_, 1, Answer::Written(_))]));
}

#[test]
fn the_last_voter_does_not_leave() {
    let mut stage = Stage::new(1);
    let leader = stage.leader();
    stage.nodes.get_mut(&leader).unwrap().on_leave(leader);
    stage.tick(Options::ELECTION_TICKS);
    assert_eq!(stage.voters(leader), [leader]);
}

/// Whether a leader commits an entry during a change in which two members replace two others, when
/// it has lost the old ones but has a majority of the new ones.
fn commits_without_old_members(options: Options) -> bool {
    let mut stage = Stage::with(3, options);
    let leader = stage.leader();
    let client = stage.open(leader);
    for id in [8, 9] {
        let member = stage.start(id, leader);
        stage.nodes.get_mut(&leader).unwrap().on_join(member);
    }
    let old: Vec<u64> = (1..=3).filter(|id| *id != leader).collect();
    for id in &old {
        stage.nodes.get_mut(&leader).unwrap().on_leave(*id);
    }
    let has_begun = |stage: &Stage| {
        let part = stage.nodes[&leader].roster().part(9);
        part.is_some_and(|part| part.is_voter)
    };
    for _ in 0..1000 {
        if has_begun(&stage) {
            break;
        }
        if !stage.step() {
            stage.nodes.values_mut().for_each(Node::on_tick);
        }
    }
    assert!(has_begun(&stage));
    for id in &old {
        stage.nodes.remove(id);
    }
    let committed = stage.nodes[&leader].committed();
    stage.put(leader, client, 1);
    for _ in 0..20 {
        stage.step();
    }
    stage.nodes[&leader].committed() > committed
}

#[test]
fn an_entry_needs_a_majority_of_the_old_and_of_the_new_members() {
    assert!(!commits_without_old_members(Options::DEFAULT));
}

#[cfg(feature = "mutants")]
#[test]
fn a_planted_bug_that_counts_the_new_members_alone_is_found() {
    let options = Options {
        mutant: Some(crate::options::Mutant::HalfOfJoint),
        ..Options::DEFAULT
    };
    assert!(commits_without_old_members(options));
}

/// Sends a snapshot of the node's own items, from a later term, whose members have these parts.
fn send_members(node: &mut Node<u32>, parts: [bool; 3]) {
    let mut roster = node.roster().clone();
    let all: Vec<u64> = roster.iter().map(|it| it.id).collect();
    let with = |has: bool| if has { all.clone() } else { Vec::new() };
    roster.on_change(&ConfState {
        voters: with(parts[0]),
        voters_outgoing: with(parts[1]),
        learners: with(parts[2]),
        ..ConfState::default()
    });
    let place = (node.applied(), node.term() + 1);
    let image = items::join(&roster, &node.machine.to_image());
    node.on_image(2, node.term() + 1, place, &image);
    node.run(&mut Rng::new(1), &mut Output::default());
    assert!(node.has_read());
}

#[test]
fn a_snapshot_with_impossible_members_does_not_make_raft_panic() {
    for parts in [
        [false, false, true],
        [true, false, true],
        [false, true, false],
    ] {
        let mut stage = Stage::new(3);
        let leader = stage.leader();
        stage.open(leader);
        let node = stage.nodes.get_mut(&1).unwrap();
        let before = node.term();
        send_members(node, parts);
        assert_eq!(node.term(), before, "{parts:?} are dropped");
    }
}
