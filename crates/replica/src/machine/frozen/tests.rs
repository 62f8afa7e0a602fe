//! Maps that change while they are read.

use dunlin_sim::Rng;

use super::*;

/// Changes a key, and notes its old value first, as the owners of maps do.
fn change(map: &mut BTreeMap<u64, u64>, frozen: &mut Frozen<u64, u64>, key: u64, to: Option<u64>) {
    let before = match to {
        Some(value) => map.insert(key, value),
        None => map.remove(&key),
    };
    frozen.note(&key, || (key, before));
}

#[test]
fn a_map_that_changes_is_read_as_it_was() {
    for seed in 0..300 {
        let mut rng = Rng::new(seed);
        let keys = 1 + rng.below(60);
        let all = (0..keys).map(|key| (key, rng.below(1000)));
        let mut map: BTreeMap<u64, u64> = all.collect();
        let then = map.clone();
        let (mut frozen, mut read) = (Frozen::none(), Vec::new());
        let mut begun = 0;
        frozen.begin();
        loop {
            let mut budget = Budget {
                bytes: usize::MAX,
                keys: 1 + rng.index(5),
            };
            let most = budget.keys;
            let count = read.len();
            let is_whole = frozen.read(
                |after| rest_of(&map, after),
                &mut budget,
                |key, value, from, _| {
                    // Some values are read in three parts, between which they may change.
                    assert_eq!(from, begun, "seed {seed}");
                    if value % 3 == 0 && from < 2 {
                        begun += 1;
                        return Written::Part(1);
                    }
                    begun = 0;
                    read.push((*key, *value));
                    Written::Rest(1)
                },
            );
            assert!(read.len() - count <= most, "seed {seed}");
            if is_whole {
                break;
            }
            for _ in 0..rng.below(8) {
                let key = rng.below(80);
                let to = rng.one_in(2).then(|| rng.below(1000));
                change(&mut map, &mut frozen, key, to);
            }
        }
        let then: Vec<(u64, u64)> = then.into_iter().collect();
        assert_eq!(read, then, "seed {seed}");
        assert!(!frozen.is_under_way());
    }
}

#[test]
fn inserted_keys_count_in_a_slice_too() {
    let (mut map, mut frozen) = (BTreeMap::new(), Frozen::none());
    frozen.begin();
    (0..100).for_each(|key| change(&mut map, &mut frozen, key, Some(key)));
    let mut slices = 0;
    let is_whole = |frozen: &mut Frozen<u64, u64>| {
        let mut budget = Budget { bytes: 9, keys: 10 };
        let put = |_: &u64, _: &u64, _, _| unreachable!("there was no key");
        frozen.read(|after| rest_of(&map, after), &mut budget, put)
    };
    while !is_whole(&mut frozen) {
        slices += 1;
    }
    assert_eq!(slices, 9, "the tenth is the last");
}

#[test]
fn bytes_end_a_slice() {
    let map: BTreeMap<u64, u64> = (0..10).map(|key| (key, key)).collect();
    let (mut frozen, mut count) = (Frozen::none(), 0);
    frozen.begin();
    let mut budget = Budget {
        bytes: 25,
        keys: 100,
    };
    let is_whole = frozen.read(
        |after| rest_of(&map, after),
        &mut budget,
        |_, _, _, _| {
            count += 1;
            Written::Rest(10)
        },
    );
    assert!(!is_whole);
    assert_eq!(count, 3);
}
