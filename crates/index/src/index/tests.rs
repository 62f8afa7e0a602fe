//! Compares the index with a `BTreeMap`, and checks that the memory of deleted items is freed.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use proptest::prelude::*;

use super::*;
use crate::range::Start;

/// Keys that share prefixes, some of which need an allocation of their own.
fn key() -> impl Strategy<Value = Vec<u8>> {
    let letters = prop::sample::select(vec![0_u8, b'a', b'b', 255]);
    let short = prop::collection::vec(letters, 1..5);
    let long = (
        prop::sample::select(vec![7_usize, 8, 9, 16, 23, 200]),
        short.clone(),
    );
    prop_oneof![
        short.clone(),
        long.prop_map(|(len, end)| [vec![b'x'; len], end].concat()),
        any::<u8>().prop_map(|number| u64::from(number).to_be_bytes().to_vec()),
    ]
}

fn value() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..40)
}

#[derive(Clone, Debug)]
enum Step {
    Put(Vec<u8>, Vec<u8>),
    Delete(Vec<u8>),
    Get(Vec<u8>),
    Scan(Vec<u8>, Vec<u8>, u8),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (key(), value()).prop_map(|(key, value)| Step::Put(key, value)),
        3 => key().prop_map(Step::Delete),
        2 => key().prop_map(Step::Get),
        3 => (key(), key(), any::<u8>()).prop_map(|(one, other, form)| {
            Step::Scan(one.clone().min(other.clone()), one.max(other), form)
        }),
    ]
}

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

fn range<'a>(start: &'a [u8], end: &'a [u8], form: u8) -> Range<'a> {
    Range {
        start: match form % 3 {
            0 => Start::First,
            1 => Start::At(start),
            _ => Start::After(start),
        },
        end: (form & 4 == 0).then_some(end),
    }
}

fn expected(model: &Model, range: Range<'_>) -> Vec<(Vec<u8>, Vec<u8>)> {
    let is_in = |key: &[u8]| {
        let starts = match range.start {
            Start::First => true,
            Start::At(start) => key >= start,
            Start::After(start) => key > start,
        };
        starts && range.end.is_none_or(|end| key < end)
    };
    let items = model.iter().filter(|(key, _)| is_in(key));
    items
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

fn scanned(index: &Index, range: Range<'_>, direction: Direction) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut items = Vec::new();
    index.scan(range, direction, |key, value| {
        items.push((key.to_vec(), value.to_vec()));
        true
    });
    items
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]
    #[test]
    fn the_index_is_a_map(steps in prop::collection::vec(step(), 1..120)) {
        let (index, mut model) = (Index::new(), Model::new());
        for step in steps {
            match step {
                Step::Put(key, value) => {
                    index.put(&key, &value);
                    model.insert(key, value);
                }
                Step::Delete(key) => {
                    prop_assert_eq!(index.delete(&key), model.remove(&key).is_some());
                }
                Step::Get(key) => {
                    let found = index.get(&key, <[u8]>::to_vec);
                    prop_assert_eq!(found.as_ref(), model.get(&key));
                }
                Step::Scan(start, end, form) => {
                    let range = range(&start, &end, form);
                    let mut items = expected(&model, range);
                    prop_assert_eq!(&scanned(&index, range, Direction::Forward), &items);
                    prop_assert_eq!(index.total(range, u64::MAX).items, items.len() as u64);
                    items.reverse();
                    prop_assert_eq!(&scanned(&index, range, Direction::Backward), &items);
                }
            }
        }
    }
}

/// More items than a chunk has, so that a scan continues several times.
#[test]
fn scans_of_many_items_continue_chunk_by_chunk() {
    let index = Index::new();
    let count = 5 * CHUNK as u64 + 3;
    for number in 0..count {
        index.put(&number.to_be_bytes(), &number.to_le_bytes());
    }
    let keys = |direction| -> Vec<u64> {
        let items = scanned(&index, Range::ALL, direction).into_iter();
        items
            .map(|(key, _)| u64::from_be_bytes(key.try_into().expect("it has 8 bytes")))
            .collect()
    };
    assert!(keys(Direction::Forward).into_iter().eq(0..count));
    assert!(keys(Direction::Backward).into_iter().eq((0..count).rev()));
    let total = index.total(Range::ALL, u64::MAX);
    assert_eq!((total.items, total.sum), (count, count * (count - 1) / 2));
    assert_eq!(index.total(Range::ALL, 7).sum, 21);
    assert_eq!(index.total(Range::ALL, 0), Total::default());
    // The range has exactly the items of two full chunks, so the third chunk is empty.
    let end = (2 * CHUNK as u64).to_be_bytes();
    let range = Range::new(&[0; 8], &end);
    assert_eq!(index.total(range, u64::MAX).items, 2 * CHUNK as u64);
}

/// Only one thread deletes the key, so it succeeds if it has just seen the key.
#[test]
fn a_delete_finds_an_item_that_a_put_replaces_meanwhile() {
    const DELETES: u32 = if cfg!(miri) { 20 } else { 20_000 };
    for key in [&b"8 bytes!"[..], b"short", &[b'x'; 40]] {
        let index = Index::new();
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Relaxed) {
                    index.put(key, b"value");
                }
            });
            let mut deletes = 0;
            let mut missed = 0;
            while deletes < DELETES {
                if index.get(key, |_| ()).is_some() {
                    missed += u32::from(!index.delete(key));
                    deletes += 1;
                }
            }
            is_over.store(true, Relaxed);
            assert_eq!(missed, 0, "{key:?}");
        });
    }
}
