//! Compares the hash with two hashers of the standard library. `SipHasher` takes a key, and has two
//! rounds for each block and four at the end. `DefaultHasher` has a key of zeros, one round for
//! each block and three at the end, like [`route`].

use std::hash::{DefaultHasher, Hasher};

use super::{Seed, route, sip};

fn bytes(len: usize) -> Vec<u8> {
    (0..len)
        .map(|at| u8::try_from(at * 7 % 251).unwrap())
        .collect()
}

#[test]
#[expect(deprecated, reason = "the only hasher of std that takes a key")]
fn keyed_hashes_are_those_of_std() {
    for len in 0..=250 {
        let seed = [0x0123_4567_89ab_cdef, 0x9e37_79b9_7f4a_7c15 >> (len % 64)];
        let mut theirs = std::hash::SipHasher::new_with_keys(seed[0], seed[1]);
        theirs.write(&bytes(len));
        assert_eq!(sip::<2, 4>(seed, &bytes(len)), theirs.finish(), "{len}");
    }
}

#[test]
fn routing_hashes_are_those_of_std() {
    for len in 0..=250 {
        let mut theirs = DefaultHasher::new();
        theirs.write(&bytes(len));
        assert_eq!(route(&bytes(len)), theirs.finish(), "{len}");
    }
}

#[test]
fn the_secret_changes_every_hash_and_is_not_printed() {
    let one = Seed::new([1, 2]);
    let other = Seed::new([1, 3]);
    assert_ne!(one.hash(b"key"), other.hash(b"key"));
    assert_ne!(one.hash(b"key"), route(b"key"));
    assert_eq!(format!("{one:?}"), "Seed(secret)");
}
