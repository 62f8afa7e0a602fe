//! Readers of pcap files understand a recorded frame.

use dunlin_sim::scenario::Nanos;
use dunlin_sim::world::net::{Captured, PortId};

use super::record;
use crate::commands::headers::LEN;

#[test]
fn a_record_has_its_time_its_ends_and_its_bytes() {
    let frame = Captured {
        at: Nanos(3_000_000_007),
        from: PortId(258),
        to: PortId(1),
        bytes: b"hello",
        congestion: true,
    };
    let record = record(&frame);
    let word = |at: usize| u32::from_le_bytes(*record[at..].first_chunk().unwrap());
    let len = u32::try_from(LEN + 5).unwrap();
    assert_eq!([word(0), word(4), word(8), word(12)], [3, 7, len, len]);
    let ip = &record[16 + 14..][..20];
    assert_eq!(
        (&ip[12..16], &ip[16..]),
        (&[10, 0, 1, 2][..], &[10, 0, 0, 1][..])
    );
    assert_eq!(ip[1] & 3, 3, "congestion experienced");
    // The checksum over a header that includes its checksum is 0.
    let sum: u32 = ip
        .chunks(2)
        .map(|it| u32::from(it[0]) << 8 | u32::from(it[1]))
        .sum();
    assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff);
    assert!(record.ends_with(b"hello"));
}
