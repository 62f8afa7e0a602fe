//! Lines that no other test sends, because memcached answers them differently or not at all.

use dunlin_store::Seconds;

use super::{Ask, Command, parse};
use crate::operation::Operation;

const NOW: Seconds = Seconds(1_800_000_000);

#[test]
fn a_command_reads_its_key_where_it_stands() {
    let Command::Ask(ask) = parse(b"  ms  dGV4dA==  3 b  q", NOW) else {
        panic!("the line is not a command");
    };
    assert_eq!(ask.value_len(), Some(3));
    assert_eq!(ask.operation(b"abc").key(), Some(&b"text"[..]));
}

#[test]
fn times_are_counted_from_now_or_are_dates() {
    let expiry = |time: &str| {
        let line = format!("touch k {time}");
        let Command::Ask(Ask::Change(change)) = parse(line.as_bytes(), NOW) else {
            panic!("{time} is refused");
        };
        match Ask::Change(change).operation(b"") {
            Operation::Touch { expiry, .. } => expiry.map(|at| at.0),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(expiry("0"), None);
    assert_eq!(expiry("2592000"), Some(NOW.0 + 2_592_000));
    assert_eq!(expiry("2592001"), Some(2_592_001));
    assert_eq!(expiry("-1"), Some(NOW.0 - 1));
}

#[test]
fn a_key_in_base64_is_refused_if_it_is_too_long() {
    let line = format!("me {} b", "QUFB".repeat(70));
    assert!(matches!(parse(line.as_bytes(), NOW), Command::Say(_)));
}
