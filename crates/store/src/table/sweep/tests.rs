//! The sweep counts the cache lines that it touches, so a caller can bound its cost.

use super::Swept;
use crate::index::SLOTS;
use crate::{Config, Mode, Region, Seconds, Seed, Table, Write};

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

/// Lines of the index that have entries, and those of empty buckets.
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
    // An item takes a header and less than two slots of a line, twice; a chain has two lines.
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
