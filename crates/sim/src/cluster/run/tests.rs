//! Whole runs have no failure and depend only on their seeds, and planted bugs are found.

use super::{Failure, Options, Plan, run_seed};

#[test]
fn seeds_run_without_a_failure() {
    let mut totals = [0_u64; 6];
    for seed in 1..=40 {
        let report = run_seed(seed, Options::default()).unwrap_or_else(|bad| panic!("{bad}"));
        let calls = report.calls;
        let ends = [
            calls.succeeded,
            calls.rejected,
            calls.expired,
            calls.cancelled,
            calls.failed,
            calls.refused,
        ];
        for (total, end) in totals.iter_mut().zip(ends) {
            *total += end;
        }
    }
    // If no call ended in one of these ways, the workload would not test it.
    assert!(totals.iter().all(|total| *total > 10), "{totals:?}");
}

/// A handler may take longer than the failure timeout, and every call must succeed.
#[test]
fn handlers_that_are_slower_than_the_timeout_fail_no_session() {
    let slow = (1..).filter(|seed| Plan::draw(*seed).workload.sloth.is_some());
    for seed in slow.take(30) {
        run_seed(seed, Options::default()).unwrap_or_else(|bad| panic!("{bad}"));
    }
}

/// Some processes receive packets at an address other than their connections'. Each session with
/// such a process begins with a challenge that comes back, although the network loses challenges.
#[test]
fn addresses_elsewhere_are_proven_before_a_session_is_open() {
    let elsewhere = (1..).filter(|seed| Plan::draw(*seed).elsewhere);
    let mut proofs = 0;
    for seed in elsewhere.take(40) {
        let report = run_seed(seed, Options::default()).unwrap_or_else(|bad| panic!("{bad}"));
        proofs += report.proofs;
    }
    assert!(proofs > 40, "{proofs} addresses were proven");
}

/// An insider sends forged CRs, CANCELs and packets of wrong sizes, with the right token, but every
/// call still ends.
#[test]
fn calls_that_an_insider_attacks_end() {
    let insider = (1..).filter(|seed| Plan::draw(*seed).insider);
    for seed in insider.take(40) {
        run_seed(seed, Options::default()).unwrap_or_else(|bad| panic!("{bad}"));
    }
}

#[test]
fn a_seed_determines_its_run() {
    let run = |seed| run_seed(seed, Options::default()).unwrap();
    let (first, again) = (run(3), run(3));
    assert_eq!(first, again);
    assert_ne!(first.digest, run(4).digest);
}

#[test]
fn a_trace_does_not_change_the_run() {
    let traced = run_seed(
        5,
        Options {
            trace: true,
            ..Options::default()
        },
    )
    .unwrap();
    assert_eq!(traced, run_seed(5, Options::default()).unwrap());
}

#[test]
fn a_failure_names_the_command_that_replays_it() {
    let failure = Failure {
        seed: 17,
        mutant: None,
        what: "something".to_owned(),
        trace: "one\ntwo\nthree".to_owned(),
    };
    assert_eq!(failure.replay(), "cargo xtask seeds --seed 17");
    assert!(failure.to_string().ends_with("cargo xtask seeds --seed 17"));
    assert_eq!(failure.last_lines(2).collect::<Vec<_>>(), ["two", "three"]);
}

/// `cargo xtask seeds --mutants` finds every planted bug; this test looks at the report of one.
#[cfg(feature = "mutants")]
#[test]
fn a_planted_bug_is_found_and_its_report_has_its_name_and_a_trace() {
    use crate::cluster::mutants::Mutant;
    let mutants = Mutant::all();
    assert!(mutants.len() >= 12, "{} planted bugs", mutants.len());
    let options = Options {
        mutant: mutants.first().copied(),
        trace: false,
        ..Options::default()
    };
    let found = (1..=2000).find_map(|seed| run_seed(seed, options).err());
    let failure = found.expect("the bug is found");
    let (replay, name) = (failure.replay(), mutants[0].name());
    assert!(replay.contains(name), "{replay}");
    assert!(!failure.trace.is_empty(), "{name} fails without a trace");
}
