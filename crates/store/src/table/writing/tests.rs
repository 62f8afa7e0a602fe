//! Values in slices: which value others see meanwhile, and what happens to writes that do not end.

use super::*;
use crate::config::IDLE_SECONDS;
use crate::{Config, CounterError, Delta, MIN_MEMORY, Mode, Region, Seed, Verb};

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

/// Writes a value to its end, and returns the number of calls.
fn write(
    table: &mut Table,
    name: &[u8],
    write: &Write<'_>,
) -> (usize, Result<Version, WriteError>) {
    let key = table.key(name).unwrap();
    let mut writing = Writing::default();
    let mut calls = 1;
    loop {
        if let Some(outcome) = table.write_part(&key, write, &mut writing, NOW) {
            assert_eq!(writing, Writing::default());
            return (calls, outcome);
        }
        calls += 1;
    }
}

fn value(table: &mut Table, name: &[u8]) -> Option<Vec<u8>> {
    let key = table.key(name).unwrap();
    table.get(&key, NOW).map(|item| item.value().to_vec())
}

#[test]
fn a_get_sees_the_old_value_until_the_new_one_is_whole() {
    for mode in [Mode::Store, Mode::Cache] {
        let mut table = table(mode, 2 << 20);
        let (old, new) = (bytes(3 * SLICE, 1), bytes(5 * SLICE + 17, 9));
        let (calls, first) = write(&mut table, b"film", &Write::set(&old));
        // One call takes room, and each of the others copies a slice.
        assert!((4..=5).contains(&calls), "{mode:?}: {calls}");
        let (key, mut writing) = (table.key(b"film").unwrap(), Writing::default());
        let mut calls = 1;
        let second = loop {
            let part = table.write_part(&key, &Write::set(&new), &mut writing, NOW);
            if let Some(outcome) = part {
                break outcome;
            }
            assert_eq!(value(&mut table, b"film").as_ref(), Some(&old), "{mode:?}");
            let stamp = table.get(&key, NOW).unwrap().stamp().unwrap();
            let mut slice = vec![0; 100];
            let read = table.read_slice(&key, stamp, SLICE, &mut slice, NOW);
            assert_eq!((read, &slice[..]), (Some(100), &old[SLICE..SLICE + 100]));
            calls += 1;
        };
        assert!((6..=7).contains(&calls), "{mode:?}: {calls}");
        assert!(second.unwrap() > first.unwrap());
        assert_eq!(value(&mut table, b"film"), Some(new));
        table.audit().unwrap();
    }
}

#[test]
fn short_values_and_those_that_are_too_long_take_one_call() {
    let mut table = table(Mode::Store, 2 << 20);
    let (calls, _) = write(&mut table, b"key", &Write::set(&bytes(SLICE, 2)));
    assert_eq!(calls, 1);
    let too_long = vec![0; MAX_VALUE + 1];
    let (calls, outcome) = write(&mut table, b"key", &Write::set(&too_long));
    assert_eq!((calls, outcome), (1, Err(WriteError::TooLong)));
}

#[test]
fn a_cache_overwrites_a_long_value_in_place() {
    let mut table = table(Mode::Cache, 4 << 20);
    write(&mut table, b"film", &Write::set(&bytes(8 * SLICE, 1)))
        .1
        .unwrap();
    write(&mut table, b"other", &Write::set(b"7")).1.unwrap();
    for round in 0..100 {
        let value_now = bytes(8 * SLICE, round);
        let (calls, written) = write(&mut table, b"film", &Write::set(&value_now));
        assert_eq!((calls, written.is_ok()), (1, true));
        assert_eq!(value(&mut table, b"film"), Some(value_now));
    }
    assert_eq!(table.stats().laps, 0);
    assert_eq!(value(&mut table, b"other").unwrap(), b"7");
    let (calls, _) = write(&mut table, b"film", &Write::set(&bytes(8 * SLICE + 8, 1)));
    assert!(calls > 8, "{calls}");
}

#[test]
fn a_condition_is_checked_at_the_start_and_at_the_end() {
    for mode in [Mode::Store, Mode::Cache] {
        let mut table = table(mode, 2 << 20);
        let long = bytes(2 * SLICE, 1);
        let add = Write {
            verb: Verb::Add,
            ..Write::set(&long)
        };
        let (key, mut writing) = (table.key(b"key").unwrap(), Writing::default());
        assert_eq!(table.write_part(&key, &add, &mut writing, NOW), None);
        table.write(&key, &Write::set(b"other"), NOW).unwrap();
        let outcome = loop {
            if let Some(outcome) = table.write_part(&key, &add, &mut writing, NOW) {
                break outcome;
            }
        };
        assert_eq!(outcome, Err(WriteError::Present), "{mode:?}");
        assert_eq!(value(&mut table, b"key").unwrap(), b"other");
        assert_eq!(
            write(&mut table, b"key", &add),
            (1, Err(WriteError::Present))
        );
        table.audit().unwrap();
    }
}

