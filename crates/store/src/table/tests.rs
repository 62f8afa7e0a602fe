//! The promises of a table, one in each test. `crate::check` compares the table with a model.

use super::body::is_same;
use crate::{
    Config, MAX_VALUE, MOST_SPLITS, Mode, Region, Seconds, Seed, Table, Version, Write, WriteError,
};

const NOW: Seconds = Seconds(1000);

fn table(mode: Mode, memory: usize) -> Table {
    let seed = Seed::new([11, 12]);
    let first_version = 1;
    let config = Config {
        mode,
        seed,
        first_version,
    };
    Table::new(Region::new(memory).unwrap(), config).unwrap()
}

fn name(number: u32) -> Vec<u8> {
    format!("key {number:012}").into_bytes()
}

fn set(table: &mut Table, number: u32, value: &[u8]) -> Result<(), WriteError> {
    let bytes = name(number);
    let key = table.key(&bytes).unwrap();
    table.write(&key, &Write::set(value), NOW).map(|_| ())
}

fn has(table: &mut Table, number: u32) -> bool {
    let bytes = name(number);
    let key = table.key(&bytes).unwrap();
    table.get(&key, NOW).is_some()
}

#[test]
fn a_cache_never_runs_out_of_memory_and_the_oldest_leave() {
    let mut table = table(Mode::Cache, 1 << 20);
    for number in 0..60_000 {
        set(&mut table, number, &[7; 32]).unwrap();
    }
    let stats = table.stats();
    assert!(stats.laps >= 4, "{stats:?}");
    let newest = u32::try_from(stats.items * 9 / 10).unwrap();
    let lost = (60_000 - newest..60_000)
        .filter(|number| !has(&mut table, *number))
        .count();
    assert!(lost <= 10, "{lost} of {newest} have left before older ones");
    assert!(!has(&mut table, 60_000 - 2 * newest));
}

#[test]
fn a_restarted_table_gives_no_stamp_of_its_predecessor() {
    let stamp = |first_version| {
        let seed = Seed::new([11, 12]);
        let config = Config {
            mode: Mode::Store,
            seed,
            first_version,
        };
        let mut table = Table::new(Region::new(1 << 20).unwrap(), config).unwrap();
        set(&mut table, 1, &[7; 100_000]).unwrap();
        let bytes = name(1);
        let key = table.key(&bytes).unwrap();
        table.get(&key, NOW).unwrap().stamp().unwrap()
    };
    assert_ne!(stamp(1000), stamp(2000));
}

#[test]
fn stamps_and_versions_go_on_after_the_highest_number() {
    let config = Config {
        mode: Mode::Store,
        seed: Seed::new([11, 12]),
        first_version: u64::MAX,
    };
    let mut table = Table::new(Region::new(1 << 20).unwrap(), config).unwrap();
    let mut seen = Vec::new();
    for _ in 0..3 {
        set(&mut table, 1, &[7; 100_000]).unwrap();
        let bytes = name(1);
        let key = table.key(&bytes).unwrap();
        let item = table.get(&key, NOW).unwrap();
        seen.push((item.version().0, item.stamp().unwrap()));
    }
    // 0 is no version.
    let versions: Vec<u64> = seen.iter().map(|(version, _)| *version).collect();
    assert_eq!(versions, [u64::MAX, 1, 2]);
    assert!(seen[0].1 != seen[1].1 && seen[1].1 != seen[2].1, "{seen:?}");
}

#[test]
fn memory_is_touched_to_the_end_or_as_far_as_the_caller_wants() {
    let mut region = Region::new(256 << 20).unwrap();
    let mut parts = 0;
    let all = region.touch(|_| {
        parts += 1;
        true
    });
    assert!(all && parts > 2, "{parts}");
    let mut seen = 0;
    let some = region.touch(|done| {
        seen = done;
        false
    });
    assert!(!some && seen < 256 << 20, "{seen}");
}

#[test]
fn a_cache_loses_nothing_before_its_log_wraps() {
    let mut table = table(Mode::Cache, 8 << 20);
    let mut number = 0;
    while table.stats().laps == 0 {
        set(&mut table, number, &[7; 32]).unwrap();
        number += 1;
    }
    let lost = (0..number - 1)
        .filter(|number| !has(&mut table, *number))
        .count();
    let stats = table.stats();
    assert_eq!(stats.crowded, 0);
    assert!(number > 80_000, "{number} items of 72 bytes in 8 MiB");
    // The write that wrapped the log pushed out the first item.
    assert!(lost <= 2, "{lost} of {number} are lost");
}

