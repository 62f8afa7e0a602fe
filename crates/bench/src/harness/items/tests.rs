//! Keys, values and the memory for them.

use std::collections::BTreeSet;

use super::*;
use dunlin_store::Mode;

#[test]
fn each_item_has_a_key_of_letters_of_its_own() {
    let keys: BTreeSet<[u8; KEY]> = (0..10_000).map(key).collect();
    assert_eq!(keys.len(), 10_000);
    let letters = keys.iter().flatten();
    assert!(letters.clone().all(|it| (b'a'..=b'p').contains(it)));
    assert_eq!(letters.collect::<BTreeSet<_>>().len(), 16);
}

#[test]
fn a_value_belongs_to_one_item() {
    for len in [4, 7, 32, 1024] {
        let mut value = vec![0; len];
        fill(&mut value, 0x0102_0304);
        assert!(is_value(&value, 0x0102_0304));
        assert!(!is_value(&value, 0x0102_0305));
        value[len - 1] ^= 1;
        assert!(!is_value(&value, 0x0102_0304), "the last of {len} bytes");
    }
}

#[test]
fn a_table_has_room_for_its_items_in_both_modes() {
    for value in [4, 32, 100, 512, 1024] {
        for mode in [Mode::Store, Mode::Cache] {
            let items = Items::of_mib(2, value);
            let table = make(items, mode).unwrap();
            let held = table.stats().items;
            assert_eq!(held, u64::from(items.count), "{mode:?}, {value}");
        }
    }
}

#[test]
fn a_rate_counts_operations_on_existing_items() {
    let items = Items::of_mib(1, VALUE);
    let mut table = make(items, Mode::Store).unwrap();
    for batch in [1, 32] {
        let span = std::time::Duration::from_millis(1);
        let rate = rate(&mut table, items, Mix::USUAL, batch, span).unwrap();
        assert!(rate > 1000.0, "{rate}");
    }
    let stats = table.stats();
    assert!(stats.hits > 0 && stats.hits == stats.gets, "{stats:?}");
}
