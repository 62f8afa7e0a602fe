//! Entries that are replaced, and the log's answers to Raft.

use super::*;
use crate::wire::{Member, Members};

fn entry(index: u64, term: u64) -> Entry {
    Entry {
        index,
        term,
        data: vec![0; 10].into(),
        ..Entry::default()
    }
}

fn log() -> Log {
    let member = Member {
        id: 7,
        address: "a".to_owned(),
    };
    let members = Members::new([member]).unwrap();
    let mut log = Log::new(Roster::first(&members));
    log.append(&mut (2..=6).map(|index| entry(index, 1)).collect());
    log
}

/// Reads entries for a message.
fn read(log: &mut Log, low: u64, high: u64, most: u64) -> raft::Result<Vec<u64>> {
    log.limit_messages(most);
    let entries = log.entries(low, high, None, GetEntriesContext::empty(true))?;
    assert!(entries.iter().all(|entry| entry.data.len() == 10));
    Ok(entries.iter().map(|entry| entry.index).collect())
}

#[test]
fn later_entries_replace_earlier_ones() {
    let mut log = log();
    log.append(&mut vec![entry(4, 2), entry(5, 2)]);
    assert_eq!(log.last(), 5);
    assert_eq!([1, 3, 4].map(|index| log.term(index).unwrap()), [1, 1, 2]);
    assert!(log.term(6).is_err() && log.term(0).is_err());
}

#[test]
fn a_read_returns_at_least_one_entry_and_ends_at_its_size() {
    let log = &mut log();
    let one = ENTRY + 10;
    assert_eq!(read(log, 2, 7, u64::MAX).unwrap(), [2, 3, 4, 5, 6]);
    assert_eq!(read(log, 3, 7, 0).unwrap(), [3]);
    assert_eq!(read(log, 3, 7, 2 * one).unwrap(), [3, 4]);
    assert_eq!(read(log, 3, 7, 3 * one - 1).unwrap(), [3, 4]);
    assert!(read(log, 1, 3, 0).is_err(), "before the base");
    assert!(read(log, 5, 8, 0).is_err(), "past the end");
}

#[test]
fn entries_that_are_not_for_a_message_come_without_data_whatever_their_size() {
    let mut log = log();
    log.limit_messages(0);
    let entries = log.entries(2, 7, None, GetEntriesContext::empty(false));
    let entries = entries.unwrap();
    let shown: Vec<_> = entries.iter().map(|it| (it.index, it.term)).collect();
    assert_eq!(shown, [2, 3, 4, 5, 6].map(|index| (index, 1)));
    assert!(entries.iter().all(|entry| entry.data.is_empty()));
}

#[test]
fn a_compacted_log_has_the_term_before_its_first_entry_and_asks_for_a_snapshot() {
    let mut log = log();
    log.compact(4);
    assert_eq!((log.base(), log.last(), log.term(4).unwrap()), (4, 6, 1));
    assert!(log.term(3).is_err() && read(&mut log, 4, 6, 0).is_err());
    assert_eq!(read(&mut log, 5, 7, u64::MAX).unwrap(), [5, 6]);
    assert!(!log.take_question());
    assert!(log.snapshot(0, 2).is_err());
    assert!(log.take_question() && !log.take_question());
    log.offer((5, 1), vec![7]);
    let snapshot = log.snapshot(0, 2).unwrap();
    assert_eq!(
        (snapshot.get_metadata().index, &snapshot.data[..]),
        (5, &[7][..])
    );
    assert!(log.snapshot(6, 2).is_err(), "it is too old");
    log.compact(6);
    assert!(log.snapshot(0, 2).is_err(), "no follower can go on from it");
    let roster = log.roster().clone();
    log.restore(&snapshot, roster);
    assert_eq!((log.base(), log.last(), log.term(5).unwrap()), (5, 5, 1));
}