#[test]
fn unfinished_writes_give_their_pages_back() {
    let mut table = table(Mode::Store, 1 << 20);
    let long = bytes(6 * SLICE, 1);
    let key = table.key(b"key").unwrap();
    for _ in 0..20 {
        let mut writing = Writing::default();
        for _ in 0..3 {
            assert_eq!(
                table.write_part(&key, &Write::set(&long), &mut writing, NOW),
                None
            );
        }
        table.abandon(writing);
    }
    // Callers that vanish without abandoning: a write that finds no memory takes their pages.
    let short = bytes(SLICE + 1, 1);
    let mut time = NOW;
    for round in 0..3 * MOST_WRITINGS {
        time = Seconds(time.0 + 3);
        let mut writing = Writing::default();
        let part = table.write_part(&key, &Write::set(&short), &mut writing, time);
        assert_eq!(part, None, "{round}");
    }
    let time = Seconds(time.0 + 3);
    // In the end, items use all of the memory.
    let mut number = 0_u32;
    let refused = loop {
        let name = number.to_le_bytes();
        let other = table.key(&name).unwrap();
        if let Err(error) = table.write(&other, &Write::set(&short), time) {
            break error;
        }
        number += 1;
    };
    assert_eq!(refused, WriteError::NoMemory);
    assert!(
        table.writings.list.is_empty() && number >= 10,
        "{number} items"
    );
}

#[test]
fn an_abandoned_write_is_done_in_one_piece() {
    let mut table = table(Mode::Store, 8 << 20);
    let long = bytes(2 * SLICE, 1);
    let (key, mut first) = (table.key(b"first").unwrap(), Writing::default());
    assert_eq!(
        table.write_part(&key, &Write::set(&long), &mut first, NOW),
        None
    );
    let later = Seconds(NOW.0 + IDLE_SECONDS + 1);
    for _ in 0..MOST_WRITINGS {
        let other = table.key(b"other").unwrap();
        let mut writing = Writing::default();
        assert_eq!(
            table.write_part(&other, &Write::set(&long), &mut writing, later),
            None
        );
    }
    assert!(!table.is_under_way(first));
    let outcome = table.write_part(&key, &Write::set(&long), &mut first, later);
    assert!(matches!(outcome, Some(Ok(_))), "{outcome:?}");
    assert_eq!(value(&mut table, b"first"), Some(long));
}

/// Runs writers that take turns, with one long value each. Returns how many of them were done in
/// slices to the end.
fn writers_in_slices(mode: Mode, count: u32) -> usize {
    let mut table = table(mode, 32 << 20);
    let long = bytes(3 * SLICE, 1);
    let mut writings = vec![(Writing::default(), 0, false); count as usize];
    while !writings.iter().all(|(.., is_over)| *is_over) {
        for (number, (writing, calls, is_over)) in (0_u32..).zip(&mut writings) {
            if *is_over {
                continue;
            }
            let name = number.to_le_bytes();
            let key = table.key(&name).unwrap();
            *calls += 1;
            let part = table.write_part(&key, &Write::set(&long), writing, NOW);
            *is_over = part.map(Result::unwrap).is_some();
        }
        assert!(table.writings.list.len() <= MOST_WRITINGS);
    }
    for number in 0..count {
        assert_eq!(
            value(&mut table, &number.to_le_bytes()).as_ref(),
            Some(&long)
        );
    }
    table.audit().unwrap();
    // One call takes room, and each of the others copies a slice.
    writings.iter().filter(|(_, calls, _)| *calls >= 4).count()
}

#[test]
#[cfg_attr(miri, ignore = "it writes too many items")]
fn continued_writes_are_not_abandoned_for_others() {
    for mode in [Mode::Store, Mode::Cache] {
        for count in [32, 33, 40] {
            let in_slices = writers_in_slices(mode, count);
            assert_eq!(in_slices, MOST_WRITINGS, "{mode:?}, {count} writers");
        }
    }
}

/// Begins `count` long writes of `pages` pages.
fn begin(table: &mut Table, count: usize, pages: usize) -> Vec<Writing> {
    let long = bytes(pages * CHUNK, 1);
    let key = table.key(b"long").unwrap();
    let mut writings = vec![Writing::default(); count];
    for writing in &mut writings {
        let part = table.write_part(&key, &Write::set(&long), writing, NOW);
        assert_eq!(part, None);
    }
    writings
}

