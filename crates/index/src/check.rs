//! Properties that hold for any bytes. The tests of this crate and the fuzz target share them.
//!
//! Each function panics if its property does not hold.

use std::collections::BTreeMap;

use crate::index::Index;
use crate::range::{Direction, MAX_KEY, Range, Start};
use crate::snapshot::{Writer, read};
use crate::wire::{Answer, Request, Scan, ScanAnswer};

/// Decodes the bytes as each kind of message. A message that decodes must encode to the same bytes.
/// Of a page of items, only the count is checked.
///
/// # Panics
/// If it does not.
pub fn message(bytes: &[u8]) {
    if let Ok(request) = Request::decode(bytes) {
        let mut again = vec![0xff; request.size()];
        request.encode(&mut again);
        assert_eq!(again, bytes, "{request:?}");
        let is_short = (1..=MAX_KEY).contains(&request.key().len());
        assert!(is_short || request.check().is_err(), "{request:?}");
    }
    if let Ok(answer) = Answer::decode(bytes) {
        let mut again = vec![0xff; answer.size()];
        answer.encode(&mut again);
        assert_eq!(again, bytes, "{answer:?}");
    }
    if let Ok(scan) = Scan::decode(bytes) {
        assert_eq!(scan.encode(), bytes, "{scan:?}");
    }
    match ScanAnswer::decode(bytes) {
        Ok(ScanAnswer::Total(total)) => {
            assert_eq!(ScanAnswer::encode_total(total), bytes);
        }
        Ok(items @ ScanAnswer::Items { count, .. }) => {
            assert_eq!(items.entries().count(), count as usize);
        }
        _ => {}
    }
}

/// Reads the bytes as a whole snapshot, which must not panic, and as the records after a correct
/// header. A snapshot of the items read must be accepted, and must be the same when it is written
/// again.
///
/// # Panics
/// If it is not.
pub fn snapshot(bytes: &[u8]) {
    // Refusing the bytes is as good as reading items.
    let _ = read(bytes, |_, _| {});
    let write = |file: &[u8]| {
        let mut writer = Writer::new(Vec::new()).expect("memory takes bytes");
        let shown = read(file, |key, value| {
            let added = writer.add(key, value);
            added.expect("lengths that were read can be written");
        });
        (writer.end().expect("memory takes bytes").0, shown)
    };
    // No end follows the records, so they are refused, but only after they were shown.
    let begun = [b"DINDEX\x01\x00", bytes].concat();
    let (whole, _) = write(&begun);
    let (again, shown) = write(&whole);
    assert!(shown.is_ok() && again == whole, "{shown:?}");
}

/// Runs the bytes as operations on an index and on a `BTreeMap`, which must give the same results.
///
/// # Panics
/// If they do not.
pub fn operations(bytes: &[u8]) {
    let (index, mut model) = (Index::new(), BTreeMap::new());
    let mut rest = bytes;
    while let Some(([kind, a, b, c], tail)) = rest.split_first_chunk::<4>() {
        rest = tail;
        let (key, value) = (key_of(*a, *b), vec![*c; usize::from(*c % 40)]);
        match kind % 4 {
            0 | 1 => {
                index.put(&key, &value);
                model.insert(key, value);
            }
            2 => assert_eq!(index.delete(&key), model.remove(&key).is_some()),
            _ => scan(&index, &model, *b, [&key, &key_of(*c, *b)]),
        }
    }
    for (key, value) in &model {
        let found = index.get(key, |found| *found == value[..]);
        assert_eq!(found, Some(true), "{key:?}");
    }
    assert_eq!(index.total(Range::ALL, u64::MAX).items, model.len() as u64);
}

/// Keys with common prefixes, some of them long.
fn key_of(a: u8, b: u8) -> Vec<u8> {
    let mut key = vec![a % 8; 1 + usize::from(a % 5)];
    key.resize(key.len() + usize::from(b % 32), b % 4);
    key
}

fn scan(index: &Index, model: &BTreeMap<Vec<u8>, Vec<u8>>, form: u8, ends: [&[u8]; 2]) {
    let [start, end] = [ends[0].min(ends[1]), ends[0].max(ends[1])];
    let range = Range {
        start: match form % 3 {
            0 => Start::First,
            1 => Start::At(start),
            _ => Start::After(start),
        },
        end: (form & 4 == 0).then_some(end),
    };
    let starts = |key: &[u8]| match range.start {
        Start::First => true,
        Start::At(start) => key >= start,
        Start::After(start) => key > start,
    };
    let is_in = |key: &[u8]| starts(key) && range.end.is_none_or(|end| key < end);
    let expected: Vec<_> = model.iter().filter(|(key, _)| is_in(key)).collect();
    for direction in [Direction::Forward, Direction::Backward] {
        let mut seen = Vec::new();
        index.scan(range, direction, |key, value| {
            seen.push((key.to_vec(), value.to_vec()));
            true
        });
        if direction == Direction::Backward {
            seen.reverse();
        }
        let is_same = seen.iter().map(|(key, value)| (key, value));
        assert!(is_same.eq(expected.iter().copied()), "{range:?}");
    }
}

#[cfg(test)]
mod tests;
