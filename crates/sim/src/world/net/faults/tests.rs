//! How faults are drawn, and where damage may hit.

use super::{Fate, FaultRates, damage};
use crate::world::rng::Rng;

#[test]
fn a_sound_network_draws_nothing() {
    let mut rng = Rng::new(1);
    let before = rng.clone().next_u64();
    let fate = Fate::draw(&FaultRates::NONE, &mut rng);
    assert!(!fate.lost && fate.damage.is_none() && fate.late.is_none());
    assert!(fate.again.is_none() && fate.stall.is_none());
    assert_eq!(
        rng.next_u64(),
        before,
        "switching faults off must not shift the stream"
    );
}

#[test]
fn every_kind_of_fault_is_drawn_by_some_seed() {
    let (mut lost, mut damaged, mut late, mut again, mut stalled) = (0, 0, 0, 0, 0);
    for seed in 0..200 {
        let mut rng = Rng::new(seed);
        let rates = FaultRates::draw(&mut rng);
        for _ in 0..100 {
            let fate = Fate::draw(&rates, &mut rng);
            lost += u32::from(fate.lost);
            damaged += u32::from(fate.damage.is_some());
            late += u32::from(fate.late.is_some());
            again += u32::from(fate.again.is_some());
            stalled += u32::from(fate.stall.is_some());
        }
    }
    assert!(lost > 100 && damaged > 10 && late > 100 && again > 100 && stalled > 5);
}

#[test]
fn bits_flip_only_within_reach_or_the_length_changes() {
    let mut rng = Rng::new(3);
    for _ in 0..2000 {
        let mut bytes = vec![0_u8; 64];
        damage(&mut bytes, &(8..12), &mut rng);
        if bytes.len() == 64 {
            assert!(bytes[..8].iter().chain(&bytes[12..]).all(|&byte| byte == 0));
        }
    }
}

#[test]
fn frames_shorter_than_the_reach_are_left_alone() {
    let mut rng = Rng::new(4);
    for _ in 0..100 {
        let mut bytes = vec![1_u8; 4];
        damage(&mut bytes, &(8..12), &mut rng);
        assert!(bytes.iter().take(4).all(|&byte| byte == 1));
    }
}
