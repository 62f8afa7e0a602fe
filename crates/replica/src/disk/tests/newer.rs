//! Data of a newer version: the error names it, and does not advise giving up the replica. A
//! version of 0, which no program writes, is damage.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use raft_engine::{Config, Engine, LogBatch};

use super::*;
use crate::log::first_base;
use crate::node::items;

/// The directory of a replica with a seat.
fn seated(folder: &Scratch) -> PathBuf {
    let path = folder.join("replica");
    let mut opened = open(&path, 2).unwrap();
    opened.disk.take_seat(&members()).unwrap();
    path
}

fn expect_newer(path: &Path, part: &str, version: u8) {
    let why = refusal(path);
    let expected = format!("holds data of format {version} in {part}, and");
    assert!(why.contains(&expected), "{why}");
    assert!(why.contains("use the newer program"), "{why}");
    assert!(!why.contains("Move the directory away"), "{why}");
}

fn expect_broken(path: &Path, what: &str) {
    let why = refusal(path);
    assert!(why.contains(what), "{why}");
    assert!(why.contains("Move the directory away"), "{why}");
}

/// Writes a record of the log's state that begins with this version.
fn put_state(path: &Path, version: u8) {
    let config = Config {
        dir: path.join("log").display().to_string(),
        ..Config::default()
    };
    let engine = Engine::open(config).unwrap();
    let mut bytes = vec![0; 88];
    bytes[0] = version;
    let mut batch = LogBatch::default();
    batch.put(1, b"state".to_vec(), bytes).unwrap();
    engine.write(&mut batch, true).unwrap();
}

/// Writes items of this version into the log.
fn put_items(path: &Path, version: u8) {
    let base = first_base(&members());
    let log = path.join("log");
    let (mut store, _) = Store::open(&log, Arc::new(Files), Limits::DEFAULT, base).unwrap();
    let mut image = Machine::new(9, 0).to_image();
    image[0] = version;
    let items = Items {
        applied: 9,
        base: (9, 7),
        image: items::join(&members(), &image),
    };
    let write = LogWrite {
        items: Some(items),
        ..write(1, Vec::new())
    };
    store.save(&[write]).unwrap();
}

#[test]
fn a_record_of_a_newer_version_is_named_and_kept() {
    let folder = Scratch::new("newer-state");
    let path = seated(&folder);
    put_state(&path, 4);
    for _ in 0..2 {
        expect_newer(&path, "the record of the log's state", 4);
    }
    put_state(&path, 0);
    expect_broken(&path, "the record of its state is damaged");
}

#[test]
fn a_log_of_an_older_version_is_named_and_kept() {
    for version in [1, 2] {
        let folder = Scratch::new("older-state");
        let path = seated(&folder);
        put_state(&path, version);
        for _ in 0..2 {
            let why = refusal(&path);
            let expected = format!("holds a log of format {version}, and this program reads");
            assert!(why.contains(&expected), "{why}");
            assert!(why.contains("dunlin replica backup"), "{why}");
            assert!(!why.contains("Move the directory away"), "{why}");
        }
    }
}

#[test]
fn items_of_a_newer_version_are_named_and_kept() {
    for (version, is_newer) in [(2, true), (200, true), (0, false)] {
        let folder = Scratch::new("newer-items");
        let path = seated(&folder);
        put_items(&path, version);
        for _ in 0..2 {
            match is_newer {
                true => expect_newer(&path, "the items of the log", version),
                false => expect_broken(&path, "its items are damaged"),
            }
        }
    }
}

#[test]
fn items_of_this_version_are_read() {
    let folder = Scratch::new("newer-not");
    let path = seated(&folder);
    put_items(&path, 1);
    assert!(open(&path, 5).unwrap().seat.is_some());
}

#[test]
fn a_file_of_a_newer_version_is_named_and_kept() {
    let folder = Scratch::new("newer-file");
    let path = seated(&folder);
    let file = path.join("replica");
    let good = fs::read(&file).unwrap();
    let put = |place: usize, byte: u8| {
        let mut bytes = good.clone();
        bytes[place] = byte;
        fs::write(&file, &bytes).unwrap();
        bytes
    };
    let kind = "the kind of the file `replica`";
    let members = "the members in the file `replica`";
    for (place, part, version) in [(8, "the file `replica`", 2), (9, kind, 2), (24, members, 2)] {
        let bytes = put(place, version);
        expect_newer(&path, part, version);
        assert_eq!(fs::read(&file).unwrap(), bytes);
    }
    // A file without members, as before a bootstrap.
    let mut idle = good[..24].to_vec();
    idle[9] = 2;
    fs::write(&file, idle).unwrap();
    expect_newer(&path, kind, 2);
    put(8, 0);
    expect_broken(&path, "its format is damaged");
    put(24, 0);
    expect_broken(&path, "its members are damaged");
    fs::write(&file, &good).unwrap();
    assert!(open(&path, 5).unwrap().seat.is_some());
}

#[test]
fn a_backup_of_a_newer_version_is_named() {
    let bytes = Backup::of(&Machine::new(1, 0)).to_bytes();
    for (place, part) in [(8, "the backup"), (32, "the items of the backup")] {
        let mut newer = bytes.clone();
        newer[place] = 9;
        let error = Backup::decode(&newer).unwrap_err().to_string();
        let found = format!("data of format 9 in {part}");
        assert!(error.contains(&found), "{error}");
    }
}
