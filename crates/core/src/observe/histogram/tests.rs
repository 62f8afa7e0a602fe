//! Buckets are in order, without gaps, and narrow.

use super::*;

/// The upper end of the last bucket; longer times share that bucket.
const LONGEST_NS: u64 = (1 << BITS) - 1;

#[test]
fn every_bucket_begins_where_the_one_before_ends() {
    for bucket in 0..Histogram::BUCKETS {
        let smallest = Histogram::smallest_ns(bucket);
        assert_eq!(Histogram::bucket(smallest), bucket);
        if bucket > 0 {
            assert_eq!(Histogram::bucket(smallest - 1), bucket - 1);
        }
    }
}

#[test]
fn a_bucket_is_at_most_an_eighth_as_wide_as_its_smallest_time() {
    for bucket in 16..Histogram::BUCKETS {
        let smallest = Histogram::smallest_ns(bucket);
        let width = Histogram::smallest_ns(bucket + 1) - smallest;
        assert!(width * 8 <= smallest, "bucket {bucket}");
    }
}

#[test]
fn the_longest_times_share_the_last_bucket() {
    let mut histogram = Histogram::default();
    histogram.record(Nanos(LONGEST_NS));
    histogram.record_many(Nanos::from_secs(3600), 2);
    assert_eq!(histogram.buckets()[Histogram::BUCKETS - 1], 3);
    assert_eq!(Histogram::bucket(LONGEST_NS), Histogram::BUCKETS - 1);
    assert_eq!(Histogram::bucket(LONGEST_NS + 1), Histogram::BUCKETS);
    assert_eq!(histogram.sum_ns(), LONGEST_NS + 2 * 3_600_000_000_000);
    assert_eq!(Histogram::smallest_ns(Histogram::BUCKETS), LONGEST_NS + 1);
}
