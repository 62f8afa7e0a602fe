//! Orders of keys against a map.

use std::collections::BTreeMap;

use dunlin_core::Rng;

use super::*;

/// An order with its places, and a map with the same keys.
struct Both {
    order: Order,
    places: Places,
    map: BTreeMap<Vec<u8>, u64>,
}

impl Both {
    const fn new() -> Self {
        Self {
            order: Order::new(),
            places: Places::new(),
            map: BTreeMap::new(),
        }
    }

    fn add(&mut self, key: &[u8], version: u64) {
        let item = || Item {
            version,
            expires: 0,
            value: Vec::new(),
        };
        let (hash, places) = (hash_of(key), &mut self.places);
        let found = self.order.find_or_add(hash, key, places, item);
        let found = found.map(|place| places.item(place).version);
        assert_eq!(found, self.map.get(key).copied(), "{key:?}");
        self.map.entry(key.to_vec()).or_insert(version);
    }

    fn remove(&mut self, key: &[u8]) {
        let place = self.order.remove(hash_of(key), key, &self.places);
        let version = place.map(|place| self.places.remove(place).version);
        assert_eq!(version, self.map.remove(key), "{key:?}");
    }

    fn check(&self) {
        assert_eq!(self.order.len(), self.map.len());
        self.check_from(Bound::Unbounded);
        let blocks: Vec<_> = self.order.blocks.values().map(|it| it.len()).collect();
        assert!(!blocks.iter().skip(1).any(|len| *len == 0), "{blocks:?}");
        let joined = blocks.windows(2).filter(|it| it[0] + it[1] < FEW);
        assert_eq!(joined.count(), 0, "{blocks:?}");
    }

    fn check_from(&self, start: Bound<&[u8]>) {
        let all = self.order.from(start.map(Key::from), &self.places);
        let all: Vec<_> = all.map(|it| self.places.key(it).to_vec()).collect();
        let expected = self.map.range::<[u8], _>((start, Bound::Unbounded));
        assert!(all.iter().eq(expected.map(|it| it.0)), "{start:?}");
    }
}

/// A short key or a long one.
fn key(rng: &mut Rng, keys: u32) -> Vec<u8> {
    let number = rng.below(keys).to_be_bytes();
    match number[3] % 3 {
        0 => [&[7; 30][..], &number].concat(),
        _ => number.to_vec(),
    }
}

#[test]
fn an_order_agrees_with_a_map_while_keys_come_and_go() {
    let mut rng = Rng::new(9);
    let mut both = Both::new();
    for round in 0..40 {
        // Rounds in which more keys come than go, and the other way round.
        let removed = [1, 3][round / 4 % 2];
        for version in 0..500 {
            let key = key(&mut rng, 3000);
            match rng.below(4) < removed {
                true => both.remove(&key),
                false => both.add(&key, version),
            }
            let found = both.order.find(hash_of(&key), &key, &both.places);
            assert_eq!(found.is_some(), both.map.contains_key(&key));
        }
        both.check();
        let start = key(&mut rng, 3000);
        both.check_from(Bound::Included(&start));
        both.check_from(Bound::Excluded(&start));
    }
}

#[test]
fn keys_in_order_and_against_it_are_read_in_order() {
    for is_down in [false, true] {
        let mut both = Both::new();
        for number in 0..1000_u32 {
            let number = if is_down { 1000 - number } else { number };
            both.add(&number.to_be_bytes(), number.into());
        }
        both.check();
    }
}

#[test]
fn an_order_without_keys_is_one_block_at_most() {
    let mut both = Both::new();
    both.check();
    for number in 0..500_u32 {
        both.add(&number.to_be_bytes(), 1);
    }
    for number in 0..500_u32 {
        both.remove(&number.to_be_bytes());
    }
    both.check();
    assert_eq!(both.order.blocks.len(), 1);
}

/// Keys that come in descending order leave full halves, next to which no other block fits.
#[test]
fn a_block_that_becomes_empty_beside_a_half_full_one_goes() {
    let mut both = Both::new();
    for number in (0..1000_u32).rev() {
        both.add(&number.to_be_bytes(), 1);
    }
    for number in (0..1000_u32).rev() {
        both.remove(&number.to_be_bytes());
        both.check();
    }
}

#[test]
fn all_places_can_be_moved_out() {
    let mut both = Both::new();
    for number in 0..500_u32 {
        both.add(&number.to_be_bytes(), 1);
    }
    let mut all: Vec<_> = std::iter::from_fn(|| both.order.pop()).collect();
    all.sort_unstable();
    all.dedup();
    assert_eq!((all.len(), both.order.len()), (500, 0));
    assert!(both.order.blocks.is_empty());
}
