//! Links that go down and up.

use super::*;

#[test]
fn a_link_that_goes_down_is_seen_once() {
    let link = Link::default();
    let looks = [
        (0, true),
        (250, true),
        (300, false),
        (500, false),
        (750, false),
        (1000, true),
        (1250, false),
    ];
    let seen = looks.map(|(now_ms, is_up)| link.on_time(now_ms, || is_up));
    assert_eq!(seen, [false, false, false, true, false, false, true]);
}