#[test]
fn items_that_are_read_stay_and_the_others_leave() {
    let mut table = table(Mode::Cache, 1 << 20);
    for number in 0..100_000 {
        set(&mut table, number, &[7; 32]).unwrap();
        // Each of ten keys is read every hundred writes, far more often than the log wraps.
        if number % 10 == 0 {
            assert!(has(&mut table, number / 10 % 10) || number < 100);
        }
    }
    let stats = table.stats();
    assert!(stats.laps > 4 && stats.moved_ahead >= 40, "{stats:?}");
}

#[test]
fn a_small_item_that_is_read_once_stays_for_many_laps_of_large_values() {
    const SMALL: u32 = 40;
    let mut table = table(Mode::Cache, 4 << 20);
    let mut large = 1_000_000..;
    let mut add_large = |table: &mut Table| {
        let number = large.next().unwrap();
        set(table, number, &[7; 16_000]).unwrap();
    };
    let mut small = 0;
    while small < 200 * SMALL {
        for number in small..small + SMALL {
            set(&mut table, number, &[7; 32]).unwrap();
            assert!(has(&mut table, number));
        }
        small += SMALL;
        add_large(&mut table);
    }
    assert_eq!(table.stats().laps, 0);
    while table.stats().laps < 6 {
        add_large(&mut table);
    }
    // An item of 64 bytes is an eighth of the mean, so a lap costs it a 40th of a read. It
    // leaves when it has paid for its only one.
    let stayed = (0..small).filter(|number| has(&mut table, *number)).count();
    assert!(
        (6300..7500).contains(&stayed),
        "{stayed} of {small} are left"
    );
    table.audit().unwrap();
}

#[test]
fn a_store_loses_nothing_and_reports_when_it_is_full() {
    let mut table = table(Mode::Store, 4 << 20);
    let mut number = 0;
    while set(&mut table, number, &[7; 32]).is_ok() {
        number += 1;
    }
    assert_eq!(set(&mut table, number, &[7; 32]), Err(WriteError::NoMemory));
    let bytes_an_item = (4 << 20) / number;
    assert!(bytes_an_item <= 96, "{bytes_an_item} bytes an item");
    assert!((0..number).all(|number| has(&mut table, number)));
    // Existing items can still be overwritten and deleted, and a deletion makes room.
    set(&mut table, 5, &[8; 32]).unwrap();
    let bytes = name(6);
    let key = table.key(&bytes).unwrap();
    table.delete(&key, None, NOW).unwrap();
    set(&mut table, number, &[7; 32]).unwrap();
    table.audit().unwrap();
}

#[test]
fn growth_moves_a_few_buckets_in_one_call() {
    for mode in [Mode::Cache, Mode::Store] {
        let mut table = table(mode, 16 << 20);
        for number in 0..150_000 {
            set(&mut table, number, &[7; 32]).unwrap();
        }
        let stats = table.stats();
        assert!(stats.splits > 20_000, "{stats:?}");
        assert!(stats.most_splits <= MOST_SPLITS as u64, "{stats:?}");
    }
}

#[test]
fn values_of_all_lengths_come_back() {
    for mode in [Mode::Cache, Mode::Store] {
        let mut table = table(mode, 16 << 20);
        for len in [0, 1, 7, 8000, 8200, 16_384, 70_000, 500_000, MAX_VALUE] {
            let value: Vec<u8> = (0..=252).cycle().take(len).collect();
            set(&mut table, 1, &value).unwrap();
            let bytes = name(1);
            let key = table.key(&bytes).unwrap();
            assert!(
                *table.get(&key, NOW).unwrap().value().to_vec() == *value,
                "{len}"
            );
        }
        let value = vec![0; MAX_VALUE + 1];
        assert_eq!(set(&mut table, 1, &value), Err(WriteError::TooLong));
        table.audit().unwrap();
    }
}

