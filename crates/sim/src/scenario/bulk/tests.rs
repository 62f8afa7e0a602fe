//! The experiment measures what it claims to measure, and the protocol is as fast as the project
//! promises.

use dunlin_core::{Nanos, SessionOptions};

use super::{Bulk, run};
use crate::world::rng::Ppm;

fn with(loss: Ppm, reorder: Ppm, requests: u32) -> Bulk {
    Bulk {
        loss,
        reorder,
        requests,
        ..Bulk::default()
    }
}

#[test]
fn a_run_follows_from_its_seed() {
    let bulk = with(Ppm(1000), Ppm(1000), 1);
    let first = run(&bulk).unwrap();
    assert_eq!(run(&bulk).unwrap(), first);
    assert_ne!(run(&Bulk { seed: 2, ..bulk }).unwrap(), first);
}

#[test]
fn the_round_trip_is_what_it_should_be() {
    let bulk = Bulk {
        request_bytes: 4096,
        requests: 100,
        ..Bulk::default()
    };
    let each = Nanos(run(&bulk).unwrap().took.0 / 100);
    assert!((5_900..6_500).contains(&each.0), "{each:?}");
}

#[test]
fn losses_cost_little() {
    let gbps = |loss| run(&with(Ppm(loss), Ppm(0), 4)).unwrap().gbps;
    let sound = gbps(0);
    assert!(sound > 95.0, "{sound} Gb/s without losses");
    for (loss, least) in [(1_000, 0.9), (10_000, 0.5)] {
        let share = gbps(loss) / sound;
        assert!(share >= least, "{share} of the full rate at {loss} ppm");
    }
}

#[test]
fn small_requests_take_at_most_three_times_as_long_with_large_messages() {
    let rtts = |requests, request_bytes, answer_bytes| {
        let bulk = Bulk {
            requests,
            request_bytes,
            answer_bytes,
            small_requests: 300,
            credits: SessionOptions::default().credits,
            ..Bulk::default()
        };
        run(&bulk).unwrap().small_rtt
    };
    let [_, alone] = rtts(0, 32, 32);
    for (request_bytes, answer_bytes) in [(8 << 20, 32), (32, 8 << 20)] {
        let [p50, p99] = rtts(1, request_bytes, answer_bytes);
        assert!(alone < p50 && p50 <= p99, "{alone:?} {p50:?} {p99:?}");
        assert!(p99 <= alone.times(3), "{alone:?} {p50:?} {p99:?}");
    }
}

#[test]
fn reordering_costs_little() {
    let gbps = |reorder| run(&with(Ppm(0), Ppm(reorder), 4)).unwrap().gbps;
    let sound = gbps(0);
    for (reorder, least) in [(10_000, 0.95), (100_000, 0.93)] {
        let share = gbps(reorder) / sound;
        // The experiment itself runs longer, and reaches a share of 0.95 with a tenth of the
        // packets late.
        assert!(
            share >= least,
            "{share} of the full rate, {reorder} ppm late"
        );
    }
}

#[test]
#[ignore = "takes minutes; prints the table of the experiment"]
fn table() {
    let credits = std::env::var("CREDITS").map_or(Bulk::default().credits, |n| n.parse().unwrap());
    let run = |loss, reorder, requests| {
        let bulk = with(Ppm(loss), Ppm(reorder), requests);
        run(&Bulk { credits, ..bulk }).unwrap()
    };
    let base = run(0, 0, 20);
    println!("none: {base:?}");
    let rows = [
        (0, 10_000, 20),
        (0, 100_000, 20),
        (0, 500_000, 20),
        (10_000, 0, 20),
        (1_000, 0, 60),
        (100, 0, 500),
        (10, 0, 5000),
    ];
    for (loss, reorder, requests) in rows {
        let row = run(loss, reorder, requests);
        println!("{loss} {reorder}: {:.4} {row:?}", row.gbps / base.gbps);
    }
}
