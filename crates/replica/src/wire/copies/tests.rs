//! Copies that share a block, and copies that need one of their own.

use super::*;

/// Distinct bytes of this length.
fn bytes(number: u8, len: usize) -> Vec<u8> {
    (0..=u8::MAX)
        .cycle()
        .skip(number.into())
        .take(len)
        .collect()
}

#[test]
fn copies_lie_one_after_the_other_and_keep_their_bytes() {
    let mut copies = Copies::new();
    let lens = [96, 1, 0, BLOCK / 2, BLOCK / 2, 3, 2 * BLOCK, 96, 96];
    let all: Vec<_> = (0..)
        .zip(lens)
        .map(|(number, len)| bytes(number, len))
        .collect();
    let shared: Vec<_> = all.iter().map(|it| copies.copy(it)).collect();
    for (copy, bytes) in shared.iter().zip(&all) {
        assert_eq!(copy.0, bytes);
    }
    let end_of = |copy: &Shared| copy.0.as_ptr_range().end;
    assert_eq!(end_of(&shared[0]), shared[1].0.as_ptr());
    assert_eq!(end_of(&shared[7]), shared[8].0.as_ptr());
}

#[test]
fn the_next_copy_has_all_bytes_that_were_added() {
    let mut copies = Copies::new();
    let long = bytes(1, BLOCK - 10);
    copies.add(&long);
    let first = copies.take();
    assert_eq!(copies.add(b"does not fit"), 12);
    assert_eq!(copies.add(b", goes on"), 21);
    assert_eq!(copies.take().0, "does not fit, goes on");
    copies.add(b"refused");
    copies.clear();
    copies.add(b"taken");
    assert_eq!(copies.take().0, "taken");
    assert_eq!(first.0, long);
}
