//! Times in flags and in output lines.

use std::time::Duration;

use super::{micros, span};

#[test]
fn times_are_seconds_or_have_a_unit() {
    for (text, nanos) in [
        ("0", 0),
        ("1", 1_000_000_000),
        ("0.2", 200_000_000),
        ("50us", 50_000),
        ("50 µs", 50_000),
        ("1.5 ms", 1_500_000),
        ("2 min", 120_000_000_000),
    ] {
        assert_eq!(span(text), Ok(Duration::from_nanos(nanos)), "{text}");
    }
    for wrong in ["", "ms", "-1", "1 h", "nan", "inf", "1e9", "86401", "1 s 2"] {
        assert!(span(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn small_times_have_more_digits() {
    for (nanos, text) in [
        (0, "0.00"),
        (1_234, "1.23"),
        (12_340, "12.3"),
        (4_294_000, "4294"),
    ] {
        assert_eq!(micros(Duration::from_nanos(nanos)), text);
    }
}
