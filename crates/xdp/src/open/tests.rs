//! Options that decide about each other.

use super::Options;

#[test]
fn only_an_endpoint_that_copies_takes_packets_without_a_whole_sum() {
    for (partial_sums, zero_copy, takes) in [
        (true, false, true),
        (false, false, false),
        (true, true, false),
        (false, true, false),
    ] {
        let options = Options {
            partial_sums,
            zero_copy,
            ..Options::default()
        };
        assert_eq!(options.takes_partial_sums(), takes);
    }
}
