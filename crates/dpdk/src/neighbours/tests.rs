//! Neighbours that answer, that do not, and that change.

use super::*;

const MAC: Mac = [2, 0, 0, 0, 0, 9];
const OTHER: Mac = [2, 0, 0, 0, 0, 8];

fn ip() -> IpAddr {
    "10.0.0.9".parse().unwrap()
}

fn fresh() -> u64 {
    fresh_ms(ip())
}

/// A neighbour that was asked for at time 0.
fn asked() -> Neighbours<u32> {
    let mut neighbours = Neighbours::new(100);
    assert!(neighbours.add(ip()));
    neighbours
}

/// The number of questions until this time.
fn questions(neighbours: &mut Neighbours<u32>, from: u64, to: u64) -> usize {
    let each = (from..=to).map(|now| neighbours.on_time(now).questions.len());
    each.sum()
}

#[test]
fn packets_wait_for_the_answer_in_order() {
    let mut neighbours = asked();
    assert_eq!(neighbours.find(ip()), None);
    for packet in 0..3 {
        assert_eq!(neighbours.hold(ip(), packet), Hold::Waits);
    }
    assert_eq!(neighbours.on_answer(ip(), MAC).unwrap().held, [0, 1, 2]);
    assert_eq!(neighbours.find(ip()), Some(MAC));
    assert_eq!(neighbours.hold(ip(), 3), Hold::Known(MAC, 3));
}

#[test]
fn a_packet_that_is_held_before_the_first_look_is_not_old_at_that_look() {
    let mut neighbours = Neighbours::new(100);
    neighbours.begin(60_000);
    assert!(neighbours.add(ip()));
    assert_eq!(neighbours.hold(ip(), 7), Hold::Waits);
    assert_eq!(neighbours.on_time(60_001).lost, []);
    assert_eq!(neighbours.on_time(60_000 + HELD_MS).lost, [7]);
}

#[test]
fn an_answer_without_a_question_changes_nothing() {
    let mut neighbours = asked();
    assert_eq!(neighbours.on_answer("10.0.0.8".parse().unwrap(), MAC), None);
    neighbours.on_answer(ip(), MAC).unwrap();
    assert_eq!(neighbours.on_answer(ip(), OTHER), None);
    assert_eq!(neighbours.find(ip()), Some(MAC));
}

#[test]
fn a_silent_neighbour_is_asked_again_and_its_packets_are_lost() {
    let mut neighbours = asked();
    assert_eq!(neighbours.hold(ip(), 7), Hold::Waits);
    let asked: Vec<u64> = (1..HELD_MS)
        .filter(|now| !neighbours.on_time(*now).questions.is_empty())
        .collect();
    assert_eq!(asked, [50, 150, 350, 750, 1_550, 2_550]);
    assert_eq!(neighbours.on_time(HELD_MS).lost, [7]);
    let later = questions(&mut neighbours, HELD_MS + 1, HELD_MS + 10_000);
    assert_eq!(later, 0, "no packet waits");
    assert_eq!(neighbours.hold(ip(), 8), Hold::Waits);
    let more = questions(&mut neighbours, HELD_MS + 10_001, HELD_MS + 12_000);
    assert_eq!(more, 2);
}

#[test]
fn a_known_address_is_confirmed_and_may_change() {
    let mut neighbours = asked();
    neighbours.on_answer(ip(), MAC).unwrap();
    assert_eq!(questions(&mut neighbours, 1, fresh() - 1), 0);
    assert_eq!(questions(&mut neighbours, fresh(), fresh() + 10), 1);
    assert_eq!(neighbours.find(ip()), Some(MAC), "it is used meanwhile");
    neighbours.on_answer(ip(), OTHER).unwrap();
    assert_eq!(neighbours.find(ip()), Some(OTHER));
    assert_eq!(questions(&mut neighbours, fresh() + 11, 2 * fresh()), 0);
}

#[test]
fn a_new_use_asks_again_until_there_is_an_answer() {
    let mut neighbours = asked();
    neighbours.on_answer(ip(), MAC).unwrap();
    assert!(!neighbours.add(ip()), "it was asked just now");
    assert_eq!(questions(&mut neighbours, 1, 2_000), 0);
    assert!(neighbours.add(ip()));
    assert_eq!(questions(&mut neighbours, 2_001, 4_500), 2);
    neighbours.on_answer(ip(), OTHER).unwrap();
    assert_eq!(neighbours.find(ip()), Some(OTHER));
    assert_eq!(questions(&mut neighbours, 4_501, 9_000), 0);
}

