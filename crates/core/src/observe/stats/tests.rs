//! Statistics alone: readers see the reported values.

use super::*;

#[test]
fn packets_of_the_common_path_count_as_packets() {
    let mut stats = Stats::default();
    stats.on_frames(3);
    stats.on_packet();
    stats.on_plain(4, 1);
    let counters = stats.counters();
    assert_eq!((counters.rx_frames, counters.rx_packets), (3, 5));
    assert_eq!((counters.rx_plain, counters.rx_declined), (4, 1));
}

#[test]
fn a_drop_is_counted_by_its_reason_alone() {
    let mut stats = Stats::default();
    for reason in [DropReason::Token, DropReason::Token, DropReason::Size] {
        stats.on_drop(reason);
    }
    let named = stats.counters().drops.named();
    let mut counted: Vec<u64> = named.iter().map(|drop| drop.1).collect();
    counted.retain(|&count| count != 0);
    counted.sort_unstable();
    assert_eq!(counted, [1, 2]);
    assert_eq!(stats.counters().rx_packets, 0);
}
