//! Compares the log with a queue of lengths.

use std::collections::VecDeque;

use super::{Log, START, Step};

const LIMIT: usize = 8 * 1024;

/// Appends items of these lengths, and removes the oldest as needed.
fn run(log: &mut Log, lengths: impl Iterator<Item = usize>) -> VecDeque<(usize, usize)> {
    let mut items: VecDeque<(usize, usize)> = VecDeque::new();
    for len in lengths {
        while let Step::Leave(at) = log.step(len) {
            let (oldest, bytes) = items.pop_front().expect("it names an item");
            assert_eq!(at, oldest, "the oldest leaves first");
            log.leave(bytes);
        }
        let at = log.append(len);
        let free = |(other, bytes): &(usize, usize)| at + len <= *other || other + bytes <= at;
        assert!(items.iter().all(free), "{at} is in use");
        assert!(at >= START && at + len <= LIMIT);
        items.push_back((at, len));
    }
    items
}

#[test]
fn the_oldest_leave_first_over_many_laps() {
    let mut log = Log::new(LIMIT);
    let lengths = (0..5000).map(|number| 8 * (1 + number * 7919 % 250));
    let items = run(&mut log, lengths);
    assert!(log.laps() > 100);
    let bytes: usize = items.iter().map(|(_, len)| len).sum();
    assert!(bytes > LIMIT / 2, "{bytes} bytes are in use");
    let distances: Vec<usize> = items.iter().map(|(at, _)| log.distance(*at)).collect();
    assert!(distances.is_sorted(), "{distances:?}");
}

#[test]
fn an_item_as_large_as_the_log_allows_fits_after_any_other() {
    let mut log = Log::new(LIMIT);
    let most = log.most_item() / 8 * 8;
    run(
        &mut log,
        (0..200).map(|number| if number % 3 == 0 { most } else { 16 }),
    );
}

#[test]
fn memory_is_given_up_only_above_the_items() {
    let mut log = Log::new(LIMIT);
    assert_eq!(log.step(4096), Step::Append);
    log.append(4096);
    assert!(!log.lower_limit(4000));
    assert!(log.lower_limit(6000));
    assert_eq!(log.bytes(), 6000);
    // The log wraps: an item that does not fit below the limit goes to the start.
    assert_eq!(log.step(2000), Step::Leave(START));
    assert!(!log.lower_limit(4000));
    assert!(log.lower_limit(5000));
    log.leave(4096);
    assert_eq!(log.step(2000), Step::Append);
    assert_eq!(log.append(2000), START);
    log.give_end(4000);
    assert_eq!(log.bytes(), START + 2000, "the newest lap stays");
}
