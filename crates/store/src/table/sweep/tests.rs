//! The sweep counts the cache lines that it touches, so a caller can bound its cost.

use super::Swept;
use crate::index::SLOTS;
use crate::table::write::MOST_RESCUE;
use crate::{Config, Mode, Region, Seconds, Seed, Table, Write, WriteError};

const NOW: Seconds = Seconds(1000);
const ITEMS: u32 = 2000;

fn table(mode: Mode, expiry: Option<Seconds>) -> Table {
    let config = Config {
        mode,
        seed: Seed::new([11, 12]),
        first_version: 1,
    };
    let mut table = Table::new(Region::new(1 << 20).unwrap(), config).unwrap();
    for number in 0..ITEMS {
        let bytes = number.to_le_bytes();
        let key = table.key(&bytes).unwrap();
        let write = Write {
            expiry,
            ..Write::set(b"value")
        };
        table.write(&key, &write, NOW).unwrap();
    }
    table
}

/// The number of the index's lines with entries and of those that are empty buckets.
fn index_lines(table: &Table) -> u64 {
    let of = |bucket| {
        let entries = (0..).map_while(|at| table.index.entry_of(&table.memory, bucket, at));
        entries.count().div_ceil(SLOTS).max(1) as u64
    };
    (0..table.index.buckets()).map(of).sum()
}

/// Sweeps each bucket once, at this time.
fn pass(table: &mut Table, now: Seconds) -> u64 {
    let buckets = table.index.buckets();
    (0..buckets).map(|at| table.sweep_bucket(at, now)).sum()
}

#[test]
fn a_pass_touches_the_index_and_the_header_of_each_item_that_can_expire() {
    for mode in [Mode::Cache, Mode::Store] {
        let mut lasting = table(mode, None);
        let lines = index_lines(&lasting);
        assert!(lines > lasting.index.buckets(), "some chains are long");
        assert_eq!(pass(&mut lasting, NOW), lines, "{mode:?}");
        let mut mortal = table(mode, Some(Seconds(5000)));
        let lines = index_lines(&mortal);
        assert_eq!(pass(&mut mortal, NOW), lines + u64::from(ITEMS), "{mode:?}");
        assert_eq!(mortal.stats().items, u64::from(ITEMS));
    }
}

#[test]
fn removals_cost_more_than_headers() {
    for (mode, each) in [(Mode::Cache, 1), (Mode::Store, 5)] {
        let mut mortal = table(mode, Some(Seconds(5000)));
        let least = mortal.index.buckets() + each * u64::from(ITEMS);
        let lines = pass(&mut mortal, Seconds(6000));
        assert!(lines >= least, "{mode:?}: {lines} of at least {least}");
        assert_eq!(mortal.stats().items, 0);
        let mut flushed = table(mode, None);
        flushed.flush(NOW, NOW);
        let lines = pass(&mut flushed, NOW);
        assert!(lines >= least, "{mode:?}: {lines} of at least {least}");
        assert_eq!(flushed.stats().items, 0);
    }
}

#[test]
fn a_sweep_ends_with_the_bucket_that_uses_up_its_lines() {
    let mut mortal = table(Mode::Store, Some(Seconds(5000)));
    let nothing = Swept::default();
    assert_eq!(mortal.sweep(0, Seconds(6000)), nothing);
    let swept = mortal.sweep(100, Seconds(6000));
    // The last bucket has at most two lines of seven items, and each removal touches at most five
    // lines.
    assert!(
        (100..100 + 2 * 7 * 5 + 2).contains(&swept.lines),
        "{swept:?}"
    );
    assert!(
        swept.removed >= 10 && swept.removed <= 100 / 5 + 14,
        "{swept:?}"
    );
    assert_eq!(mortal.stats().items, u64::from(ITEMS) - swept.removed);
    assert_eq!(mortal.stats().sweep_lines, swept.lines);
}

/// A write of an item with flags. Such an item is wide even if it never expires, so all items have
/// slots of one class.
fn wide(expiry: Option<Seconds>) -> Write<'static> {
    Write {
        flags: 1,
        expiry,
        ..Write::set(b"value")
    }
}

fn set(table: &mut Table, number: u32, write: &Write<'_>, now: Seconds) -> Result<(), WriteError> {
    let bytes = number.to_le_bytes();
    let key = table.key(&bytes).unwrap();
    table.write(&key, write, now).map(|_| ())
}

/// A store without memory for another item, and the number of its items. One item in 5000 has the
/// second expiry.
fn full(expiry: Option<Seconds>, of_few: Option<Seconds>) -> (Table, u32) {
    let mut table = table(Mode::Store, None);
    for number in 0.. {
        let expiry = if number % 5000 == 4999 {
            of_few
        } else {
            expiry
        };
        if set(&mut table, number, &wide(expiry), NOW).is_err() {
            return (table, number);
        }
    }
    unreachable!("a store gets full");
}

#[test]
fn a_full_store_has_room_again_as_soon_as_any_item_has_expired() {
    let (mut table, count) = full(None, Some(Seconds(2000)));
    assert!(count > 10_000, "{count} items fit");
    let lines = table.stats().sweep_lines;
    let refused = set(&mut table, count, &wide(None), Seconds(1999));
    assert_eq!(refused, Err(WriteError::NoMemory));
    let swept = table.stats().sweep_lines - lines;
    assert_eq!(swept, 0, "no item can have expired, so none is looked for");
    let kept = table.stats().items;
    // A full index refuses keys whose chains are full.
    let fits = |number: &u32| {
        let bytes = number.to_le_bytes();
        let hash = table.key(&bytes).unwrap().hash();
        table.index.has_room(&table.memory, hash)
    };
    let new: Vec<u32> = (count..).filter(fits).take(2).collect();
    for number in new {
        assert_eq!(set(&mut table, number, &wide(None), Seconds(2000)), Ok(()));
    }
    let stats = table.stats();
    assert_eq!(stats.items, kept + 2 - stats.expired);
    assert_eq!(table.audit(), Ok(()));
}

#[test]
fn a_full_store_looks_for_expired_items_in_bounded_steps_until_it_knows_that_there_are_none() {
    let (mut table, count) = full(Some(Seconds(2000)), Some(Seconds(2000)));
    for number in 0..count {
        let bytes = number.to_le_bytes();
        let key = table.key(&bytes).unwrap();
        let later = Some(Seconds(3000));
        table.touch(&key, later, NOW).unwrap();
    }
    let mut steps = Vec::new();
    while steps.last() != Some(&0) {
        let before = table.stats().sweep_lines;
        let refused = set(&mut table, count, &wide(None), Seconds(2000));
        assert_eq!(refused, Err(WriteError::NoMemory));
        steps.push(table.stats().sweep_lines - before);
    }
    let most = steps.iter().max().unwrap();
    assert!(*most <= MOST_RESCUE + 100, "{steps:?}");
    assert!(
        steps.len() > 3,
        "one write has looked everywhere: {steps:?}"
    );
    assert!(steps.iter().sum::<u64>() >= u64::from(count), "{steps:?}");
    assert_eq!(set(&mut table, count, &wide(None), Seconds(3000)), Ok(()));
}
