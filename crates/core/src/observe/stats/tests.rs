//! Statistics alone: readers see the reported values.

use super::*;

#[test]
fn packets_of_the_common_path_count_as_packets() {
    let mut stats = Stats::default();
    stats.on_frames(3);
    stats.on_packet();
    stats.on_plain(4, 1, Nanos::ZERO);
    let counters = stats.counters();
    assert_eq!((counters.rx_frames, counters.rx_packets), (3, 5));
    assert_eq!((counters.rx_plain, counters.rx_declined), (4, 1));
}

/// The sum of the times of calls, and their number.
fn times(stats: &Stats) -> (u64, u64) {
    let calls = &stats.histograms().call;
    (calls.sum_ns(), calls.buckets().iter().sum())
}

#[test]
fn a_packet_of_the_common_path_ends_a_call_or_is_a_request() {
    let mut stats = Stats::default();
    let came = || Nanos(100);
    for sent in [40, 40, 90, 40] {
        stats.on_plain_answer(Nanos(sent), came);
    }
    stats.on_plain(6, 0, came());
    assert_eq!(times(&stats), (60 + 60 + 10 + 60, 4));
    let counters = *stats.counters();
    assert_eq!((counters.completions, counters.requests_received), (4, 2));
    // The next burst brings an answer to a call that was sent at that time.
    stats.on_plain_answer(Nanos(40), || Nanos(150));
    stats.on_plain(1, 0, Nanos(150));
    assert_eq!(times(&stats), (190 + 110, 5));
    assert_eq!(stats.counters().completions, 5);
}

#[test]
fn a_lone_packet_counts_at_once() {
    let mut stats = Stats::default();
    stats.on_lone(Some(Nanos(70)));
    stats.on_lone(None);
    assert_eq!(times(&stats), (70, 1));
    let counters = stats.counters();
    assert_eq!((counters.completions, counters.requests_received), (1, 1));
    assert_eq!((counters.rx_packets, counters.rx_plain), (2, 2));
}

#[test]
fn a_drop_is_counted_only_under_its_reason() {
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