/// Fills a store with one-digit counters.
fn fill(table: &mut Table) {
    for number in 0_u32.. {
        let name = number.to_le_bytes();
        let key = table.key(&name).unwrap();
        if table.write(&key, &Write::set(b"9"), NOW).is_err() {
            return;
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "it writes too many items")]
fn refused_writes_do_not_abandon_continued_long_writes() {
    let mut table = table(Mode::Store, 1 << 20);
    let writings = begin(&mut table, 4, 6);
    fill(&mut table);
    let key = table.key(b"a small one").unwrap();
    for seconds in 0..=IDLE_SECONDS {
        let now = Seconds(NOW.0 + seconds);
        let refused = table.write(&key, &Write::set(&[7; 200]), now);
        assert_eq!(refused, Err(WriteError::NoMemory));
    }
    assert!(writings.iter().all(|writing| table.is_under_way(*writing)));
    let later = Seconds(NOW.0 + IDLE_SECONDS + 1);
    table.write(&key, &Write::set(&[7; 200]), later).unwrap();
    let under_way = writings.iter().filter(|name| table.is_under_way(**name));
    assert_eq!(under_way.count(), 3);
}

#[test]
#[cfg_attr(miri, ignore = "it writes too many items")]
fn a_long_write_takes_the_pages_of_several_abandoned_writes() {
    let mut table = table(Mode::Store, 1 << 20);
    begin(&mut table, 6, 6);
    fill(&mut table);
    let key = table.key(b"key").unwrap();
    let later = Seconds(NOW.0 + IDLE_SECONDS + 1);
    let long = bytes(20 * CHUNK, 1);
    table.write(&key, &Write::set(&long), later).unwrap();
    assert_eq!(value(&mut table, b"key"), Some(long));
}

#[test]
#[cfg_attr(miri, ignore = "it writes too many items")]
fn items_that_expire_do_not_keep_the_pages_of_vanished_writers() {
    let mut table = table(Mode::Store, 4 << 20);
    begin(&mut table, 1, 6);
    // Each sweep finds some of them, but too few for a page.
    let later = Seconds(NOW.0 + IDLE_SECONDS + 1);
    for number in 0_u32..3000 {
        let name = [&b"gone"[..], &number.to_le_bytes()].concat();
        let write = Write {
            expiry: Some(later),
            ..Write::set(b"7")
        };
        let key = table.key(&name).unwrap();
        table.write(&key, &write, NOW).unwrap();
    }
    fill(&mut table);
    let key = table.key(b"key").unwrap();
    let long = bytes(5 * CHUNK, 1);
    table.write(&key, &Write::set(&long), later).unwrap();
}

#[test]
#[cfg_attr(miri, ignore = "it writes too many items")]
fn a_counter_takes_the_pages_of_vanished_writers() {
    let mut table = table(Mode::Store, 1 << 20);
    begin(&mut table, 1, 6);
    fill(&mut table);
    let name = 0_u32.to_le_bytes();
    let key = table.key(&name).unwrap();
    let up = Delta::Up(10_000_000_000);
    assert_eq!(
        table.count(&key, up, None, NOW),
        Err(CounterError::NoMemory)
    );
    let later = Seconds(NOW.0 + IDLE_SECONDS + 1);
    let (number, _) = table.count(&key, up, None, later).unwrap();
    assert_eq!(number, 10_000_000_009);
}

#[test]
fn a_write_whose_room_the_log_has_evicted_is_still_complete() {
    let mut table = table(Mode::Cache, 1 << 20);
    let long = bytes(3 * SLICE, 1);
    let (key, mut writing) = (table.key(b"key").unwrap(), Writing::default());
    for _ in 0..2 {
        assert_eq!(
            table.write_part(&key, &Write::set(&long), &mut writing, NOW),
            None
        );
    }
    let before = table.stats().laps;
    let mut number = 0_u32;
    while table.stats().laps < before + 2 {
        let name = number.to_le_bytes();
        let other = table.key(&name).unwrap();
        table
            .write(&other, &Write::set(&bytes(4000, 7)), NOW)
            .unwrap();
        number += 1;
    }
    let outcome = table.write_part(&key, &Write::set(&long), &mut writing, NOW);
    assert!(matches!(outcome, Some(Ok(_))), "{outcome:?}");
    assert_eq!(value(&mut table, b"key"), Some(long));
    // No other item was overwritten.
    let others = (0..number).filter_map(|number| value(&mut table, &number.to_le_bytes()));
    assert!(others.into_iter().all(|other| other == bytes(4000, 7)));
    table.audit().unwrap();
}

#[test]
#[cfg_attr(miri, ignore = "it writes too many items")]
fn a_call_lets_few_items_leave() {
    let mut table = table(Mode::Cache, 4 << 20);
    let mut number = 0_u32;
    while table.stats().laps == 0 {
        let name = number.to_le_bytes();
        let key = table.key(&name).unwrap();
        table.write(&key, &Write::set(b""), NOW).unwrap();
        number += 1;
    }
    let long = bytes(SLICE + 1, 1);
    let (key, mut writing) = (table.key(b"long").unwrap(), Writing::default());
    let mut before = table.stats().evicted;
    let mut calls = 1;
    while table
        .write_part(&key, &Write::set(&long), &mut writing, NOW)
        .is_none()
    {
        let evicted = table.stats().evicted;
        // The index may also take a few from the end of the log.
        assert!(
            evicted - before <= MOST_LEAVING as u64 + 16,
            "{}",
            evicted - before
        );
        before = evicted;
        calls += 1;
    }
    assert!(
        calls > 10,
        "{calls} calls for the room of two thousand items"
    );
    assert_eq!(value(&mut table, b"long"), Some(long));
}

#[test]
fn a_cache_that_is_too_small_refuses_at_once() {
    let mut table = table(Mode::Cache, MIN_MEMORY);
    let long = bytes(SLICE + 1, 1);
    let (calls, outcome) = write(&mut table, b"key", &Write::set(&long));
    assert_eq!((calls, outcome), (1, Err(WriteError::TooLong)));
}
