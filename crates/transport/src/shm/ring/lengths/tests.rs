//! Tests of the lengths that packets with messages elsewhere may have.

use super::{CELL, Lengths, MOST_LINES, SHORT, WORD};

#[test]
fn lengths_are_longer_than_copied_messages_and_at_most_the_longest() {
    for (longest, last) in [
        (0, SHORT),
        (281, 281),
        (900, 900),
        (u32::MAX, MOST_LINES * CELL - WORD),
    ] {
        let lengths = Lengths::up_to(longest);
        for len in 0..2000 {
            assert_eq!(lengths.contain(len), len > SHORT && len <= last, "{len}");
        }
        assert!(!lengths.contain(usize::MAX));
    }
}
