//! Answers that come in another order than they were sent, and answers of another term.

use super::LateAnswers;
use crate::wire::Confirmation;

fn answer(term: u64, index: u64) -> Confirmation {
    Confirmation {
        from: 2,
        term,
        index,
        commit: index - 1,
    }
}

#[test]
fn an_answer_that_was_overtaken_hides_no_later_one() {
    let mut late = LateAnswers::default();
    assert!(late.add(&answer(1, 8), 3));
    assert!(late.add(&answer(1, 7), 3));
    assert!(!late.add(&answer(1, 6), 3));
    let mut message = answer(1, 6).message(1);
    late.join(&mut message);
    assert_eq!((message.index, message.commit), (8, 7));
    assert!(late.pop().is_none());
}

#[test]
fn answers_of_an_earlier_term_do_not_count() {
    let mut late = LateAnswers::default();
    assert!(late.add(&answer(1, 8), 3));
    let mut message = answer(2, 5).message(1);
    late.join(&mut message);
    assert_eq!(message.index, 5);
    assert!(late.add(&answer(2, 5), 3));
    let kept = late.pop().unwrap();
    assert_eq!((kept.term, kept.index), (2, 5));
    assert!(late.pop().is_none());
}
