//! A path must have its share of the packets. Seeds without loss are judged separately.

use super::{Shares, Taken};
use crate::world::net::NetCounters;

fn shares(sound: (u64, u64), lossy: (u64, u64)) -> Shares {
    let mut shares = Shares::default();
    let taken = |(packets, of)| Taken { packets, of };
    let fine = NetCounters {
        sent: 100,
        delivered: 100,
        ..NetCounters::default()
    };
    shares.add(taken(sound), &fine, 0);
    let (lost, half) = (NetCounters { lost: 1, ..fine }, lossy.0 / 2);
    shares.add(taken((half, lossy.1)), &lost, 0);
    shares.add(taken((lossy.0 - half, 0)), &fine, 1);
    shares
}

#[test]
fn a_path_that_is_taken_often_enough_passes() {
    assert_eq!(shares((95, 100), (5, 100)).judge([95, 50]), Ok(()));
}

#[test]
fn a_path_that_is_rare_without_loss_proves_nothing() {
    let why = shares((94, 100), (100, 100)).judge([95, 50]).unwrap_err();
    assert!(why.contains("94.0 %") && why.contains("95 %"), "{why}");
}

#[test]
fn a_path_that_is_rare_in_all_seeds_proves_nothing() {
    let why = shares((100, 100), (99, 300)).judge([95, 50]).unwrap_err();
    assert!(why.contains("49.7 %") && why.contains("50 %"), "{why}");
}

#[test]
fn a_path_that_no_packet_took_or_could_take_proves_nothing() {
    assert!(shares((0, 100), (0, 100)).judge([95, 50]).is_err());
    assert!(shares((0, 0), (100, 100)).judge([95, 50]).is_err());
}
