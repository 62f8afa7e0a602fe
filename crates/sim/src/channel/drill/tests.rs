//! Drains of each drill; `cargo xtask seeds --drains` runs more of them.

use super::*;

#[test]
fn every_call_ends_with_its_value_and_drains_are_short() {
    for drill in Drill::ALL {
        for seed in 1..=2 {
            let drains = run_drains(seed, drill).unwrap_or_else(|why| panic!("{why}"));
            assert_eq!(drains.took.len(), ROUNDS as usize);
            // The load is real: without it, drains would take no time.
            let longest = drains.took.iter().max().unwrap();
            assert!(*longest > Nanos::from_millis(30), "{drill}: {longest:?}");
            assert!(drains.report.counters.free_repeats > 0, "{drill}");
        }
    }
}

#[test]
fn a_seed_determines_its_drill() {
    let run = || run_drains(3, Drill::ALL[1]);
    assert_eq!(run(), run());
}
