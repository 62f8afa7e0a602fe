//! Answers that come in another order than they were sent, and answers of another term.

use raft::eraftpb::{Message, MessageType};

use super::LateAnswers;

fn answer(term: u64, index: u64) -> Message {
    Message {
        msg_type: MessageType::MsgAppendResponse,
        from: 2,
        term,
        index,
        commit: index - 1,
        ..Message::default()
    }
}

#[test]
fn an_answer_that_was_overtaken_hides_no_later_one() {
    let mut late = LateAnswers::default();
    assert!(late.add(&answer(1, 8), 3));
    assert!(late.add(&answer(1, 7), 3));
    assert!(!late.add(&answer(1, 6), 3));
    let mut message = answer(1, 6);
    late.join(&mut message);
    assert_eq!((message.index, message.commit), (8, 7));
    assert!(late.pop().is_none());
}

#[test]
fn answers_of_an_earlier_term_do_not_count() {
    let mut late = LateAnswers::default();
    assert!(late.add(&answer(1, 8), 3));
    let mut message = answer(2, 5);
    late.join(&mut message);
    assert_eq!(message.index, 5);
    assert!(late.add(&message, 3));
    let kept = late.pop().unwrap();
    assert_eq!((kept.term, kept.index), (2, 5));
    assert!(late.pop().is_none());
}
