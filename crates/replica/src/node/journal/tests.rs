//! Messages that wait, and messages that need not wait.

use super::*;

fn message(kind: MessageType) -> Message {
    Message {
        msg_type: kind,
        ..Message::default()
    }
}

fn kinds(journal: &mut Journal) -> Vec<MessageType> {
    let mut out = Vec::new();
    journal.take_free(&mut out);
    out.iter().map(|it| it.msg_type).collect()
}

const fn saved(number: u64) -> Saved {
    Saved {
        number,
        checkpoints: 0,
        is_full: false,
    }
}

#[test]
fn an_answer_waits_for_its_write_and_a_heartbeat_for_its_term() {
    use MessageType::{MsgAppend, MsgAppendResponse, MsgHeartbeatResponse};
    let answers = || vec![message(MsgAppendResponse), message(MsgHeartbeatResponse)];
    let mut journal = Journal::new((4, 1));
    journal.send(answers(), false, 4);
    assert_eq!(
        kinds(&mut journal),
        [MsgAppendResponse, MsgHeartbeatResponse]
    );
    journal.on_write((4, 1), Kept::default());
    journal.send(answers(), false, 4);
    assert_eq!(kinds(&mut journal), [MsgHeartbeatResponse]);
    // The next write promises a later term.
    journal.on_write((5, 1), Kept::default());
    journal.send(answers(), false, 5);
    journal.send(vec![message(MsgAppend)], true, 5);
    assert_eq!(kinds(&mut journal), []);
    journal.on_saved(saved(1));
    assert_eq!(kinds(&mut journal), [MsgAppendResponse]);
    journal.on_saved(saved(2));
    assert_eq!(
        kinds(&mut journal),
        [MsgAppendResponse, MsgHeartbeatResponse, MsgAppend]
    );
    // A leader whose term is on the disk does not wait for its own entries.
    journal.on_write((5, 1), Kept::default());
    journal.send(vec![message(MsgAppend)], true, 5);
    assert_eq!(kinds(&mut journal), [MsgAppend]);
    assert!(!journal.is_idle());
}

#[test]
fn a_pre_vote_waits_only_for_its_term() {
    use MessageType::{MsgRequestPreVote, MsgRequestPreVoteResponse, MsgRequestVote};
    let mut journal = Journal::new((4, 1));
    let ask = || {
        let kinds = [MsgRequestPreVote, MsgRequestPreVoteResponse, MsgRequestVote];
        kinds.map(message).to_vec()
    };
    // A leader's entries are being written.
    journal.on_write((4, 1), Kept::default());
    journal.send(ask(), false, 4);
    assert_eq!(
        kinds(&mut journal),
        [MsgRequestPreVote, MsgRequestPreVoteResponse]
    );
    journal.on_write((5, 2), Kept::default());
    journal.send(ask(), false, 5);
    assert_eq!(kinds(&mut journal), []);
    journal.on_saved(saved(2));
    assert_eq!(
        kinds(&mut journal),
        [
            MsgRequestVote,
            MsgRequestPreVote,
            MsgRequestPreVoteResponse,
            MsgRequestVote
        ]
    );
}

#[test]
fn the_clock_is_stopped_while_a_term_or_vote_is_written_but_not_for_entries() {
    let mut journal = Journal::new((4, 1));
    journal.on_write((4, 1), Kept::default());
    assert!(!journal.on_tick());
    journal.on_term(5, 0);
    journal.on_write((5, 0), Kept::default());
    assert!(journal.waits_for_other(3) && journal.on_tick());
    journal.on_write((5, 2), Kept::default());
    journal.on_saved(saved(2));
    assert!(journal.on_tick(), "the vote is not on the disk");
    journal.on_saved(saved(3));
    journal.on_term(5, 2);
    assert!(!journal.on_tick());
    // The next vote takes one tick to save.
    journal.on_term(6, 0);
    journal.on_write((6, 0), Kept::default());
    assert!(journal.on_tick());
    journal.on_saved(saved(4));
    assert_eq!((0..).take_while(|_| journal.on_tick()).count(), 2);
}

#[test]
fn time_on_a_full_disk_does_not_count_as_write_time() {
    let full = |number| Saved {
        is_full: true,
        ..saved(number)
    };
    let tick = |journal: &mut Journal, count| {
        for _ in 0..count {
            journal.on_tick();
        }
    };
    let mut journal = Journal::new((4, 1));
    journal.on_write((4, 1), Kept::default());
    tick(&mut journal, 500);
    journal.on_saved(full(0));
    journal.on_write((4, 1), Kept::default());
    journal.on_write((4, 1), Kept::default());
    tick(&mut journal, 500);
    // The disk has room again. It has tried one write over and over, and the others have waited for
    // it.
    journal.on_saved(saved(2));
    tick(&mut journal, 3);
    journal.on_saved(saved(3));
    journal.on_term(5, 0);
    assert_eq!((0..).take_while(|_| journal.on_tick()).count(), 2 * 3);
}

#[test]
fn raft_learns_the_last_saved_entry_and_forgets_those_before_a_snapshot() {
    let kept = |snapshot, last| Kept { snapshot, last };
    let mut journal = Journal::new((4, 1));
    let writes = [
        kept(None, Some((7, 4))),
        kept(None, None),
        kept(Some(20), None),
        kept(None, Some((22, 4))),
    ];
    let numbers = writes.map(|it| journal.on_write((4, 1), it));
    assert_eq!(numbers, [1, 2, 3, 4]);
    assert_eq!(journal.on_saved(saved(2)), kept(None, Some((7, 4))));
    assert_eq!(journal.on_saved(saved(2)), Kept::default());
    assert_eq!(journal.on_saved(saved(4)), kept(Some(20), Some((22, 4))));
    for write in &writes[..3] {
        journal.on_write((4, 1), *write);
    }
    assert_eq!(journal.on_saved(saved(7)), kept(Some(20), None));
}
