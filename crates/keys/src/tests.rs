//! Keys compared with their bytes.

use proptest::prelude::*;

use super::*;

/// A few different bytes, so that many keys begin alike or end with zeros.
fn bytes(len: std::ops::Range<usize>) -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop::sample::select(vec![0_u8, 1, 255]), len)
}

/// Keys around the length limit.
fn long_or_short() -> impl Strategy<Value = Vec<u8>> {
    (0..SHORT + 4, bytes(0..8)).prop_map(|(len, end)| [vec![7; len], end].concat())
}

fn key(bytes: &[u8]) -> Key {
    Key::from(bytes)
}

fn check_pair(one: &[u8], other: &[u8]) {
    assert_eq!(key(one).cmp(&key(other)), one.cmp(other));
    assert_eq!(key(one) == key(other), one == other);
}

#[test]
fn keys_have_the_order_of_their_bytes_wherever_they_differ() {
    let mut all: Vec<Vec<u8>> = (0..60)
        .flat_map(|len| [0, 1, 255].map(|byte| vec![byte; len]))
        .collect();
    // These pairs differ in one place, or only in their lengths.
    for place in 0..30 {
        let mut one = vec![7; 30];
        one[place] = 8;
        all.push(one[..=place].to_vec());
        one[place] = 0;
        all.extend([one[..place].to_vec(), one[..=place].to_vec(), one]);
    }
    for one in &all {
        assert_eq!(*key(one), one[..]);
        assert_eq!(Key::short(one).is_some(), one.len() <= SHORT);
        all.iter().for_each(|other| check_pair(one, other));
    }
}

#[test]
fn a_clone_of_a_long_key_shares_its_bytes() {
    let long = key(&[7; SHORT + 1]);
    assert!(std::ptr::eq(&*long, &*long.clone()));
}

proptest! {
    #[test]
    fn keys_have_the_order_of_their_bytes(
        begin in bytes(0..SHORT + 4),
        one in bytes(0..8),
        other in bytes(0..8),
    ) {
        check_pair(&[&begin[..], &one].concat(), &[begin, other].concat());
    }

    #[test]
    fn a_map_of_keys_agrees_with_a_map_of_bytes(
        all in prop::collection::vec(long_or_short(), 0..40),
        from in long_or_short(),
    ) {
        use std::collections::BTreeSet;
        use std::ops::Bound;
        let keys: BTreeSet<Key> = all.iter().map(|it| key(it)).collect();
        let plain: BTreeSet<Vec<u8>> = all.into_iter().collect();
        prop_assert!(keys.iter().map(|it| &**it).eq(plain.iter().map(|it| &**it)));
        prop_assert_eq!(keys.contains(&from[..]), plain.contains(&from));
        let rest = keys.range::<[u8], _>((Bound::Included(&from[..]), Bound::Unbounded)).next();
        let expected = plain.range(from..).next();
        prop_assert_eq!(rest.map(|it| &**it), expected.map(|it| &**it));
    }
}
