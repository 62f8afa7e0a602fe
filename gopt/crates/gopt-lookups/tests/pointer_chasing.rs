//! Pointer chasing, compared with a walk that rebuilds the chain from single steps.

mod agreement;

use gopt_lookups::pointer_chasing::Chain;
use gopt_lookups::random::Random;
use gopt_lookups::{Lookup, forms, work::Tight};

#[test]
fn a_chain_is_a_single_cycle() {
    for len in [1, 2, 3, 1000] {
        let chain = Chain::new(len, 1, &mut Random::new(3)).unwrap();
        let mut seen = vec![false; len];
        let mut at = 0;
        for _ in 0..len {
            assert!(!std::mem::replace(&mut seen[at as usize], true));
            at = chain.find(at);
        }
        assert_eq!((at, chain.len()), (0, len));
    }
    assert!(Chain::new(0, 1, &mut Random::new(3)).unwrap().is_empty());
    assert!(Chain::new(1 << 40, 1, &mut Random::new(3)).is_err());
}

#[test]
fn all_forms_agree() {
    let step = Chain::new(5000, 1, &mut Random::new(1)).unwrap();
    let keys: Vec<u32> = (0..777).map(|at| at * 5).collect();
    for depth in [0, 1, 2, 100] {
        // The same seed makes the same chain.
        let chain = Chain::new(5000, depth, &mut Random::new(1)).unwrap();
        agreement::check_with_c(&chain, &keys, |key| {
            (0..depth).fold(key, |at, _| step.find(at))
        });
    }
}

#[test]
fn the_shorter_side_bounds_every_form() {
    let chain = Chain::new(100, 1, &mut Random::new(1)).unwrap();
    let mut out = [u32::MAX; 3];
    forms::hand(0, &chain, &Tight, &[1, 2], &mut out);
    forms::plain(&chain, &Tight, &[1, 2], &mut out);
    forms::gopt(gopt::Batch::<4>::new(), &chain, &Tight, &[1, 2], &mut out);
    assert_eq!(out[2], u32::MAX);
    forms::hand(usize::MAX, &chain, &Tight, &[1, 2, 3, 4], &mut out);
    assert_ne!(out[2], u32::MAX);
}
