//! A snapshot that is read has the items that were written, and every change of it is detected.

use super::*;

const ITEMS: [(&[u8], &[u8]); 3] = [(b"a", b"1"), (b"bc", b""), (b"d", &[7; 300])];

fn whole() -> Vec<u8> {
    let mut writer = Writer::new(Vec::new()).expect("memory takes bytes");
    for (key, value) in ITEMS {
        writer.add(key, value).expect("memory takes bytes");
    }
    writer.end().expect("memory takes bytes").0
}

type Items = Vec<(Vec<u8>, Vec<u8>)>;

fn read_all(bytes: &[u8]) -> Result<Items, SnapshotError> {
    let mut items = Vec::new();
    let count = read(bytes, |key, value| {
        items.push((key.to_vec(), value.to_vec()))
    })?;
    assert_eq!(count, items.len() as u64);
    Ok(items)
}

#[test]
fn a_snapshot_has_the_items() {
    let items = read_all(&whole()).expect("it was just written");
    let read = items.iter().map(|(key, value)| (&key[..], &value[..]));
    assert!(read.eq(ITEMS));
    assert_eq!(whole()[..8], *b"DINDEX\x01\x00");
}

#[test]
fn an_item_that_no_reader_takes_is_refused() {
    let mut writer = Writer::new(Vec::new()).expect("memory takes bytes");
    let (longest_key, longest_value) = ([1; MAX_KEY], vec![2; MAX_VALUE]);
    writer
        .add(&longest_key, &longest_value)
        .expect("it is short enough");
    let (key, value) = ([1; MAX_KEY + 1], vec![2; MAX_VALUE + 1]);
    for (key, value) in [(&b""[..], &b"1"[..]), (&key, b"1"), (b"a", &value)] {
        let error = writer.add(key, value).expect_err("it is out of range");
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }
    let (bytes, count) = writer.end().expect("memory takes bytes");
    let items = read_all(&bytes).expect("it has only items that a reader takes");
    assert_eq!((items.len(), count), (1, 1));
}

#[test]
fn every_change_is_detected() {
    let whole = whole();
    for len in 0..whole.len() {
        assert!(read_all(&whole[..len]).is_err(), "cut to {len}");
    }
    for at in 0..whole.len() {
        let mut changed = whole.clone();
        changed[at] ^= 1;
        assert!(read_all(&changed).is_err(), "byte {at}");
    }
    let longer = [&whole[..], &[0]].concat();
    assert!(matches!(read_all(&longer), Err(SnapshotError::Damaged)));
    let mut newer = whole;
    newer[6] = 7;
    assert!(matches!(read_all(&newer), Err(SnapshotError::Newer(7))));
}
