//! The experiment measures what it says, and the protocol holds what the project promises.

use dunlin_core::Nanos;

use super::{Bulk, run};
use crate::rng::Ppm;

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
#[ignore = "takes minutes; prints the table of the experiment"]
fn table() {
    let credits = std::env::var("CREDITS").map_or(256, |n| n.parse().unwrap());
    let base = run(&Bulk {
        credits,
        ..with(Ppm(0), Ppm(0), 20)
    })
    .unwrap();
    println!("none {base:?}");
    let rows = [
        (10_000, 0, 20),
        (1_000, 0, 60),
        (100, 0, 500),
        (10, 0, 5000),
        (0, 10_000, 20),
        (0, 100_000, 20),
        (0, 500_000, 20),
    ];
    for (loss, reorder, requests) in rows {
        let row = run(&Bulk {
            credits,
            ..with(Ppm(loss), Ppm(reorder), requests)
        })
        .unwrap();
        println!("{loss} {reorder}: {:.4} {row:?}", row.gbps / base.gbps);
    }
}
