//! The shared rings under loom: two endpoints that fill and complete at the same time, and a
//! kernel.

use loom::sync::Arc;
use loom::thread;

use super::*;
use crate::ring::loom_rings::Shared;

const SHARES: Shares = Shares {
    start: 0,
    bytes: 100,
    count: 2,
    frames: 2,
};

/// Both rings of a queue, over the memory that its kernel sees.
fn rings(fill: &Shared, completion: &Shared) -> Arc<SharedRings> {
    Arc::new(SharedRings::new(
        Producer::new(fill.memory()),
        Consumer::new(completion.memory()),
        SHARES,
    ))
}

/// Adds the completed frames of a share to `taken`: first the one that is expected, then others.
fn take(rings: &SharedRings, share: usize, taken: &mut Vec<u64>) {
    let first = share as u64 * SHARES.bytes;
    let own = first..first + SHARES.bytes;
    let expected = first + 7;
    let (count, has_others) = rings.take_expected(share, &[usize::try_from(expected).unwrap()]);
    assert!(count <= 1, "it comes once");
    taken.extend(std::iter::repeat_n(expected, count));
    if !has_others {
        return;
    }
    let bad = rings.take_completed(share, |addr| {
        let is_own = own.contains(&addr);
        taken.extend(is_own.then_some(addr));
        is_own
    });
    assert_eq!(bad, 0, "each frame is of a share");
}

#[test]
fn each_completion_reaches_its_endpoint_once() {
    loom::model(|| {
        let (fill, completion) = (Shared::new(), Shared::new());
        let rings = rings(&fill, &completion);
        let mut kernel = Producer::<u64>::new(completion.memory());
        assert!(kernel.push(7) && kernel.push(107));
        let (other, ring) = (rings.clone(), completion.clone());
        let second = thread::spawn(move || {
            let _keeps = ring;
            let mut taken = Vec::new();
            take(&other, 1, &mut taken);
            taken
        });
        kernel.publish();
        let mut of_first = Vec::new();
        take(&rings, 0, &mut of_first);
        let mut of_second = second.join().expect("a model that panics has failed");
        // Entries that came after the first calls come with the next ones.
        take(&rings, 0, &mut of_first);
        take(&rings, 1, &mut of_second);
        assert_eq!((of_first, of_second), (vec![7], vec![107]));
    });
}

#[test]
fn frames_of_two_endpoints_reach_the_kernel_whole_and_once() {
    loom::model(|| {
        let (fill, completion) = (Shared::new(), Shared::new());
        let rings = rings(&fill, &completion);
        let (other, ring) = (rings.clone(), fill.clone());
        let second = thread::spawn(move || {
            let _keeps = ring;
            other.fill(|ring| assert!(ring.push(2)));
        });
        let mut kernel = Consumer::<u64>::new(fill.memory());
        let mut seen = Vec::new();
        rings.fill(|ring| assert!(ring.push(1)));
        kernel.available(1);
        seen.extend(kernel.pop());
        second.join().expect("a model that panics has failed");
        kernel.available(2);
        seen.extend(std::iter::from_fn(|| kernel.pop()));
        seen.sort_unstable();
        assert_eq!(seen, [1, 2]);
        assert!(!kernel.is_broken());
    });
}
