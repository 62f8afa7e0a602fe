//! The comparison finds no difference between equal variants, in any kind of run that seeds draw.
//! It finds differences between other variants, and the report names them.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use dunlin_core::{Counters, Nanos};

use super::{
    Comparison, Count, Difference, GENERAL, OwnPath, REPEATED, Same, Taken, Unlike, Variant,
    compare_seed, first_difference,
};
use crate::cluster::Kind;
use crate::cluster::plan::Plan;
use crate::cluster::run::{Options, run_seed};
use crate::world::Act;

/// A seed with requests that are acknowledged before they are answered.
const SLOW: u64 = 3;

fn same(seed: u64) -> Same {
    compare_seed(seed, &REPEATED, None).unwrap_or_else(|unlike| panic!("{unlike}"))
}

/// The general path against a variant of it.
fn against(prepare: fn(&mut Plan)) -> Comparison {
    let variant = Variant {
        name: "other",
        prepare,
        ..GENERAL
    };
    Comparison {
        name: "test",
        sides: [GENERAL, variant],
    }
}

fn difference(seed: u64, comparison: &Comparison) -> Box<Difference> {
    match compare_seed(seed, comparison, None) {
        Err(Unlike::Differs(difference)) => difference,
        other => panic!("no difference: {other:?}"),
    }
}

#[test]
fn equal_variants_do_not_differ_in_any_kind_of_run() {
    const SEEDS: u64 = 150;
    let mut seen = [("", 0_u64); 14];
    for seed in 1..=SEEDS {
        let plan = Plan::draw(seed);
        let Same { report, facts, .. } = same(seed);
        assert!(facts as u64 > report.calls.issued, "{facts} facts");
        let has = |kind| plan.workload.kinds.contains(&kind);
        let restarts = plan.acts.iter();
        let restarts = restarts.filter(|(_, act)| matches!(act, Act::Crash(_) | Act::Exit(_)));
        let largest = plan.workload.sizes.packets;
        let kinds = [
            ("loss", report.frames.lost),
            ("reordering", report.frames.reordered),
            ("copies", report.frames.duplicated),
            ("attacks", report.frames.hostile),
            ("restarts", restarts.count() as u64),
            ("large messages", u64::from(largest > 1)),
            ("pacing", plan.paced.into()),
            ("cancelled calls", report.calls.cancelled),
            ("deadlines", report.calls.expired),
            ("panics", has(Kind::Panic).into()),
            ("batches", has(Kind::Batch).into()),
            ("background handlers", has(Kind::Background).into()),
            ("kept requests", has(Kind::Later).into()),
            ("shortage", plan.tight.into()),
        ];
        for (seen, (name, count)) in seen.iter_mut().zip(kinds) {
            *seen = (name, seen.1 + count);
        }
    }
    assert!(seen.iter().all(|(_, count)| *count > 10), "{seen:?}");
}

#[test]
fn a_record_does_not_change_the_run() {
    for seed in 1..=20 {
        let plain = run_seed(seed, Options::default()).unwrap_or_else(|bad| panic!("{bad}"));
        assert_eq!(same(seed).report, plain);
    }
}

#[test]
fn a_variant_that_is_a_nanosecond_slower_differs() {
    let slower = against(|plan| plan.endpoint.ack_delay += Nanos(1));
    let difference = difference(SLOW, &slower);
    let [first, second] = difference.first().map(|line| line.unwrap().at.0);
    assert_eq!(first.abs_diff(second), 1, "{difference}");
    let text = difference.to_string();
    assert!(
        text.contains(&format!("time: {first} ns | {second} ns")),
        "{text}"
    );
    assert!(
        text.ends_with(&format!("cargo xtask seeds --differential --seed {SLOW}")),
        "{text}"
    );
    assert!(difference.before > 0, "no context: {text}");
}

#[test]
fn a_variant_that_does_not_repeat_itself_is_named() {
    static RUNS: AtomicU64 = AtomicU64::new(0);
    let fickle = against(|plan| {
        let more = Nanos(RUNS.fetch_add(1, Relaxed));
        plan.endpoint.ack_delay += more;
    });
    RUNS.store(1, Relaxed);
    let text = difference(SLOW, &fickle).to_string();
    assert!(
        text.contains("two runs of \"other\" differ from each other"),
        "{text}"
    );
}

