//! Probes in a row are counted. If several of them are answered early, the scoreboard believes the
//! answers.

use super::*;

const LEAST: Nanos = Nanos(100);

#[test]
fn probes_in_a_row_count_until_a_packet_arrives() {
    let mut probes = Probes::default();
    assert_eq!(probes.on_probe(3, Nanos(10), Nanos(50)), 1);
    assert_eq!(probes.on_probe(3, Nanos(50), Nanos(90)), 2);
    assert!(probes.asks());
    probes.on_arrival();
    assert!(!probes.asks() && !probes.is_none());
    assert_eq!(probes.on_probe(4, Nanos(20), Nanos(95)), 1);
}

#[test]
fn a_probe_knows_its_last_copy_and_when_its_packet_left_before_the_first() {
    let mut probes = Probes::default();
    probes.on_probe(3, Nanos(10), Nanos(50));
    probes.on_probe(3, Nanos(50), Nanos(90));
    assert!(probes.take_probe(2).is_none());
    let probe = probes.take_probe(3).expect("it was probed");
    assert_eq!(probe.first_sent(), Nanos(10));
    assert!(probe.is_last(Nanos(90)) && !probe.is_last(Nanos(50)));
    assert!(probes.is_none());
}

#[test]
fn the_second_of_two_early_answers_in_a_row_is_believed() {
    let mut probes = Probes::default();
    let soon = Nanos(LEAST.0 - 1);
    probes.on_probe(3, Nanos(10), Nanos(50));
    assert!(probes.is_early(3, false, soon, LEAST));
    assert!(!probes.is_early(3, false, soon, LEAST));
    // A packet that left only once shows how soon an answer can come, so counting begins anew.
    assert!(!probes.is_early(4, true, soon, LEAST));
    assert!(probes.is_early(3, false, soon, LEAST));
    assert!(!probes.is_early(3, false, LEAST, LEAST));
    assert!(probes.is_early(5, false, soon, LEAST), "5 was no probe");
}