#[test]
fn a_hint_of_another_address_is_believed_only_after_an_answer() {
    let mut neighbours = asked();
    neighbours.on_answer(ip(), MAC).unwrap();
    let _ = neighbours.on_time(LATER_MS);
    assert!(!neighbours.on_hint(ip(), MAC), "it is known");
    assert!(!neighbours.on_hint("10.0.0.8".parse().unwrap(), OTHER));
    assert!(neighbours.on_hint(ip(), OTHER));
    assert!(!neighbours.on_hint(ip(), OTHER), "it was asked just now");
    assert_eq!(
        neighbours.find(ip()),
        Some(MAC),
        "a hint alone changes nothing"
    );
    assert!(neighbours.on_answer(ip(), OTHER).unwrap().changed);
    assert_eq!(neighbours.find(ip()), Some(OTHER));
}

#[test]
fn a_neighbour_that_no_longer_answers_is_forgotten() {
    let mut neighbours = asked();
    neighbours.on_answer(ip(), MAC).unwrap();
    let changed: Vec<u64> = (1..=2 * fresh())
        .filter(|now| neighbours.on_time(*now).changed)
        .collect();
    assert_eq!(changed.len(), 1);
    assert_eq!(neighbours.find(ip()), None);
    assert!(
        (fresh() + 2_000..fresh() + 5_000).contains(&changed[0]),
        "{changed:?}"
    );
}

#[test]
fn few_packets_wait_for_a_neighbour_and_none_for_a_released_one() {
    let mut neighbours = asked();
    for packet in 0..32 {
        assert_eq!(neighbours.hold(ip(), packet), Hold::Waits);
    }
    assert_eq!(neighbours.hold(ip(), 32), Hold::Full(32));
    neighbours.release(ip());
    assert_eq!(neighbours.on_time(1).lost.len(), HELD);
    assert_eq!(neighbours.hold(ip(), 1), Hold::Full(1));
}

#[test]
fn packets_for_all_neighbours_have_a_common_limit() {
    let mut neighbours = Neighbours::new(100);
    let ip = |number: u8| IpAddr::from([10, 0, 0, number]);
    let mut waiting = 0;
    for number in 0..5 {
        assert!(neighbours.add(ip(number)));
        let holds = (0..40).map(|packet| neighbours.hold(ip(number), packet));
        waiting += holds.filter(|hold| *hold == Hold::Waits).count();
    }
    assert_eq!(waiting, 100);
    assert_eq!(neighbours.on_answer(ip(0), MAC).unwrap().held.len(), 32);
    assert_eq!(neighbours.hold(ip(4), 1), Hold::Waits);
    assert_eq!(neighbours.on_time(HELD_MS).lost.len(), 69);
    assert_eq!(neighbours.hold(ip(1), 1), Hold::Waits);
}

#[test]
fn a_neighbour_without_uses_stays_known_until_it_is_old() {
    let mut neighbours = asked();
    neighbours.on_answer(ip(), MAC).unwrap();
    neighbours.release(ip());
    assert_eq!(questions(&mut neighbours, 1, fresh() - 1), 0);
    assert_eq!(neighbours.find(ip()), Some(MAC));
    assert!(neighbours.on_time(fresh()).changed);
    assert!(neighbours.add(ip()));
}

#[test]
fn a_known_neighbour_is_asked_directly_and_only_then_by_a_broadcast() {
    let mut neighbours = asked();
    assert!(neighbours.on_answer(ip(), MAC).unwrap().changed);
    assert_eq!(neighbours.on_time(fresh()).questions, [(ip(), Some(MAC))]);
    let again = neighbours.on_time(fresh() + LATER_MS).questions;
    assert_eq!(again, [(ip(), None)]);
    assert!(!neighbours.on_answer(ip(), MAC).unwrap().changed);
}

#[test]
fn a_hint_just_after_a_question_is_not_forgotten() {
    let mut neighbours = asked();
    neighbours.on_answer(ip(), MAC).unwrap();
    let _ = neighbours.on_time(10);
    assert!(!neighbours.on_hint(ip(), OTHER), "it was asked just now");
    assert_eq!(questions(&mut neighbours, 11, LATER_MS - 1), 0);
    assert_eq!(neighbours.on_time(LATER_MS).questions, [(ip(), None)]);
    assert!(neighbours.on_answer(ip(), OTHER).unwrap().changed);
}

#[test]
fn neighbours_with_consecutive_addresses_are_confirmed_at_different_times() {
    let times = (0..100).map(|number| fresh_ms(IpAddr::from([10, 0, 0, number])) / 10);
    let different: std::collections::BTreeSet<u64> = times.collect();
    assert!(different.len() > 80, "{}", different.len());
}
