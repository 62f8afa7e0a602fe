//! Appends and prepends in slices: the bytes they write, and what happens if the old value changes
//! or leaves meanwhile.

use super::*;
use crate::table::pending::Writing;
use crate::{Config, Mode, Region, Seed};

const NOW: Seconds = Seconds(5);

fn table(mode: Mode, memory: usize) -> Table {
    let config = Config {
        mode,
        seed: Seed::new([3, 5]),
        first_version: 1,
    };
    Table::new(Region::new(memory).unwrap(), config).unwrap()
}

fn bytes(len: usize, from: u8) -> Vec<u8> {
    let period: Vec<u8> = (0..251).map(|step| from.wrapping_add(step)).collect();
    period.iter().copied().cycle().take(len).collect()
}

fn joined(verb: Verb, value: &[u8]) -> Write<'_> {
    Write {
        verb,
        ..Write::set(value)
    }
}

/// Writes a value to its end, calls `between` after each call but the last, and returns the number
/// of calls.
fn write(
    table: &mut Table,
    name: &[u8],
    write: &Write<'_>,
    mut between: impl FnMut(&mut Table, usize),
) -> (usize, Result<Version, WriteError>) {
    let mut writing = Writing::default();
    for calls in 1.. {
        let key = table.key(name).unwrap();
        if let Some(outcome) = table.write_part(&key, write, &mut writing, NOW) {
            assert_eq!(writing, Writing::default());
            return (calls, outcome);
        }
        between(table, calls);
    }
    unreachable!("a write ends");
}

fn set(table: &mut Table, name: &[u8], value: &[u8]) {
    let (_, outcome) = write(table, name, &Write::set(value), |_, _| ());
    outcome.unwrap();
}

fn value(table: &mut Table, name: &[u8]) -> Option<Vec<u8>> {
    let key = table.key(name).unwrap();
    table.get(&key, NOW).map(|item| item.value().to_vec())
}

#[test]
fn a_long_result_is_written_in_slices_and_seen_when_it_is_whole() {
    for mode in [Mode::Store, Mode::Cache] {
        for verb in [Verb::Append, Verb::Prepend] {
            for (old, new) in [(5 * SLICE + 9, 30), (9, 5 * SLICE), (3 * SLICE, 2 * SLICE)] {
                let mut table = table(mode, 8 << 20);
                let (old, new) = (bytes(old, 1), bytes(new, 100));
                set(&mut table, b"key", &old);
                let seen = |table: &mut Table, _| {
                    assert_eq!(value(table, b"key").as_ref(), Some(&old));
                };
                let (calls, outcome) = write(&mut table, b"key", &joined(verb, &new), seen);
                assert!(outcome.is_ok() && (6..=8).contains(&calls), "{calls} calls");
                let expected = match verb {
                    Verb::Append => [&old[..], &new].concat(),
                    _ => [&new[..], &old].concat(),
                };
                assert_eq!(value(&mut table, b"key"), Some(expected));
                table.audit().unwrap();
            }
        }
    }
}

#[test]
fn a_short_result_takes_one_call() {
    let mut table = table(Mode::Store, 2 << 20);
    set(&mut table, b"key", b"old");
    let append = joined(Verb::Append, b" new");
    let (calls, outcome) = write(&mut table, b"key", &append, |_, _| ());
    assert!(outcome.is_ok() && calls == 1);
    assert_eq!(value(&mut table, b"key").unwrap(), b"old new");
    let (calls, outcome) = write(&mut table, b"none", &append, |_, _| ());
    assert_eq!((calls, outcome), (1, Err(WriteError::Absent)));
    let long = bytes(MAX_VALUE - 3, 1);
    let append = joined(Verb::Append, &long);
    let (calls, outcome) = write(&mut table, b"key", &append, |_, _| ());
    assert_eq!((calls, outcome), (1, Err(WriteError::TooLong)));
}

