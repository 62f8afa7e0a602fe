//! The texts by which a scenario file names the hosts of a load.

use super::hosts;

#[test]
fn hosts_are_one_some_or_all() {
    assert_eq!(hosts("3", 10), Some(3..4));
    assert_eq!(hosts("1-4", 10), Some(1..5));
    assert_eq!(hosts("1-", 10), Some(1..10));
    assert_eq!(hosts("all", 10), Some(0..10));
    for wrong in ["", "x", "1-x", "-3", "1-2-3"] {
        assert_eq!(hosts(wrong, 10), None, "{wrong}");
    }
}
