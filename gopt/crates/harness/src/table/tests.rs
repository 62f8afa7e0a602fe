//! Columns are aligned, and invalid rows are marked.

use super::*;
use crate::row::tests::sample;

#[test]
fn columns_line_up_and_invalid_rows_say_so() {
    let row = Row {
        max: 1_410.0,
        ..sample()
    };
    let text = render(&[
        row.clone(),
        Row {
            transport: "udp".into(),
            valid: false,
            ..row
        },
    ]);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3);
    assert_eq!(lines[1].find("rtt_p50"), lines[0].find("metric"));
    assert!(lines[1].ends_with("1.41 µs    200 ns   2.00"), "{text}");
    assert!(lines[2].ends_with("INVALID"), "{text}");
}

#[test]
fn rows_of_too_few_rounds_say_how_many_there_were() {
    let row = Row {
        measured: Some(false),
        runs: 2,
        ..sample()
    };
    let enough = Row {
        measured: Some(true),
        runs: 7,
        ..sample()
    };
    let invalid = Row {
        valid: false,
        ..row.clone()
    };
    let text = render(&[row, enough, invalid]);
    let lines: Vec<&str> = text.lines().collect();
    assert!(
        lines[1].ends_with("  not measured: 2 of 7 rounds"),
        "{text}"
    );
    assert!(lines[2].ends_with("2.00"), "{text}");
    assert!(
        lines[3].ends_with("INVALID, not measured: 2 of 7 rounds"),
        "{text}"
    );
}