#[test]
fn a_value_that_is_overwritten_meanwhile_is_replaced_in_the_result() {
    for mode in [Mode::Store, Mode::Cache] {
        for (old, other) in [
            (4 * SLICE, 4 * SLICE),
            (4 * SLICE, 100),
            (100, 100),
            (100, 3),
        ] {
            let mut table = table(mode, 8 << 20);
            let (old, other, new) = (bytes(old, 1), bytes(other, 50), bytes(2 * SLICE, 100));
            set(&mut table, b"key", &old);
            let overwrite = |table: &mut Table, calls| {
                if calls == 2 {
                    set(table, b"key", &other);
                }
            };
            let append = joined(Verb::Append, &new);
            let (_, outcome) = write(&mut table, b"key", &append, overwrite);
            outcome.unwrap();
            let expected = [&other[..], &new].concat();
            assert_eq!(value(&mut table, b"key"), Some(expected), "{mode:?}");
            table.audit().unwrap();
        }
    }
}

#[test]
fn a_value_that_is_overwritten_again_and_again_does_not_stop_an_append() {
    for mode in [Mode::Store, Mode::Cache] {
        let mut table = table(mode, 8 << 20);
        set(&mut table, b"key", &bytes(4 * SLICE, 1));
        let mut last = Vec::new();
        let overwrite = |table: &mut Table, calls: usize| {
            last = bytes(4 * SLICE, calls.to_le_bytes()[0]);
            set(table, b"key", &last);
        };
        let append = joined(Verb::Append, b"sixteen byte new");
        let (calls, outcome) = write(&mut table, b"key", &append, overwrite);
        assert!(outcome.is_ok() && calls == 5, "{calls} calls");
        last.extend_from_slice(b"sixteen byte new");
        assert_eq!(value(&mut table, b"key"), Some(last));
        assert_eq!(table.writings.list.len(), 0);
        table.audit().unwrap();
    }
}

#[test]
fn flags_and_expiry_are_those_of_the_old_item_at_the_end() {
    let mut table = table(Mode::Store, 8 << 20);
    let long = bytes(4 * SLICE, 1);
    let first = Write {
        flags: 7,
        ..Write::set(&long)
    };
    write(&mut table, b"key", &first, |_, _| ()).1.unwrap();
    let touch = |table: &mut Table, _| {
        let key = table.key(b"key").unwrap();
        table.touch(&key, Some(Seconds(90)), NOW).unwrap();
    };
    let append = Write {
        version: Some(Version(1000)),
        ..joined(Verb::Append, b"sixteen byte new")
    };
    let (calls, outcome) = write(&mut table, b"key", &append, touch);
    assert_eq!(outcome, Ok(Version(1000)));
    assert!(
        calls >= 5,
        "a later expiry is no other value: {calls} calls"
    );
    let key = table.key(b"key").unwrap();
    let item = table.get(&key, NOW).unwrap();
    assert_eq!((item.flags(), item.expiry()), (7, Some(Seconds(90))));
}

#[test]
fn an_item_that_is_deleted_meanwhile_gets_no_bytes() {
    for mode in [Mode::Store, Mode::Cache] {
        let mut table = table(mode, 8 << 20);
        set(&mut table, b"key", &bytes(4 * SLICE, 1));
        let delete = |table: &mut Table, _| {
            let key = table.key(b"key").unwrap();
            table.delete(&key, None, NOW).unwrap();
        };
        let append = joined(Verb::Append, b"sixteen byte new");
        let (calls, outcome) = write(&mut table, b"key", &append, delete);
        assert_eq!((calls, outcome), (2, Err(WriteError::Absent)));
        table.audit().unwrap();
    }
}

/// The room for the result would evict the item before its bytes are copied.
#[test]
#[cfg_attr(miri, ignore = "it writes too many items")]
fn an_append_to_one_of_the_oldest_items_of_a_cache_succeeds() {
    let long = bytes(4 * SLICE, 1);
    for fill in 1..40 {
        let mut table = table(Mode::Cache, 2 << 20);
        set(&mut table, b"key", &long);
        for number in 0..fill {
            let name = [b'k', number];
            set(&mut table, &name, &bytes(SLICE - 100, 2));
        }
        let is_there = value(&mut table, b"key").is_some();
        let append = joined(Verb::Append, b"sixteen byte new");
        let (_, outcome) = write(&mut table, b"key", &append, |_, _| ());
        assert_eq!(outcome.is_ok(), is_there, "after {fill} other items");
        table.audit().unwrap();
    }
}

