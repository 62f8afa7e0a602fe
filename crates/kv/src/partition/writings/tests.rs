//! Requests whose sessions die.

use dunlin_store::{Config, Mode, Region, SLICE, Seconds, Seed, Write};

use super::*;

#[test]
fn the_list_does_not_grow_with_requests_that_never_come_again() {
    let config = Config {
        mode: Mode::Store,
        seed: Seed::new([3, 5]),
        first_version: 1,
    };
    let mut table = Table::new(Region::new(8 << 20).unwrap(), config).unwrap();
    let long = vec![7; 2 * SLICE];
    let mut writings = Writings::new();
    let mut kept = Vec::new();
    for number in 0..3 * MOST_WRITINGS {
        // Three seconds pass before each write, so each earlier one was continued at least three
        // seconds ago.
        let now = Seconds(u32::try_from(3 * number).unwrap());
        let (key, mut writing) = (table.key(b"key").unwrap(), Writing::default());
        let part = table.write_part(&key, &Write::set(&long), &mut writing, now);
        assert_eq!(part, None);
        writings.keep(number, writing, &table);
        kept.push(writing);
        assert!(writings.list.len() <= MOST_WRITINGS);
    }
    assert_eq!(writings.list.capacity(), MOST_WRITINGS);
    let last = 3 * MOST_WRITINGS - 1;
    assert_eq!(writings.take(&last), Some(kept[last]));
    assert_eq!(writings.take(&last), None);
    assert_eq!(writings.take(&0), None);
}
