//! Which sets overwrite the old value, and that they keep nothing else of the old item.

use super::LONGEST;
use crate::{Config, Mode, Region, Seconds, Seed, Table, Verb, Version, Write};

const NOW: Seconds = Seconds(1000);

/// A table with one item, whose value has this length.
fn table(mode: Mode, len: usize) -> Table {
    let config = Config {
        mode,
        seed: Seed::new([11, 12]),
        first_version: 1,
    };
    let mut table = Table::new(Region::new(1 << 20).unwrap(), config).unwrap();
    let key = table.key(b"key").unwrap();
    table
        .write(&key, &Write::set(&vec![b'a'; len]), NOW)
        .unwrap();
    table
}

/// Whether this write overwrites the value in place.
fn rewrites(table: &mut Table, write: &Write<'_>, now: Seconds) -> bool {
    let mut keys = [table.key(b"key").unwrap()];
    table.ahead(&mut keys);
    table.rewrite(&keys[0], write, now).is_some()
}

#[test]
fn a_value_of_the_same_length_overwrites_the_old_one() {
    for mode in [Mode::Cache, Mode::Store] {
        for len in [0, 1, 8, 32, 33, LONGEST] {
            let mut table = table(mode, len);
            let value = vec![b'b'; len];
            assert!(rewrites(&mut table, &Write::set(&value), Seconds(2000)));
            let key = table.key(b"key").unwrap();
            let item = table.peek(&key, Seconds(2000)).unwrap();
            assert!(item.value() == value[..] && item.version() == Version(2));
            assert_eq!(table.stats().writes, 2);
            table.audit().unwrap();
        }
    }
}

#[test]
fn the_entry_changes_only_in_a_cache() {
    for mode in [Mode::Cache, Mode::Store] {
        let mut table = table(mode, 5);
        let key = table.key(b"key").unwrap();
        let entry = |table: &Table| table.look_up(&key).unwrap().entry;
        let before = entry(&table);
        assert!(rewrites(&mut table, &Write::set(b"hello"), NOW));
        assert_eq!(entry(&table) != before, mode == Mode::Cache);
        assert_eq!(
            entry(&table).heat() - before.heat(),
            u64::from(mode == Mode::Cache)
        );
    }
}

#[test]
fn other_writes_do_not() {
    let mut table = table(Mode::Store, 5);
    let set = Write::set(b"hello");
    let others = [
        Write::set(b"hell"),
        Write { flags: 1, ..set },
        Write {
            expiry: Some(Seconds(2000)),
            ..set
        },
        Write {
            if_version: Some(Version(1)),
            ..set
        },
        Write {
            verb: Verb::Append,
            ..set
        },
    ];
    for write in &others {
        assert!(!rewrites(&mut table, write, NOW), "{write:?}");
    }
    let key = table.key(b"key").unwrap();
    assert_eq!(table.rewrite(&key, &set, NOW), None, "no slot was noted");
    assert!(rewrites(&mut table, &set, NOW));
}

#[test]
fn an_item_that_is_gone_is_not_brought_back() {
    let mut table = table(Mode::Store, 5);
    let key = table.key(b"key").unwrap();
    table.touch(&key, Some(Seconds(1010)), NOW).unwrap();
    let wide = Write {
        flags: 1,
        ..Write::set(b"hello")
    };
    assert!(
        !rewrites(&mut table, &wide, Seconds(1010)),
        "it has expired"
    );
    table.flush(Seconds(1005), NOW);
    assert!(!rewrites(&mut table, &wide, Seconds(1004)), "a flush waits");
    table.sweep(0, Seconds(1005));
    assert!(
        !rewrites(&mut table, &wide, Seconds(1005)),
        "it was flushed"
    );
}
