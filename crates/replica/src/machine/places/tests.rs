//! Places against a map of keys.

use std::collections::BTreeMap;

use dunlin_core::Rng;

use super::*;

fn item(version: u64) -> Item {
    Item {
        version,
        expires: 0,
        value: version.to_le_bytes().to_vec(),
    }
}

#[test]
fn a_guess_is_the_place_of_its_key_or_there_is_none() {
    let mut rng = Rng::new(5);
    let (mut places, mut all) = (Places::new(), BTreeMap::new());
    let mut right = 0;
    let guess = |places: &Places, key: &[u8]| places.guess(hash_of(key), key);
    for version in 1..100_000 {
        let key = rng.below(257).to_be_bytes();
        let guessed = guess(&places, &key);
        if let Some(place) = guessed {
            assert_eq!(all.get(&key), Some(&(place.0, places.item(place).version)));
            right += 1;
        }
        match all.remove(&key) {
            Some((number, before)) if rng.below(4) == 0 => {
                assert_eq!(places.remove(PlaceNum(number)), item(before));
                assert_eq!(guess(&places, &key), None);
                assert_eq!(guess(&places, b""), None);
            }
            Some((number, _)) => {
                *places.item_mut(PlaceNum(number)) = item(version);
                if guessed.is_none() {
                    places.note(hash_of(&key), PlaceNum(number));
                }
                assert_eq!(guess(&places, &key), Some(PlaceNum(number)));
                all.insert(key, (number, version));
            }
            None => {
                let place = places.add(hash_of(&key), &key, item(version));
                all.insert(key, (place.0, version));
            }
        }
    }
    assert!(right > 50_000, "{right} guesses were right");
    assert_eq!(places.chunks.len(), 1, "places are used again");
}

#[test]
fn a_chunk_is_full_before_the_next_one() {
    let mut places = Places::new();
    for version in 0..3 * CHUNK as u64 {
        let key = version.to_be_bytes();
        let place = places.add(hash_of(&key), &key, item(version));
        assert_eq!(u64::from(place.0), version);
    }
    assert_eq!(places.chunks.len(), 3);
    let second = u32::try_from(CHUNK).unwrap();
    assert_eq!(places.item(PlaceNum(second)).version, second.into());
    assert_eq!(places.drop_chunk(), Some(3 * CHUNK / 4 * 64), "of guesses");
    for _ in 0..3 {
        assert_eq!(places.drop_chunk(), Some(CHUNK * size_of::<Keyed>()));
    }
    assert_eq!(places.drop_chunk(), None);
    assert!(places.is_empty());
    assert_eq!(places.guess(hash_of(b"key"), b"key"), None);
}
