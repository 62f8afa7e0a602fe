//! Words of unusual lines, which clients do not send on purpose.

use super::{Words, visible};
use crate::limits::MAX_WORDS;

#[test]
fn consecutive_spaces_separate_two_words() {
    let words = Words::new(b"  get  a b ");
    assert_eq!(words.from(0), [&b"get"[..], b"a", b"b"]);
    assert_eq!(words.last(), b"b");
    assert!(words.at(5).is_empty() && !words.is_quiet());
}

#[test]
fn a_line_has_no_more_words_than_fit() {
    let line = b"w ".repeat(100);
    assert_eq!(Words::new(&line).len(), MAX_WORDS);
    assert_eq!(Words::new(b"   ").len(), 0);
}

#[test]
fn a_zero_ends_a_line() {
    assert_eq!(visible(b"get a\0b c"), b"get a");
    assert_eq!(visible(b"get a"), b"get a");
}
