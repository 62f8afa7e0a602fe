//! Followers that lack dropped entries, while the leader takes writes.

use super::*;
use crate::node::DROPPED;
use crate::node::tend::SLACK_FOR_FOLLOWER;

/// Entries that a log keeps in these tests.
const KEPT: u64 = 10;

impl Stage {
    /// A leader that has dropped entries which one follower lacks.
    pub(super) fn with_late_follower(options: Options) -> (Self, u64, u64, u64) {
        let mut stage = Self::with(3, options);
        let leader = stage.leader();
        let client = stage.open(leader);
        let late = 1 + leader % 3;
        stage.cut = Some(late);
        stage.write(leader, client, 1..=40);
        // The follower answers no heartbeat, so the leader does not wait for it.
        stage.tick(3 * Options::ELECTION_TICKS);
        stage.write(leader, client, 41..=80);
        assert!(stage.nodes[&leader].log().base() > stage.opened);
        stage.cut = None;
        (stage, leader, client, late)
    }

    pub(super) fn write(
        &mut self,
        leader: u64,
        client: u64,
        numbers: std::ops::RangeInclusive<u64>,
    ) {
        for number in numbers {
            self.put(leader, client, number);
            self.settle();
        }
    }

    fn kept(&self, id: u64) -> u64 {
        let log = self.nodes[&id].log();
        log.last() - log.base()
    }
}

pub(super) fn options() -> Options {
    Options {
        kept_entries: KEPT,
        ..Options::DEFAULT
    }
}

#[test]
fn a_follower_under_load_gets_one_snapshot() {
    let (mut stage, _, client, late) = Stage::with_late_follower(options());
    stage.delayed = Some(Vec::new());
    stage.tick(3 * Options::ELECTION_TICKS);
    let leader = stage.leader();
    assert_eq!(stage.snapshots, 1);
    // The snapshot takes a while, and so do the entries after it.
    stage.write(leader, client, 81..=81 + 8 * KEPT);
    let snapshot = stage.delayed.take().unwrap().pop().unwrap();
    stage.nodes.get_mut(&late).unwrap().on_arrival(snapshot);
    stage
        .nodes
        .get_mut(&leader)
        .unwrap()
        .on_snapshot_sent(late, true);
    stage.write(leader, client, 200..=200 + 8 * KEPT);
    stage.tick(Options::ELECTION_TICKS);
    assert_eq!(stage.snapshots, 1);
    assert_eq!(stage.nodes[&late].applied(), stage.nodes[&leader].applied());
    // No follower needs earlier entries any more.
    stage.write(leader, client, 300..=300 + 3 * KEPT);
    assert!(stage.kept(leader) <= 2 * KEPT + 1, "{}", stage.kept(leader));
}

#[test]
fn the_log_waits_up_to_a_limit_for_a_follower_that_does_not_catch_up() {
    let (mut stage, _, client, _) = Stage::with_late_follower(options());
    stage.delayed = Some(Vec::new());
    stage.tick(3 * Options::ELECTION_TICKS);
    let leader = stage.leader();
    for number in 81..81 + 20 * KEPT {
        stage.write(leader, client, number..=number);
        assert!(stage.kept(leader) <= SLACK_FOR_FOLLOWER * KEPT + 1);
    }
}

#[test]
fn a_log_drops_entries_when_it_has_too_many_bytes() {
    let options = Options {
        kept_bytes: 1500,
        ..Options::DEFAULT
    };
    let mut stage = Stage::with(3, options);
    let leader = stage.leader();
    let client = stage.open(leader);
    stage.write(leader, client, 1..=200);
    assert!(stage.kept(leader) < 60, "{}", stage.kept(leader));
    stage.write(leader, client, 201..=300);
    assert!(
        (10..60).contains(&stage.kept(leader)),
        "{}",
        stage.kept(leader)
    );
}

/// While the items of a snapshot are in memory but not on the disk, Raft cannot campaign.
#[test]
fn no_election_begins_while_a_disk_writes_a_snapshot() {
    let (mut stage, leader, client, late) = Stage::with_late_follower(options());
    let node = stage.nodes.remove(&late).unwrap();
    stage.nodes.insert(late, node.with_disk());
    stage.busy = vec![late];
    stage.tick(3 * Options::ELECTION_TICKS);
    assert!(
        stage.nodes[&late].applied() > stage.opened,
        "it is restored"
    );
    stage.cut = Some(leader);
    let term = stage.nodes[&late].term();
    stage.nodes.get_mut(&late).unwrap().on_message(Message {
        msg_type: MessageType::MsgTimeoutNow,
        from: leader,
        to: late,
        term,
        ..Message::default()
    });
    stage.tick(5 * Options::ELECTION_TICKS);
    assert!(!stage.nodes[&late].leads());
    stage.cut = None;
    stage.busy.clear();
    stage.tick(5 * Options::ELECTION_TICKS);
    let leader = stage.leader();
    stage.write(leader, client, 81..=81);
    // A heartbeat tells the followers of the commit.
    stage.tick(Options::ELECTION_TICKS);
    assert_eq!(stage.nodes[&late].applied(), stage.nodes[&leader].applied());
}

#[test]
fn a_run_drops_few_entries_of_a_long_log() {
    let kept = 3 * DROPPED as u64;
    let options = Options {
        kept_entries: kept,
        ..Options::DEFAULT
    };
    let mut stage = Stage::with(1, options);
    stage.leader();
    let node = stage.nodes.get_mut(&1).unwrap();
    let (mut rng, mut slices) = (Rng::new(1), 0);
    while slices == 0 || node.has_more() {
        for asker in 0..400 {
            if slices == 0 {
                node.on_write(Request::OPEN.to_bytes(), asker);
            }
        }
        let before = node.log().base();
        node.run(&mut rng, &mut Output::default());
        let dropped = node.log().base() - before;
        assert!(dropped <= DROPPED as u64, "{dropped} entries");
        slices += u32::from(dropped > 0);
    }
    assert!(slices >= 3, "{slices} slices");
    assert_eq!(node.log().last() - node.log().base(), kept);
}
