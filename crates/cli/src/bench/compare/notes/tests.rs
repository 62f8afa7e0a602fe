//! One line for a case and a program, however many rounds.

use super::*;

#[test]
fn only_the_first_remark_of_all_rounds_is_kept() {
    let mut notes = Notes::default();
    let said = |said: &[&str]| Answer {
        notes: said.iter().map(|it| (*it).to_owned()).collect(),
        ..Answer::default()
    };
    notes.add("rate shm", "old", &said(&["3 packets were lost", "slow"]));
    notes.add("rate shm", "old", &said(&[]));
    notes.add("rate shm", "old", &said(&["4 packets were lost"]));
    let refusal = Answer {
        unsupported: Some("no udp".to_owned()),
        ..Answer::default()
    };
    notes.add("rate udp", "old", &refusal);
    let lines = [
        "rate shm, old: 3 packets were lost; slow (the first of 2 rounds with a note)",
        "rate udp, old: does not take part: no udp",
    ];
    assert_eq!(notes.lines(), lines);
}
