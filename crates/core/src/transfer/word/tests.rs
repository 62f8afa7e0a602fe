//! Which packets are excused, and for how long.

use super::*;

const PATIENCE: Nanos = Nanos(100);

fn answered(sent: u64, now: u64) -> Word {
    let mut word = Word::default();
    word.on_answer(Nanos(sent), Nanos(now));
    word
}

#[test]
fn a_packet_is_excused_while_no_packet_that_left_later_is_answered() {
    let word = answered(1_000, 1_500);
    assert_eq!(word.excuses(Nanos(1_000), PATIENCE), Some(Nanos(1_600)));
    assert_eq!(word.excuses(Nanos(951), PATIENCE), Some(Nanos(1_600)));
}

#[test]
fn a_packet_is_not_excused_if_a_packet_that_left_half_the_patience_later_is_answered() {
    let mut word = answered(1_000, 1_500);
    assert_eq!(word.excuses(Nanos(950), PATIENCE), None);
    // An answer to an earlier packet does not excuse it again.
    word.on_answer(Nanos(900), Nanos(1_600));
    assert_eq!(word.excuses(Nanos(950), PATIENCE), None);
}

#[test]
fn while_one_message_probes_the_others_wait_for_the_answer() {
    let mut word = answered(1_000, 1_500);
    word.on_ask(Nanos(2_000));
    assert_eq!(word.asks(), 1);
    assert_eq!(word.excuses(Nanos(1_000), PATIENCE), Some(Nanos(2_100)));
    word.on_answer(Nanos(1_000), Nanos(2_050));
    assert_eq!(word.asks(), 0);
    assert_eq!(word.excuses(Nanos(1_000), PATIENCE), Some(Nanos(2_150)));
}

#[test]
fn the_time_for_which_a_peer_keeps_packets_outlasts_messages_and_is_forgotten_slowly() {
    let mut word = answered(1_000, 1_500);
    word.on_kept(Nanos(40_000));
    word.on_kept(Nanos::ZERO);
    let mut next = word.anew();
    assert!((70_000..80_000).contains(&next.kept().0), "{next:?}");
    assert_eq!(
        next.excuses(Nanos(900), PATIENCE),
        Word::default().excuses(Nanos(900), PATIENCE)
    );
    for _ in 0..2000 {
        next.on_kept(Nanos::ZERO);
    }
    assert!(next.kept() < Nanos(1_000), "{next:?}");
}
