//! Keys that are remembered, and for how long.

use super::{Departed, LINE};

#[test]
fn a_line_remembers_its_latest_keys_once_each() {
    let mut departed = Departed::new(64 * 1024);
    let hash = |number: u64| number << 49;
    for number in 0..40 {
        departed.on_left(hash(number));
    }
    for number in 0..40 {
        let is_late = number >= 40 - LINE as u64;
        assert_eq!(departed.takes(hash(number)), is_late, "{number}");
        assert!(!departed.takes(hash(number)), "{number}");
    }
    assert!(!departed.takes(hash(1000)));
}

#[test]
fn a_large_cache_remembers_a_key_for_each_512_bytes() {
    let mut departed = Departed::new(64 << 20);
    let hash = |number: u64| number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for number in 0..60_000 {
        departed.on_left(hash(number));
    }
    let remembered = (0..60_000).filter(|number| departed.takes(hash(*number)));
    let count = remembered.count();
    assert!(count > 58_000, "{count}");
    let mistaken = (60_000..90_000).filter(|number| departed.takes(hash(*number)));
    assert_eq!(mistaken.count(), 0);
}

#[test]
fn keys_count_as_returning_only_while_most_keys_asked_for_are_remembered() {
    let mut departed = Departed::new(1 << 20);
    assert!(!departed.most_return());
    let mut ask = |from: u64, is_remembered: bool| {
        for hash in (from..from + 10_000).map(|number| number << 16 | number << 48) {
            if is_remembered {
                departed.on_left(hash);
            }
            assert_eq!(departed.takes(hash), is_remembered, "{hash:x}");
        }
        departed.most_return()
    };
    assert!(!ask(1, false));
    assert!(ask(20_000, true));
    assert!(!ask(40_000, false));
}
