//! Guesses against a map of places.

use std::collections::BTreeMap;

use dunlin_core::Rng;

use super::*;

/// A hash whose lower and upper bits depend on the number.
const fn hash_of(number: u32) -> u32 {
    number.wrapping_mul(0x9e37_79b9).rotate_left(16) ^ number
}

fn guesses(places: u32) -> Guesses {
    let mut guesses = Guesses::new();
    for place in 0..places {
        guesses.grow(place as usize + 1);
        guesses.note(hash_of(place), place);
    }
    guesses
}

fn has(guesses: &Guesses, place: u32) -> bool {
    guesses.of(hash_of(place)).any(|it| it == place)
}

#[test]
fn a_growing_table_forgets_few_guesses() {
    for places in [1, 2, 3, 100, 5000, 30_000, 50_000, 65_536] {
        let guesses = guesses(places);
        let kept = (0..places).filter(|place| has(&guesses, *place)).count();
        assert!(kept * 10 >= places as usize * 9, "{kept} of {places}");
        assert!(guesses.buckets * SHARE < places as usize + SHARE);
    }
}

#[test]
fn a_guess_names_only_places_of_its_hash_and_each_of_them_once() {
    let mut rng = Rng::new(3);
    let (mut guesses, mut noted) = (Guesses::new(), BTreeMap::new());
    for _ in 0..50_000 {
        let place = rng.below(4000);
        guesses.grow(noted.len());
        match noted.remove(&place) {
            Some(hash) => guesses.forget(hash, place),
            None => {
                let hash = rng.below(1000);
                guesses.note(hash, place);
                noted.insert(place, hash);
            }
        }
    }
    let mut found: Vec<_> = (0..1000)
        .flat_map(|hash| guesses.of(hash).map(move |place| (place, hash)))
        .filter(|(place, _)| *place != NONE)
        .collect();
    assert!(
        found
            .iter()
            .all(|(place, hash)| noted.get(place) == Some(hash))
    );
    let count = found.len();
    found.sort_unstable();
    found.dedup();
    assert_eq!(found.len(), count);
    assert!(count * 3 > noted.len() * 2, "{count} of {}", noted.len());
}

#[test]
fn a_table_is_dropped_in_chunks() {
    let mut guesses = guesses(10_000);
    let chunks = guesses.buckets.div_ceil(CHUNK);
    assert_eq!(chunks, 3);
    let bytes: usize = std::iter::from_fn(|| guesses.drop_chunk()).sum();
    assert_eq!(bytes, 10_000_usize.div_ceil(SHARE) * 64);
    assert_eq!(guesses.of(7).count(), 0);
    guesses.note(7, 1);
    assert_eq!(guesses.of(7).count(), 0);
}
