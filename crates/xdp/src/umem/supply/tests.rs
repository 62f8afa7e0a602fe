//! Frames for sending under a kernel that gives them back in order, in another order, and one that
//! lies.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::umem::{MIN_FRAMES, Umem};

/// Shares of the region, and the frames of each.
const SHARES: u32 = 4;
const COUNT: usize = (MIN_FRAMES / 2 / SHARES) as usize;

/// The ledger of the share with this number.
fn ledger(share: usize) -> Ledger {
    Umem::new(MIN_FRAMES)
        .unwrap()
        .split(SHARES)
        .1
        .swap_remove(share)
}

/// The addresses of the free frames, in order.
fn free(supply: &mut Supply) -> Vec<u64> {
    supply.rooms().map(|(addr, _)| addr).collect()
}

/// Lends frames, and returns their addresses.
fn lend(supply: &mut Supply, count: usize) -> Vec<u64> {
    let mut lent = free(supply);
    lent.truncate(count);
    supply.lend(count);
    lent
}

/// Gives frames back; returns whether each was the kernel's.
fn give_back(supply: &mut Supply, frames: &[u64]) -> Vec<bool> {
    supply.take_back(|back| frames.iter().map(|addr| back.take(*addr)).collect())
}

#[test]
fn frames_that_all_come_back_are_the_next_ones_again() {
    let mut supply = ledger(1).own();
    let all = free(&mut supply);
    assert_eq!(all.len(), COUNT);
    for count in [1, 5, COUNT] {
        let lent = lend(&mut supply, count);
        assert_eq!((lent.as_slice(), supply.lent()), (&all[..count], count));
        assert_eq!(supply.is_empty(), count == COUNT);
        assert_eq!(give_back(&mut supply, &lent), vec![true; count]);
        assert_eq!((free(&mut supply), supply.lent()), (all.clone(), 0));
    }
}

#[test]
fn frames_come_back_in_parts_and_in_any_order() {
    let mut supply = ledger(2).own();
    let lent = lend(&mut supply, 6);
    let [a, b, c, d, e, f] = lent[..] else {
        panic!("not exactly six frames");
    };
    assert_eq!(give_back(&mut supply, &[a, b]), [true; 2]);
    assert_eq!(free(&mut supply)[..2], [a, b]);
    assert_eq!(give_back(&mut supply, &[e, c, f + 9]), [true; 3]);
    assert_eq!(free(&mut supply)[..5], [e, c, f, a, b]);
    assert_eq!(lend(&mut supply, 1), [e]);
    assert_eq!(give_back(&mut supply, &[e, d]), [true; 2]);
    assert_eq!(supply.lent(), 0);
    assert_eq!(free(&mut supply).len(), COUNT);
}

#[test]
fn only_the_kernels_frames_come_back() {
    let mut supply = ledger(1).own();
    let lent = lend(&mut supply, 3);
    assert!(supply.open());
    let opened = lent[2] + FRAME as u64;
    let start = lent[0] / FRAME as u64 * FRAME as u64;
    let lies = [
        // Free, and being filled.
        lent[2] + 5 * FRAME as u64,
        opened,
        // Of other shares, and of none.
        start - 1,
        start + (COUNT * FRAME) as u64,
        0,
        u64::MAX,
    ];
    assert_eq!(give_back(&mut supply, &lies), [false; 6]);
    assert_eq!(give_back(&mut supply, &[lent[0], lent[0]]), [true, false]);
    assert_eq!(give_back(&mut supply, &lent), [false, true, true]);
    assert_eq!(supply.close().collect::<Vec<_>>(), [opened]);
    assert_eq!(give_back(&mut supply, &[opened]), [true]);
}

#[test]
fn an_open_datagram_keeps_its_frames_while_others_come_back() {
    let mut supply = ledger(0).own();
    let lent = lend(&mut supply, 2);
    for number in [1, 2] {
        assert!(supply.open());
        supply.opened(usize::from(number) - 1).fill(number);
    }
    assert_eq!(give_back(&mut supply, &lent[..1]), [true]);
    assert_eq!([0, 1].map(|index| supply.opened(index)[FRAME - 1]), [1, 2]);
    let opened: Vec<_> = supply.close().collect();
    assert_eq!(give_back(&mut supply, &opened[..1]), [true]);
    assert_eq!(supply.lent(), 2);
    while supply.open() {}
    supply.discard();
    assert_eq!(free(&mut supply).len(), COUNT - 2);
}

#[test]
#[should_panic(expected = "leaves first")]
fn frames_are_not_lent_in_front_of_an_open_datagram() {
    let mut supply = ledger(0).own();
    supply.open();
    supply.lend(1);
}

#[test]
fn the_next_endpoint_takes_over_the_frames_of_the_last_one() {
    let ledger = ledger(3);
    let mut first = ledger.own();
    let lent = lend(&mut first, 3);
    assert_eq!(give_back(&mut first, &lent[1..2]), [true]);
    assert!(first.open());
    drop(first);
    let mut second = ledger.own();
    let free = free(&mut second);
    assert_eq!((free.len(), second.lent()), (COUNT - 2, 2));
    assert!(!free.contains(&lent[0]) && !free.contains(&lent[2]));
    assert_eq!(give_back(&mut second, &[lent[2], lent[0]]), [true; 2]);
    // As long as an endpoint lives, no other has frames.
    assert!(ledger.own().is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 256 }))]
    #[test]
    fn each_frame_is_free_or_lent(steps in proptest::collection::vec(any::<[u8; 3]>(), 0..60)) {
        let mut supply = ledger(1).own();
        let all: BTreeSet<u64> = free(&mut supply).into_iter().collect();
        let first = *all.first().unwrap();
        let mut kernel: Vec<u64> = Vec::new();
        for [what, count, frame] in steps {
            match what % 3 {
                0 => {
                    let count = usize::from(count % 8).min(COUNT - kernel.len());
                    kernel.extend(lend(&mut supply, count));
                }
                1 => {
                    // In the order in which the kernel got them.
                    let count = usize::from(count % 8).min(kernel.len());
                    let back: Vec<u64> = kernel.drain(..count).collect();
                    prop_assert_eq!(give_back(&mut supply, &back), vec![true; count]);
                }
                _ => {
                    let addr = first + u64::from(frame) % 20 * FRAME as u64 + u64::from(count);
                    let start = addr - addr % FRAME as u64;
                    let known = kernel.iter().position(|it| *it == start);
                    known.map(|at| kernel.remove(at));
                    prop_assert_eq!(give_back(&mut supply, &[addr]), [known.is_some()]);
                }
            }
            let both: BTreeSet<u64> = free(&mut supply).into_iter().chain(kernel.clone()).collect();
            prop_assert_eq!(&both, &all);
            prop_assert_eq!(supply.lent(), kernel.len());
        }
    }
}
