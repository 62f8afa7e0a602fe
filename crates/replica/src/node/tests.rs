//! Nodes in one thread, between which a test carries the messages.

mod applying;
mod arriving;
mod catching_up;
mod disk;
mod drawing;
mod limits;
mod members;
mod messages;
mod slices;

use std::collections::BTreeMap;

use super::*;
use crate::wire::Answer;
use crate::wire::{Member, Members, Name, Names, Operation, Parcel, Request};
use crate::work::Saved;
use crate::work::Work;
use raft::eraftpb::{Entry, Message, MessageType};

struct Stage {
    nodes: BTreeMap<u64, Node<u32>>,
    rng: Rng,
    /// All messages from and to this node are lost.
    cut: Option<u64>,
    answers: Vec<(u64, u32, Answer)>,
    /// The number of messages that were carried.
    messages: usize,
    appends: usize,
    /// The most bytes of entries in a message that has several entries.
    longest: usize,
    /// The number of messages with a snapshot.
    snapshots: usize,
    /// The entry that opened the last client.
    opened: u64,
    /// For each node, the last write that its disk has not saved.
    unsaved: BTreeMap<u64, u64>,
    /// Nodes whose disks never finish a write.
    busy: Vec<u64>,
    /// If set, snapshots are kept here instead of being carried.
    delayed: Option<Vec<Message>>,
}

impl Stage {
    fn new(count: u64) -> Self {
        Self::with(count, Options::DEFAULT)
    }

    fn with(count: u64, options: Options) -> Self {
        let member = |id| Member {
            id,
            address: format!("node-{id}"),
        };
        let members = Members::new((1..=count).map(member)).unwrap();
        let node = |id| (id, Node::new(id, Image::first(&members), options));
        Self {
            nodes: (1..=count).map(node).collect(),
            rng: Rng::new(17),
            cut: None,
            answers: Vec::new(),
            messages: 0,
            appends: 0,
            longest: 0,
            snapshots: 0,
            opened: 0,
            unsaved: BTreeMap::new(),
            busy: Vec::new(),
            delayed: None,
        }
    }

    /// Runs every node once and carries the messages. False: there were none.
    fn step(&mut self) -> bool {
        let mut messages = Vec::new();
        for (id, node) in &mut self.nodes {
            if !self.busy.contains(id)
                && let Some(number) = self.unsaved.remove(id)
            {
                node.on_saved(Saved {
                    number,
                    ..Saved::default()
                });
            }
            let mut out = Output::default();
            node.run(&mut self.rng, &mut out);
            if let Some(Work::Write(write)) = out.work.last() {
                self.unsaved.insert(*id, write.number);
            }
            messages.append(&mut out.messages);
            let answers = out.answers.into_iter();
            self.answers
                .extend(answers.map(|(asker, answer)| (*id, asker, answer)));
            for (asker, key) in out.gets {
                let (version, value) = node.item(&key).expect("tests get what they have put");
                let answer = Answer::Found(version, value.to_vec());
                self.answers.push((*id, asker, answer));
            }
        }
        let saves = self.unsaved.keys().any(|id| !self.busy.contains(id));
        let goes_on = self.nodes.values().any(Node::has_more);
        let is_idle = messages.is_empty() && !saves && !goes_on;
        self.messages += messages.len();
        for message in messages {
            let is_snapshot = message.msg_type == MessageType::MsgSnapshot;
            self.appends += usize::from(!message.entries.is_empty());
            if message.entries.len() > 1 {
                let bytes = message.entries.iter().map(|entry| entry.data.len());
                self.longest = self.longest.max(bytes.sum());
            }
            self.snapshots += usize::from(is_snapshot);
            if is_snapshot && let Some(delayed) = &mut self.delayed {
                delayed.push(message);
                continue;
            }
            if self.cut != Some(message.from)
                && self.cut != Some(message.to)
                && let Some(node) = self.nodes.get_mut(&message.to)
            {
                node.on_arrival(message);
            }
        }
        !is_idle
    }

    fn settle(&mut self) {
        while self.step() {}
    }