#[test]
#[cfg_attr(miri, ignore = "it writes too many items")]
fn a_call_of_an_append_lets_few_items_leave() {
    let mut table = table(Mode::Cache, 8 << 20);
    let mut number = 0_u32;
    let mut add_small = |table: &mut Table| {
        let name = number.to_le_bytes();
        let key = table.key(&name).unwrap();
        table.write(&key, &Write::set(b""), NOW).unwrap();
        number += 1;
    };
    while table.stats().laps == 0 {
        add_small(&mut table);
    }
    set(&mut table, b"key", &bytes(MAX_VALUE - 16, 1));
    let mut before = table.stats().evicted;
    let few = |table: &mut Table, _| {
        let evicted = table.stats().evicted;
        assert!(evicted - before <= 144, "{} items left", evicted - before);
        before = evicted;
    };
    let append = joined(Verb::Append, b"sixteen byte new");
    let (calls, outcome) = write(&mut table, b"key", &append, few);
    assert!(outcome.is_ok() && calls > 50, "{calls} calls");
}

#[test]
fn a_caller_with_another_task_does_not_continue_a_write() {
    for mode in [Mode::Store, Mode::Cache] {
        let mut table = table(mode, 8 << 20);
        let (old, new, other) = (bytes(40_000, 1), bytes(40_000, 100), bytes(40_000, 200));
        set(&mut table, b"first", &old);
        set(&mut table, b"second", &other);
        let first = table.key(b"first").unwrap();
        let mut writing = Writing::default();
        let append = joined(Verb::Append, &new);
        for _ in 0..2 {
            let part = table.write_part(&first, &append, &mut writing, NOW);
            assert_eq!(part, None, "{mode:?}");
        }
        // The first write continues as one that takes a single call, and leaves nothing behind.
        let begun = writing;
        table.delete(&first, None, NOW).unwrap();
        let part = table.write_part(&first, &Write::set(&new), &mut writing, NOW);
        assert!(part.unwrap().is_ok());
        assert!(writing == Writing::default() && !table.is_under_way(begun));
        // Another key with an equally long value has its own bytes in the result.
        set(&mut table, b"first", &old);
        let part = table.write_part(&first, &append, &mut writing, NOW);
        assert_eq!(part, None);
        let second = table.key(b"second").unwrap();
        let outcome = loop {
            if let Some(outcome) = table.write_part(&second, &append, &mut writing, NOW) {
                break outcome;
            }
        };
        outcome.unwrap();
        assert_eq!(
            value(&mut table, b"second"),
            Some([&other[..], &new].concat())
        );
        assert_eq!(value(&mut table, b"first"), Some(old));
        table.audit().unwrap();
    }
}

#[test]
fn a_write_that_finds_no_room_when_it_begins_again_ends() {
    let mut table = table(Mode::Store, 2 << 20);
    let new = bytes(2 * SLICE, 100);
    set(&mut table, b"key", &bytes(2 * SLICE, 1));
    let brief = bytes(SLICE / 2, 3);
    let expires = Write {
        expiry: Some(Seconds(NOW.0 + 1)),
        ..Write::set(&brief)
    };
    let (_, outcome) = write(&mut table, b"brief", &expires, |_, _| ());
    outcome.unwrap();
    let key = table.key(b"key").unwrap();
    let append = joined(Verb::Append, &new);
    let (mut writing, later) = (Writing::default(), Seconds(NOW.0 + 2));
    assert_eq!(table.write_part(&key, &append, &mut writing, NOW), None);
    set(&mut table, b"key", &bytes(6 * SLICE, 50));
    // Fill the rest, so that the result, which is longer now, has no room.
    let filler = bytes(8_000, 9);
    for number in 0..1000_u32 {
        let name = table.key(&number.to_le_bytes()).unwrap().bytes().to_vec();
        let name = table.key(&name).unwrap();
        if table.write(&name, &Write::set(&filler), NOW).is_err() {
            break;
        }
    }
    let outcome = (0..100).find_map(|_| table.write_part(&key, &append, &mut writing, later));
    assert_eq!(outcome, Some(Err(WriteError::NoMemory)));
    assert_eq!(value(&mut table, b"key"), Some(bytes(6 * SLICE, 50)));
    table.audit().unwrap();
}
