//! Checks that all trees together have the order of the keys' bytes, at the borders of words.

use super::*;
use crate::range::MAX_KEY;

/// Keys around one word and of all trees, in order.
const KEYS: [&[u8]; 12] = [
    b"",
    b"aaaaaaa",
    b"aaaaaaa\0",
    b"aaaaaaa\0\0",
    b"aaaaaaaa",
    b"aaaaaaaa\0",
    &[b'a'; 22],
    &[b'a'; 23],
    b"aaaaaaab",
    b"aaaaaaab, a key that is long",
    b"b",
    &[b'b'; MAX_KEY + 1],
];

fn filled() -> Trees {
    let trees = Trees::default();
    for (number, key) in (0..).zip(KEYS) {
        let value = Value::short(&[number]).expect("one byte is short");
        trees.upsert(key, value);
    }
    trees
}

fn shown(trees: &Trees, range: Range<'_>, direction: Direction) -> Vec<Vec<u8>> {
    let guard = Guard::new();
    let items = trees.range(range, direction, &guard);
    items.map(|(key, _)| key.to_vec()).collect()
}

#[test]
fn words_and_other_keys_are_shown_in_one_order() {
    let trees = filled();
    let pairs = (0..KEYS.len()).flat_map(|first| (first..KEYS.len()).map(move |end| (first, end)));
    for (first, end) in pairs {
        let starts = [
            (Start::At(KEYS[first]), first),
            (Start::After(KEYS[first]), first + 1),
        ];
        for (start, from) in starts {
            let range = Range {
                start,
                end: Some(KEYS[end]),
            };
            let mut expected = KEYS.get(from..end).unwrap_or_default().to_vec();
            assert_eq!(shown(&trees, range, Direction::Forward), expected);
            expected.reverse();
            assert_eq!(shown(&trees, range, Direction::Backward), expected);
        }
    }
    assert_eq!(shown(&trees, Range::ALL, Direction::Forward), KEYS);
}

#[test]
fn a_key_is_in_the_tree_of_its_length() {
    let trees = filled();
    assert_eq!(trees.words.len(), 3);
    assert_eq!(trees.long.len(), 2);
    assert_eq!(trees.others.len(), KEYS.len() - 5);
    for key in KEYS {
        assert!(trees.find(key, &Guard::new()).is_some());
        let mut seen = 0;
        assert!(trees.remove(key, |_| seen += 1));
        assert_eq!(seen, 1);
        assert!(trees.find(key, &Guard::new()).is_none());
        assert!(!trees.remove(key, |_| seen += 1));
    }
}
