//! Points of the sweep that take milliseconds, and the faults that the sweep finds in other
//! schemes.

use dunlin_core::Scheme;

use super::{Alone, Case, Family, Grid, cases};

fn case(family: Family, gbps: u32, senders: usize) -> Case {
    Case {
        family,
        gbps,
        rtt_us: 6,
        buffer_kb: 100,
        senders,
        in_flight: 1,
        measured: false,
        noise_us: 0,
        seed: 1,
    }
}

#[test]
fn swift_meets_its_limits_at_small_points() {
    let alone = Alone::default();
    for (family, gbps, senders) in [
        (Family::Incast, 10, 30),
        (Family::Incast, 25, 2),
        (Family::Late, 25, 3),
        (Family::Loss, 25, 2),
        (Family::Two, 10, 2),
        (Family::Echo, 100, 3),
        // If the server does not limit its responses, the share is 0.79.
        (Family::Echo, 10, 5),
    ] {
        let case = case(family, gbps, senders);
        let row = case.run(Scheme::Swift, &alone).unwrap();
        assert!(row.faults().is_empty(), "{case}: {row:?}");
        // Every family has a point with few senders, and the other points take most of the time.
        if senders <= 3 {
            let again = case.run(Scheme::Swift, &alone).unwrap();
            assert_eq!(again, row, "a case is a run");
        }
    }
}

/// Cases with more senders, or with two queues in a row, need a configured round trip
/// (`docs/decisions/congestion-control.md`).
#[test]
fn few_senders_that_measure_the_round_trip_meet_their_limits() {
    let alone = Alone::default();
    let row = |family, gbps, senders, measured| {
        let case = Case {
            measured,
            ..case(family, gbps, senders)
        };
        case.run(Scheme::Swift, &alone).unwrap()
    };
    for (family, gbps, senders) in [
        (Family::Incast, 10, 3),
        (Family::Incast, 25, 2),
        (Family::Late, 25, 3),
        (Family::Loss, 25, 2),
    ] {
        let row = row(family, gbps, senders, true);
        assert!(row.faults().is_empty(), "{row:?}");
    }
    let [told, measured] = [false, true].map(|it| row(Family::Two, 10, 2, it));
    assert!(measured.share < told.share, "{measured:?} and {told:?}");
}

#[test]
fn faults_of_other_schemes_are_found() {
    let alone = Alone::default();
    let faults = |scheme, family, senders| {
        let row = case(family, 10, senders).run(scheme, &alone).unwrap();
        row.faults()
    };
    assert!(faults(Scheme::Timely, Family::Incast, 2).contains(&"share"));
    assert!(faults(Scheme::Timely, Family::Incast, 30).contains(&"jain"));
    let lost = faults(Scheme::None, Family::Incast, 30);
    assert!(lost.contains(&"resent") && lost.contains(&"resent_first"));
}

/// The points at which the original Timely starves a sender forever.
#[test]
fn patched_timely_starves_no_sender() {
    let alone = Alone::default();
    let row = |scheme, family, gbps, senders| {
        let case = Case {
            buffer_kb: 2000,
            ..case(family, gbps, senders)
        };
        case.run(scheme, &alone).unwrap()
    };
    for (family, gbps, senders) in [
        (Family::Incast, 10, 2),
        (Family::Incast, 10, 30),
        (Family::Late, 25, 5),
        (Family::Two, 10, 2),
    ] {
        let row = row(Scheme::PatchedTimely, family, gbps, senders);
        assert!(row.faults().is_empty(), "{row:?}");
    }
    let starved = row(Scheme::Timely, Family::Two, 10, 2);
    assert!(starved.share < 0.1, "{starved:?}");
}

/// Receivers echo marks a round trip late, and paced packets leave at their scheduled time. Without
/// these two measures, the shares of the last two cases were 0.43 and 0.37. When all senders got
/// marks at the same time, the shares of the first two were 0.64 and 0.74.
#[test]
fn dcqcn_recovers_after_the_first_burst() {
    let alone = Alone::default();
    for (gbps, senders, least) in [(10, 2, 0.97), (10, 30, 0.8), (40, 5, 0.97)] {
        let case = Case {
            buffer_kb: 2000,
            ..case(Family::Incast, gbps, senders)
        };
        let row = case.run(Scheme::Dcqcn, &alone).unwrap();
        assert!(row.share >= least && row.jain >= 0.9, "{row:?}");
    }
}

#[test]
fn every_family_has_points_in_both_grids() {
    for family in Family::ALL {
        let [short, whole] = [Grid::Short, Grid::Whole].map(|grid| cases(family, grid, 7).len());
        assert!(short > 0 && whole > 4 * short, "{short} and {whole}");
        assert!(
            cases(family, Grid::Short, 7)
                .iter()
                .all(|case| case.seed == 7)
        );
    }
}

#[test]
fn a_row_also_holds_for_more_memory_if_no_frame_was_dropped() {
    let alone = Alone::default();
    let small = case(Family::Echo, 10, 3);
    let large = Case {
        buffer_kb: 500,
        ..small
    };
    let row = small.run(Scheme::Swift, &alone).unwrap();
    let run = large.run(Scheme::Swift, &alone).unwrap();
    assert_eq!(row.with_more_memory(large, Scheme::Swift), Some(run));
    assert_eq!(
        run.with_more_memory(small, Scheme::Swift),
        None,
        "that is less"
    );
    assert_eq!(row.with_more_memory(large, Scheme::Dcqcn), None, "marks");
    let full = case(Family::Incast, 10, 30);
    let dropped = full.run(Scheme::None, &alone).unwrap();
    let more = Case {
        buffer_kb: 500,
        ..full
    };
    assert_eq!(dropped.with_more_memory(more, Scheme::None), None);
}