    fn tick(&mut self, ticks: usize) {
        for _ in 0..ticks {
            self.nodes.values_mut().for_each(Node::on_tick);
            self.settle();
        }
    }

    /// The leader of the highest term.
    fn leader(&mut self) -> u64 {
        for _ in 0..200 {
            let leads = self.nodes.iter().filter(|(_, node)| node.leads());
            let uncut = leads.filter(|(id, _)| self.cut != Some(**id));
            if let Some((id, _)) = uncut.max_by_key(|(_, node)| node.term()) {
                return *id;
            }
            self.tick(1);
        }
        panic!("no node has become the leader");
    }

    fn put(&mut self, node: u64, client: u64, number: u64) {
        let name = Name {
            client,
            number,
            first: 1,
        };
        let request = Request::write(name, b"key", Operation::Put(b"value"));
        let asker = u32::try_from(number).unwrap();
        let node = self.nodes.get_mut(&node).unwrap();
        node.on_write(request.to_bytes(), asker);
    }

    fn open(&mut self, leader: u64) -> u64 {
        let node = self.nodes.get_mut(&leader).unwrap();
        node.on_write(Request::OPEN.to_bytes(), 0);
        self.settle();
        self.opened = self.nodes[&leader].log().last();
        match self.answers.pop() {
            Some((_, 0, Answer::Opened(client))) => client,
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn three_five_and_seven_nodes_commit_a_write() {
    for count in [1, 3, 5, 7] {
        let mut stage = Stage::new(count);
        let leader = stage.leader();
        let client = stage.open(leader);
        stage.put(leader, client, 1);
        stage.settle();
        let index = stage.nodes[&leader].log().last();
        assert_eq!(stage.answers, [(leader, 1, Answer::Written(index))]);
        stage.tick(Options::ELECTION_TICKS);
        assert!(stage.nodes.values().all(|node| node.applied() == index));
    }
}

#[test]
fn the_answer_leaves_in_the_run_in_which_the_majority_has_answered() {
    let mut stage = Stage::new(3);
    let leader = stage.leader();
    let client = stage.open(leader);
    stage.put(leader, client, 1);
    // The leader appends. The followers append and answer.
    stage.step();
    stage.step();
    assert_eq!(stage.answers, []);
    stage.step();
    assert_eq!(
        stage.answers,
        [(leader, 1, Answer::Written(stage.opened + 1))]
    );
}

#[test]
fn a_get_is_answered_after_a_majority_and_without_an_entry() {
    let mut stage = Stage::new(3);
    let leader = stage.leader();
    let client = stage.open(leader);
    stage.put(leader, client, 1);
    stage.settle();
    stage.answers.clear();
    let last = stage.nodes[&leader].log().last();
    stage
        .nodes
        .get_mut(&leader)
        .unwrap()
        .on_get(b"key".to_vec(), 9);
    stage.step();
    assert_eq!(stage.answers, [], "no majority has confirmed the leader");
    stage.settle();
    let found = Answer::Found(stage.opened + 1, b"value".to_vec());
    assert_eq!(stage.answers, [(leader, 9, found)]);
    assert_eq!(stage.nodes[&leader].log().last(), last);
}

#[test]
fn a_leader_without_majority_answers_nothing_and_then_that_it_has_moved() {
    let mut stage = Stage::new(3);
    let old = stage.leader();
    let client = stage.open(old);
    stage.cut = Some(old);
    stage.put(old, client, 1);
    stage
        .nodes
        .get_mut(&old)
        .unwrap()
        .on_get(b"key".to_vec(), 9);
    stage.settle();
    assert_eq!(stage.answers, []);
    let new = stage.leader();
    assert_ne!(new, old);
    stage.tick(3 * Options::ELECTION_TICKS);
    let moved = |asker| (old, asker, Answer::Moved(Vec::new()));
    assert_eq!(stage.answers, [moved(1), moved(9)]);
    // The client repeats the uncommitted write twice. Both attempts get the same answer.
    stage.answers.clear();
    stage.put(new, client, 1);
    stage.put(new, client, 1);
    stage.settle();
    let written = stage.answers[0].2.clone();
    assert_eq!(
        stage.answers,
        [(new, 1, written.clone()), (new, 1, written)]
    );
    stage.cut = None;
    stage.tick(2 * Options::ELECTION_TICKS);
    let applied: Vec<u64> = stage.nodes.values().map(Node::applied).collect();
    assert!(applied.iter().all(|it| *it == applied[0]), "{applied:?}");
}

#[test]
fn a_node_that_has_just_won_takes_operations_that_came_before() {
    let mut stage = Stage::new(1);
    let node = stage.nodes.get_mut(&1).unwrap();
    node.on_write(Request::OPEN.to_bytes(), 0);
    node.on_get(b"key".to_vec(), 1);
    while !node.leads() {
        node.on_tick();
    }
    let mut out = Output::default();
    node.run(&mut stage.rng, &mut out);
    assert!(matches!(out.answers[..], [(0, Answer::Opened(_))]));
    assert_eq!(out.gets, [(1, b"key".to_vec())]);
}

#[test]
fn a_follower_and_a_full_leader_refuse() {
    let mut stage = Stage::new(3);
    let leader = stage.leader();
    let client = stage.open(leader);
    let follower = 1 + leader % 3;
    stage.put(follower, client, 1);
    stage.settle();
    assert_eq!(stage.answers, [(follower, 1, Answer::Moved(Vec::new()))]);
    stage.answers.clear();
    for number in 0..=Options::DEFAULT.operations as u64 {
        stage.put(leader, client, number + 1);
    }
    stage.step();
    let (_, last, _) = stage.answers[0].clone();
    assert_eq!(stage.answers, [(leader, last, Answer::Busy)]);
    assert_eq!(last as usize, Options::DEFAULT.operations + 1);
}

#[test]
fn time_outs_come_only_from_the_generator() {
    let run = || {
        let mut stage = Stage::new(5);
        let mut terms = Vec::new();
        for _ in 0..10 {
            let leader = stage.leader();
            terms.push((leader, stage.nodes[&leader].term()));
            stage.cut = Some(leader);
            stage.tick(3 * Options::ELECTION_TICKS);
        }
        terms
    };
    assert_eq!(run(), run());
}

#[test]
fn a_follower_that_lacks_dropped_entries_gets_a_snapshot_and_goes_on_from_it() {
    let options = Options {
        kept_entries: 10,
        ..Options::DEFAULT
    };
    let mut stage = Stage::with(3, options);
    let leader = stage.leader();
    let client = stage.open(leader);
    let late = 1 + leader % 3;
    stage.cut = Some(late);
    // The leader keeps no entries for a follower that does not answer.
    stage.tick(3 * Options::ELECTION_TICKS);
    for number in 1..=30 {
        stage.put(leader, client, number);
        stage.settle();
    }
    let log = stage.nodes[&leader].log();
    assert!(log.base() > stage.opened && log.last() - log.base() <= 2 * 10);
    assert_eq!(stage.snapshots, 0);
    stage.cut = None;
    // Meanwhile, the follower asked for votes in vain, so the leader and the term stay.
    let term = stage.nodes[&leader].term();
    stage.tick(3 * Options::ELECTION_TICKS);
    assert_eq!(stage.snapshots, 1);
    assert_eq!((stage.leader(), stage.nodes[&late].term()), (leader, term));
    stage.answers.clear();
    // The snapshot contained the records of clients.
    stage.put(leader, client, 30);
    stage.tick(Options::ELECTION_TICKS);
    assert_eq!(
        stage.answers,
        [(leader, 30, Answer::Written(stage.opened + 30))]
    );
    let (first, second) = (&stage.nodes[&leader], &stage.nodes[&late]);
    assert_eq!(first.applied(), second.applied());
    assert_eq!(first.machine, second.machine);
}

/// A message from node 2 to node 1, with numbers near the node's own, or far from any valid one.
fn hostile(node: &Node<u32>, rng: &mut Rng) -> Message {
    let kinds = [
        MessageType::MsgAppend,
        MessageType::MsgAppendResponse,
        MessageType::MsgRequestVote,
        MessageType::MsgRequestVoteResponse,
        MessageType::MsgHeartbeat,
        MessageType::MsgHeartbeatResponse,
        MessageType::MsgRequestPreVote,
        MessageType::MsgRequestPreVoteResponse,
        MessageType::MsgTimeoutNow,
    ];
    let near = [node.term(), node.log().last(), node.committed()];
    let mut number = || match rng.below(30) {
        0 => 0,
        1 => crate::wire::MAX_INDEX - u64::from(rng.below(2)),
        2 => u64::MAX,
        _ => (near[rng.below(3) as usize] + u64::from(rng.below(3))).saturating_sub(1),
    };
    let mut message = Message {
        from: 2,
        to: 1,
        term: number(),
        log_term: number(),
        index: number(),
        commit: number(),
        commit_term: number(),
        reject_hint: number(),
        ..Message::default()
    };
    message.msg_type = kinds[rng.below(9) as usize];
    message.reject = rng.below(2) == 0;
    if message.msg_type == MessageType::MsgAppend {
        let entry = |data: &[u8]| Entry {
            term: message.term,
            data: data.to_vec().into(),
            ..Entry::default()
        };
        let data = [&b""[..], &Request::OPEN.to_bytes(), b"garbage"];
        let data = &data[..rng.below(4) as usize];
        message.entries = data.iter().map(|it| entry(it)).collect::<Vec<_>>().into();
    }
    message
}

#[test]
fn no_message_of_another_process_makes_raft_panic() {
    let mut taken = 0;
    for seed in 0..100 {
        let mut rng = Rng::new(seed);
        let mut stage = Stage::new(3);
        let leader = stage.leader();
        stage.open(leader);
        for _ in 0..100 {
            let node = stage.nodes.get_mut(&1).unwrap();
            for _ in 0..rng.below(4) {
                let names = Names {
                    cluster: 0,
                    from: 2,
                    to: 1,
                    life: 1,
                };
                let parcel = Parcel {
                    names: Some(names),
                    are_two: false,
                    messages: vec![hostile(node, &mut rng)],
                };
                let decoded = Parcel::decode(&parcel.to_bytes());
                let messages = decoded.map_or(Vec::new(), |it| it.messages);
                taken += messages.len();
                messages.into_iter().for_each(|it| node.on_message(it));
            }
            let (term, place) = (node.term(), node.log().last() + 1);
            let image = vec![1; rng.below(40) as usize];
            node.on_image(2, term, (place, term), &image);
            stage.tick(1);
        }
    }
    assert!(taken > 1000, "{taken} messages were taken");
}

#[test]
fn entries_that_the_leader_lacks_are_not_confirmed() {
    let mut stage = Stage::new(3);
    let leader = stage.leader();
    stage.open(leader);
    let node = stage.nodes.get_mut(&leader).unwrap();
    let other = 1 + leader % 3;
    let last = node.log().last();
    node.on_message(Message {
        msg_type: MessageType::MsgAppendResponse,
        from: other,
        term: node.term(),
        index: last + 1,
        ..Message::default()
    });
    assert_eq!(node.raft.raft.prs().get(other).unwrap().matched, last);
}

#[test]
fn a_node_that_has_not_written_its_log_wins_no_votes() {
    let mut stage = Stage::new(3);
    let leader = stage.leader();
    stage.open(leader);
    let own = 1 + leader % 3;
    let node = stage.nodes.get_mut(&own).unwrap();
    let (term, last) = (node.term(), node.log().last());
    let message = |kind, term| Message {
        msg_type: kind,
        from: leader,
        to: own,
        term,
        ..Message::default()
    };
    let entry = Entry {
        term,
        index: last + 1,
        ..Entry::default()
    };
    node.on_message(Message {
        log_term: term,
        index: last,
        entries: vec![entry].into(),
        ..message(MessageType::MsgAppend, term)
    });
    node.on_message(message(MessageType::MsgTimeoutNow, term));
    node.on_message(message(MessageType::MsgRequestVoteResponse, term + 1));
    assert!(!node.leads());
    assert_eq!((node.role(), node.term()), (Role::Candidate, term + 1));
}