#[test]
fn the_packets_of_a_path_are_counted_in_all_processes() {
    const EVERY: &[OwnPath] = &[OwnPath {
        name: "every packet",
        count: Count::Endpoints(|counters| Taken {
            packets: counters.rx_packets,
            of: counters.rx_packets + counters.tx_packets,
        }),
        least: [0, 0],
    }];
    let mut comparison = REPEATED;
    comparison.sides[1].paths = EVERY;
    let same = compare_seed(1, &comparison, None).unwrap_or_else(|unlike| panic!("{unlike}"));
    assert_eq!(same.taken[0], [], "a variant without a path has no share");
    let [taken] = same.taken[1][..] else {
        panic!("{:?}", same.taken)
    };
    // Frames hold several packets, and a process that dies leaves some unread.
    assert!(
        taken.packets > same.report.frames.delivered / 2,
        "{taken:?}"
    );
    assert!(taken.packets < taken.of, "{taken:?}");
}

#[test]
fn the_first_difference_is_found_even_at_the_end_of_the_shorter_run() {
    assert_eq!(first_difference(&[1, 2, 3], &[1, 2, 3]), None);
    assert_eq!(first_difference(&[1, 2, 3], &[1, 5, 3]), Some(1));
    assert_eq!(first_difference(&[1, 2, 3], &[1, 2]), Some(2));
    assert_eq!(first_difference(&[], &[1]), Some(0));
}

#[test]
fn counters_that_may_differ_exist() {
    let named = Counters::default().named();
    for own in Counters::OF_PATHS {
        assert!(named.iter().any(|(name, _)| name == own), "no such: {own}");
    }
}

/// Each planted difference is found, at the fact that shows it first.
#[cfg(feature = "mutants")]
#[test]
fn every_planted_difference_is_found_and_named() {
    use crate::cluster::mutants::Mutant;
    use crate::world::Line;

    // The first differing fact, and its differing field, unless that is the time.
    let expected = [
        ("one-nanosecond-later", "iterates", None),
        ("counted-twice", "iterates", Some("stalls")),
        ("endings-reversed", "ends with", Some("call")),
        ("other-byte", "hands over", Some("header")),
        ("spare-buffer", "iterates", Some("pool msgbufs")),
        ("plain-though-paced", "hands over", None),
        ("lane-kept", "hands over", None),
        ("measured-longer", "iterates", Some("call")),
        ("residence-ignored", "iterates", Some("rtt_away")),
        ("given-up-not-reported", "is given up", None),
    ];
    let planted = Mutant::differences();
    assert_eq!(planted.len(), expected.len());
    for (name, what, field) in expected {
        let mutant = Mutant::from_name(name).unwrap();
        assert!(planted.contains(&mutant), "{name} is a bug");
        // The seed determines which fact shows it first.
        let shown = |seed| match compare_seed(seed, &REPEATED, Some(mutant)) {
            Err(Unlike::Differs(difference)) => {
                let first = difference.first();
                let shows = |line: &Line| line.what.contains(what);
                let shown = first.into_iter().flatten().any(shows);
                shown.then_some(difference)
            }
            _ => None,
        };
        let found = (1..=100).find_map(shown);
        let difference = found.unwrap_or_else(|| panic!("{name} is not found as {what}"));
        assert_eq!(difference.failure, None, "{name} breaks a promise");
        assert!(difference.sides.iter().all(|side| side.repeats), "{name}");
        if let Some(field) = field {
            let fields = difference.fields();
            assert!(
                fields.iter().any(|(name, _)| *name == field),
                "{name}: {difference}"
            );
        }
        let replay = format!("--differential --seed {} --mutant {name}", difference.seed);
        assert!(difference.to_string().ends_with(&replay), "{difference}");
    }
}

/// No checker finds a planted difference; otherwise the checker would report it instead of the
/// comparison. The laws are an exception, because they may find faults in the state that no packet
/// shows.
#[cfg(feature = "mutants")]
#[test]
fn no_checker_sees_a_planted_difference() {
    for mutant in crate::cluster::mutants::Mutant::differences() {
        let options = Options {
            mutant: Some(mutant),
            lawless: true,
            ..Options::default()
        };
        for seed in 1..=40 {
            run_seed(seed, options).unwrap_or_else(|bad| panic!("{bad}"));
        }
    }
}
