//! The time of a measurement. The tests of `case` cover rounds.

use super::*;

#[test]
fn measurements_share_the_time_that_is_left() {
    let second = Duration::from_secs(1);
    assert_eq!(span(10 * second, 10), second);
    assert_eq!(span(Duration::ZERO, 10), SHORTEST);
    assert_eq!(span(second, 0), second);
}
