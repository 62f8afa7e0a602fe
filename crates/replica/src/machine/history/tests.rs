//! Changes from an index on, and long histories.

use super::*;
use crate::wire::Answer;

fn note(history: &mut History, index: u64, key: &str) {
    history.note(index, key.as_bytes(), Change::Deleted);
}

/// The indices of the changes from `from` on, and the next index.
fn since(history: &History, prefix: &str, from: u64) -> Option<(Vec<u64>, u64)> {
    let events = history.since(prefix.as_bytes(), from, 99)?;
    let mut bytes = vec![0; Answer::size_of_events(&events)];
    Answer::encode_events(&events, &mut bytes);
    match Answer::decode(&bytes).unwrap() {
        Answer::Events { next, events } => {
            Some((events.iter().map(|event| event.index).collect(), next))
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn changes_are_shown_from_an_index_on() {
    let mut history = History::new(4);
    for (index, key) in [(5, "a"), (5, "b"), (6, "a"), (9, "ab")] {
        note(&mut history, index, key);
    }
    assert_eq!(since(&history, "", 4), None);
    assert_eq!(since(&history, "", 5), Some((vec![5, 5, 6, 9], 100)));
    assert_eq!(since(&history, "a", 6), Some((vec![6, 9], 100)));
    assert_eq!(since(&history, "b", 6), Some((vec![], 100)));
    assert_eq!(since(&history, "", 200), Some((vec![], 200)));
}

#[test]
fn a_long_history_forgets_whole_entries_and_is_shown_in_parts() {
    let (mut history, long) = (History::new(4), "x".repeat(1000));
    for index in 5..40_000 {
        note(&mut history, index, &long);
        note(&mut history, index, &long);
    }
    let first = history.first();
    assert!(first > 20_000 && history.bytes <= MOST, "{first}");
    assert_eq!(since(&history, "", first - 1), None);
    let (seen, next) = since(&history, "", first).unwrap();
    let both = seen.chunks(2).all(|pair| pair[0] == pair[1]);
    assert!(
        both && seen[0] == first && seen.last() == Some(&(next - 1)),
        "{next}"
    );
}
