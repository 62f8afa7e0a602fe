//! The map behaves like the standard library's.

use std::collections::BTreeMap;

use super::*;
use crate::Rng;

/// Compares the results of all methods, and checks the invariants.
fn compare(map: &Map<u32, u32>, model: &BTreeMap<u32, u32>, near: u32) {
    assert!(map.iter().eq(model.iter()));
    assert!(map.iter().rev().eq(model.iter().rev()));
    assert!(map.keys().eq(model.keys()) && map.values().eq(model.values()));
    assert_eq!(map.len(), model.len());
    assert_eq!(map.is_empty(), model.is_empty());
    assert_eq!(
        map.first().map(|(key, value)| (key, value)),
        model.iter().next()
    );
    for key in [near, near + 1, u32::MAX] {
        assert_eq!(map.get(&key), model.get(&key));
        assert_eq!(map.contains_key(&key), model.contains_key(&key));
        assert!(map.from(&key).eq(model.range(key..)));
    }
    for run in &map.runs {
        assert!(!run.is_empty() && run.len() <= RUN);
    }
    // A removal that leaves two short neighbours joins them.
    for pair in map.runs.windows(2) {
        assert!(pair[0].len() + pair[1].len() > RUN / 2);
    }
}

#[test]
fn the_map_does_what_the_standard_tree_does() {
    for seed in 0..20 {
        let mut rng = Rng::new(seed);
        let (mut map, mut model) = (Map::new(), BTreeMap::new());
        let keys = 1 + rng.below(400);
        for step in 0..2000 {
            let key = rng.below(keys);
            // The map grows, then shrinks, again and again.
            let grows = step % 1000 < 500;
            match rng.below(10) {
                0 => assert_eq!(map.pop_first(), model.pop_first()),
                1 => {
                    let ours = *map.get_or_insert(key, step);
                    assert_eq!(ours, *model.entry(key).or_insert(step));
                }
                2 => {
                    map.values_mut().for_each(|value| *value += 1);
                    model.values_mut().for_each(|value| *value += 1);
                }
                3 => {
                    if let Some(value) = map.get_mut(&key) {
                        *value = step;
                    }
                    model.entry(key).and_modify(|value| *value = step);
                }
                more if (more < 8) == grows => {
                    assert_eq!(map.insert(key, step), model.insert(key, step));
                }
                _ => assert_eq!(map.remove(&key), model.remove(&key)),
            }
            compare(&map, &model, rng.below(keys));
        }
    }
}

#[test]
fn keys_that_only_grow_fill_their_runs() {
    let mut set = Set::new();
    for key in 0..320 {
        assert!(set.insert(key));
        assert!(!set.insert(key));
    }
    assert_eq!(set.0.runs.len(), 320 / RUN);
    // Removes the smallest key first, as a route does with waiting attempts.
    for key in 0..320 {
        assert_eq!(set.first(), Some(&key));
        assert!(set.contains(&key));
        assert_eq!(set.pop_first(), Some(key));
        assert!(!set.remove(&key) && !set.contains(&key));
        assert!(set.from(&0).next() == set.iter().next());
    }
    assert!(set.is_empty() && set.0.runs.is_empty());
}
