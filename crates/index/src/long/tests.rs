//! Long keys have the order of their bytes, and each cell is freed once.

use super::*;

/// Keys with equal heads and words, with zeros at their ends, and of all shelves, and shorter ones.
fn all() -> Vec<Vec<u8>> {
    let mut keys: Vec<Vec<u8>> = vec![Vec::new(), b"k".to_vec(), vec![7; HEAD], vec![7; SHORT]];
    for len in [SHORT + 1, 26, 27, 33, 34, 35, 64, 100, 101, 200, MAX_KEY] {
        for last in [0, 6, 7, 8] {
            for place in [0, HEAD - 1, HEAD, 17, 18, SHORT, len - 1] {
                let mut key = vec![7; len];
                key[place] = last;
                keys.push(key);
            }
        }
    }
    keys
}

#[test]
fn long_keys_have_the_order_of_their_bytes() {
    let shelves = LongKeys::default();
    for left in all().iter().filter(|key| is_long(key)) {
        let kept = shelves.keep(left);
        assert_eq!(&*kept.to_key(), &left[..]);
        assert_eq!(&*kept.clone().to_key(), &left[..]);
        for right in all() {
            let order = left.cmp(&right);
            assert_eq!(kept.compare(&right), order, "{left:?} {right:?}");
            assert_eq!(Sought(&right).compare(&kept), order.reverse());
            assert_eq!(Sought(&right).equivalent(&kept), order.is_eq());
            if is_long(&right) {
                let right = shelves.keep(&right);
                assert_eq!(kept.cmp(&right), order);
                assert_eq!(kept == right, order.is_eq());
            }
        }
    }
    assert_eq!(shelves.taken(), 0);
}

#[test]
fn a_cell_is_freed_once_even_if_its_key_is_dropped_after_its_deletion() {
    let shelves = LongKeys::default();
    let keep = |byte| shelves.keep(&[byte; 40]);
    let first = keep(1);
    let copy = first.clone();
    assert_eq!(shelves.taken(), 2);
    first.chunk.free(first.cell, first.frees);
    assert_eq!(shelves.taken(), 1);
    // The next key gets the cell, and the drop of the first one does not take it away.
    let second = keep(2);
    assert_eq!((second.cell, shelves.taken()), (first.cell, 2));
    drop(first);
    assert_eq!(shelves.taken(), 2);
    assert_eq!(&*second.to_key(), &[2; 40]);
    assert_eq!(&*copy.to_key(), &[1; 40]);
    drop((second, copy));
    assert_eq!(shelves.taken(), 0);
}

#[test]
fn the_cell_of_a_deleted_key_is_free_after_all_guards() {
    let shelves = LongKeys::default();
    let guard = Guard::new();
    let key = shelves.keep(&[1; 100]);
    key.free_later(&guard);
    for _ in 0..100 {
        Guard::new().accelerate();
    }
    assert_eq!(shelves.taken(), 1);
    drop(guard);
    let mut rounds = 0;
    while shelves.taken() > 0 {
        Guard::new().accelerate();
        rounds += 1;
        assert!(rounds < 1_000_000, "the cell is never freed");
    }
    drop(key);
    assert_eq!(shelves.taken(), 0);
}
