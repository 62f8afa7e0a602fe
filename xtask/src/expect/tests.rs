//! Outputs that match, and each way in which an output can differ.

use super::*;

#[test]
fn a_mark_stands_for_any_text_that_is_not_empty() {
    assert!(matches("a", "a") && matches("…", "a") && matches("a…c…e", "abcde"));
    assert!(matches("… ns", "1 ns of 2 ns") && matches("…µs", "8µµs"));
    assert!(!matches("a", "ab") && !matches("…", "") && !matches("a…", "a"));
    assert!(!matches("… ns", " ns") && !matches("a…c", "abd"));
}

#[test]
fn the_first_difference_is_found() {
    assert_eq!(difference("a\nb\n", "a\nb\n"), None);
    assert_eq!(
        difference("a\nb\n", "a\nc\n").as_deref(),
        Some("expected \"b\", found \"c\"")
    );
    assert_eq!(
        difference("a\nb\n", "a\n").as_deref(),
        Some("expected \"b\", found the end")
    );
    assert_eq!(
        difference("", "a\n").as_deref(),
        Some("expected the end, found \"a\"")
    );
}

#[test]
fn order_matters_unless_the_file_says_otherwise() {
    assert!(difference("b\na\n", "a\nb\n").is_some());
    assert_eq!(difference("(in any order)\nb\na\n", "a\nb\n"), None);
    assert!(difference("(in any order)\nb\na\n", "a\na\n").is_some());
}
