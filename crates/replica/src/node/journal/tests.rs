//! Messages that wait, and those that need not.

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
    let mut journal = Journal::new(4);
    journal.send(answers(), false, 4);
    assert_eq!(
        kinds(&mut journal),
        [MsgAppendResponse, MsgHeartbeatResponse]
    );
    journal.on_write(1, 4);
    journal.send(answers(), false, 4);
    assert_eq!(kinds(&mut journal), [MsgHeartbeatResponse]);
    // The next write promises a later term.
    journal.on_write(2, 5);
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
    journal.on_write(3, 5);
    journal.send(vec![message(MsgAppend)], true, 5);
    assert_eq!(kinds(&mut journal), [MsgAppend]);
    assert!(!journal.is_idle());
}