#[test]
fn a_caller_may_choose_a_version() {
    let mut table = table(Mode::Store, 1 << 20);
    let bytes = name(1);
    let key = table.key(&bytes).unwrap();
    assert!(!table.renumber(&key, Version(77), NOW));
    set(&mut table, 1, b"value").unwrap();
    assert!(table.renumber(&key, Version(77), NOW));
    let item = table.get(&key, NOW).unwrap();
    assert_eq!(item.version(), Version(77));
    assert_eq!(item.value().to_vec(), b"value");
    assert_eq!(table.delete(&key, Some(Version(77)), NOW), Ok(()));
}

/// Even if a client has chosen keys that share the lowest or the highest bits of the public hash,
/// which route a key or could be the number of a bucket, they look random to the table.
#[test]
fn keys_aimed_at_one_routing_value_make_no_long_chain() {
    let keys = if cfg!(miri) { 50 } else { 100_000 };
    let longest = |shift: Option<u32>| {
        let mut table = table(Mode::Store, 32 << 20);
        let mut number = 0_u64;
        let is_aimed = |number: u64| {
            let bits = |shift| crate::route(&number.to_le_bytes()) >> shift & 0x7f;
            shift.is_none_or(|shift| bits(shift) == 5)
        };
        for _ in 0..keys {
            // A client finds such a key in 128 tries.
            number += 1;
            while !is_aimed(number) {
                number += 1;
            }
            let bytes = number.to_le_bytes();
            let key = table.key(&bytes).unwrap();
            table.write(&key, &Write::set(b""), NOW).unwrap();
        }
        let lengths = (0..table.index_buckets()).map(|bucket| table.items_of(bucket).len());
        lengths.max().unwrap()
    };
    let random = longest(None);
    for shift in [0, u64::BITS - 7] {
        let aimed = longest(Some(shift));
        assert!(
            aimed <= random + 4,
            "{aimed} in a chain, {random} of random keys; bits from {shift} on"
        );
    }
}

#[test]
fn keys_that_differ_in_one_byte_are_different() {
    for len in 1..=40 {
        let key: Vec<u8> = (0..len).collect();
        assert!(is_same(&key, &key.clone()), "{len} bytes");
        for at in 0..usize::from(len) {
            let mut other = key.clone();
            other[at] ^= 0x40;
            assert!(!is_same(&key, &other), "byte {at} of {len}");
        }
    }
}

/// Writes values of 1000 bytes for a lap of the log, and then returns whether an item is still
/// there, without reading it.
fn stays_for_a_lap(table: &mut Table, number: u32, next: &mut u32) -> bool {
    let laps = table.stats().laps;
    while table.stats().laps == laps {
        set(table, *next, &[7; 1000]).unwrap();
        *next += 1;
    }
    let bytes = name(number);
    let key = table.key(&bytes).unwrap();
    table.peek(&key, NOW).is_some()
}

#[test]
fn a_small_new_item_stays_longer_while_most_keys_come_again() {
    let lives = [1_000_000, 3000].map(|keys| {
        let mut table = table(Mode::Cache, 1 << 20);
        for number in 0..20_000 {
            set(&mut table, number % keys, &[7; 1000]).unwrap();
        }
        set(&mut table, 2_000_000, &[7; 100]).unwrap();
        let mut next = 3_000_000;
        let laps = (0..400).take_while(|_| stays_for_a_lap(&mut table, 2_000_000, &mut next));
        laps.count()
    });
    assert_eq!(lives[0], 1, "keys that never come again");
    assert!((40..100).contains(&lives[1]), "{lives:?}");
}

#[test]
fn a_small_item_that_was_missed_stays_longer_than_before() {
    let mut table = table(Mode::Cache, 1 << 20);
    let mut next = 1000;
    stays_for_a_lap(&mut table, 0, &mut next);
    let lives = [(); 2].map(|()| {
        set(&mut table, 7, &[7; 100]).unwrap();
        let laps = (0..400).take_while(|_| stays_for_a_lap(&mut table, 7, &mut next));
        laps.count()
    });
    assert_eq!(lives[0], 1, "a new item leaves in the next lap");
    // Its 136 bytes are an eighth of the mean, so each of seven reads lasts for 40 laps.
    assert!((230..350).contains(&lives[1]), "{lives:?}");
    // A missed large item is different: it takes the memory of many small ones.
    let lives = [(); 2].map(|()| {
        set(&mut table, 8, &[7; 2000]).unwrap();
        let laps = (0..20).take_while(|_| stays_for_a_lap(&mut table, 8, &mut next));
        laps.count()
    });
    assert_eq!(lives, [1, 1]);
}
