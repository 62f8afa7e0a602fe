//! A snapshot that is read has the items that were written, and every change of it is detected.

use dunlin_testkit::folder::Folder;

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

fn write(path: &Path, value: &[u8]) -> io::Result<u64> {
    write_file(path, |writer| writer.add(b"key", value))
}

fn value_in(path: &Path) -> Vec<u8> {
    let mut found = Vec::new();
    let count = read_file(path, |_, value| found = value.to_vec()).expect("it is whole");
    assert_eq!(count, 1);
    found
}

#[test]
fn two_processes_do_not_write_one_file_together() {
    let folder = Folder::new("index-snapshot-twice");
    let path = folder.join("items");
    let outer = write_file(&path, |writer| {
        writer.add(b"key", b"outer")?;
        let refused = write(&path, b"inner").expect_err("the draft is in use");
        assert_eq!(refused.kind(), io::ErrorKind::ResourceBusy);
        Ok::<_, io::Error>(())
    });
    assert_eq!(outer.expect("it is the first"), 1);
    assert_eq!(value_in(&path), b"outer");
    // A process that was killed has left a longer draft.
    fs::write(folder.join("items.draft"), [9; 1000]).expect("the folder is there");
    write(&path, b"later").expect("no process has the draft");
    assert_eq!(value_in(&path), b"later");
}

#[test]
fn a_snapshot_that_fails_leaves_no_draft() {
    let folder = Folder::new("index-snapshot-fails");
    let path = folder.join("items");
    write(&path, b"earlier").expect("the folder is there");
    let failed = write_file(&path, |_| Err(io::Error::from(io::ErrorKind::Other)));
    failed.expect_err("the items cannot be read");
    assert_eq!(value_in(&path), b"earlier");
    let names = fs::read_dir(folder.join("")).expect("the folder is there");
    assert_eq!(names.count(), 1);
}
