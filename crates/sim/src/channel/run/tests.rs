//! Seeds of channels cover every kind of event, and a seed determines its run.

use super::*;

#[test]
fn seeds_cover_every_kind_of_event() {
    let (mut total, mut judged) = (Counters::default(), Judged::default());
    for seed in 1..=480 {
        let report = run_seed(seed, Options::default()).unwrap_or_else(|why| panic!("{why}"));
        total = total.plus(&report.counters);
        judged = judged.plus(report.judged);
    }
    let reached = [
        total.answered,
        total.expired,
        total.no_server,
        total.cancelled,
        total.free_repeats,
        total.paid_repeats,
        total.hedges,
        total.unpaid,
        total.losses,
        total.drains,
    ];
    assert!(reached.iter().all(|count| *count > 10), "{total:?}");
    let Judged {
        equal, slow, left, ..
    } = judged;
    assert!(equal > 20 && slow > 4 && left > 3, "{judged:?}");
    assert!(judged.within_ten > 1, "{judged:?}");
}

#[test]
fn a_seed_determines_its_run() {
    for seed in 1..=10 {
        let run = || run_seed(seed, Options::default());
        assert_eq!(run(), run());
    }
}
