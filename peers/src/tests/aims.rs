//! Ratios, and which of them are judged.

use crate::aims::{ROUNDS, Reached, need, render};
use crate::args::Name::{self, DunlinShmChannel, DunlinShmServerTokio, Futex, Tonic};

/// Renders the aims for a run in which `DunlinShmChannel` has the median `channel`, and every other
/// row has the median `others`.
fn judged(channel: f64, others: f64, valid_rounds: usize) -> String {
    let find = |name, _| {
        let median = if name == DunlinShmChannel {
            channel
        } else {
            others
        };
        Some(Reached {
            median,
            valid_rounds,
        })
    };
    render(find)
}

fn line<'a>(text: &'a str, what: &str) -> &'a str {
    let mut lines = text.lines();
    lines.find(|line| line.starts_with(what)).unwrap()
}

#[test]
fn a_ratio_divides_a_row_by_the_weighted_sum_of_others() {
    // 2.5 = 1 + 1.5.
    let what = "dunlin-shm-channel: median, over dunlin-shm-async + 1.5 × futex";
    let reached = judged(2.5, 1.0, ROUNDS);
    assert!(line(&reached, what).ends_with("≤ 1.000     1.000"));
    let missed = judged(2.6, 1.0, ROUNDS);
    assert!(line(&missed, what).ends_with("1.040  MISSED"));
    // More is better for rates.
    let what = "dunlin-shm-channel: rate, over tonic";
    assert!(line(&judged(12.0, 1.0, ROUNDS), what).ends_with("≥ 12.000    12.000"));
    assert!(line(&judged(11.9, 1.0, ROUNDS), what).ends_with("MISSED"));
    let what = "dunlin-shm-channel: system calls a call";
    assert!(line(&judged(0.2, 1.0, ROUNDS), what).ends_with("≤ 0.200     0.200"));
}

#[test]
fn too_few_valid_rounds_are_not_judged() {
    let text = judged(100.0, 1.0, ROUNDS - 1);
    assert!(text.lines().skip(2).all(|line| line.contains("INVALID: 6")));
    assert!(!text.contains("MISSED"));
}

#[test]
fn an_aim_without_its_rows_is_not_measured() {
    let some = |name, _| {
        let reached = Reached {
            median: 1.0,
            valid_rounds: ROUNDS,
        };
        (name != Tonic).then_some(reached)
    };
    for line in render(some).lines().skip(2) {
        assert_eq!(
            line.contains("tonic"),
            line.ends_with("not measured"),
            "{line}"
        );
    }
}

#[test]
fn the_aims_need_the_peers_that_they_name() {
    assert!(need(Futex) && need(DunlinShmServerTokio) && need(Tonic));
    assert!(!need(Name::Quinn) && !need(Name::Unix));
}
