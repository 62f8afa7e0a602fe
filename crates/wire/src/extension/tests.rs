//! Bitmaps and acknowledgement vectors, compared with plain sets and arrays.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::{ACK_VECTOR_LEN, AckVector, Bitmap, MAX_AHEAD, MAX_BITMAP_BITS, MAX_BITMAP_WORDS};
use crate::ReqNum;

proptest! {
    #[test]
    fn a_bitmap_is_the_set_of_inserted_offsets(
        offsets in prop::collection::btree_set(0..MAX_BITMAP_BITS, 0..40),
    ) {
        let mut bitmap = Bitmap::EMPTY;
        for offset in &offsets {
            prop_assert!(bitmap.insert(*offset));
        }
        let found: BTreeSet<u32> = (0..MAX_BITMAP_BITS).filter(|o| bitmap.contains(*o)).collect();
        prop_assert_eq!(&found, &offsets);
        prop_assert!(bitmap.offsets().eq(offsets.iter().copied()));
        prop_assert_eq!(bitmap.last(), offsets.last().copied());

        let words = bitmap.words();
        prop_assert_eq!(words, offsets.last().map_or(0, |last| last / 64 + 1));
        let bytes = bitmap.encode();
        let sent = &bytes[..words as usize * 8];
        prop_assert_eq!(Bitmap::decode(sent, bitmap.extent()), Some(bitmap));
        if words > 0 {
            prop_assert_eq!(Bitmap::decode(&sent[1..], words), None);
        }
    }

    #[test]
    fn an_ack_vector_survives_encoding_and_decoding(
        acks in any::<[u32; 4]>(),
        behind in 0_usize..4,
    ) {
        let vector = AckVector(acks.map(ReqNum));
        let mut bytes = vector.encode().to_vec();
        bytes.resize(ACK_VECTOR_LEN + behind, 0xFF);
        prop_assert_eq!(AckVector::decode(&bytes), Some(vector));
        prop_assert_eq!(AckVector::decode(&bytes[..ACK_VECTOR_LEN - 1]), None);
    }
}

#[test]
fn a_bitmap_ends_at_256_packets() {
    let mut bitmap = Bitmap::EMPTY;
    for beyond in [MAX_BITMAP_BITS, MAX_BITMAP_BITS + 1, u32::MAX] {
        assert!(!bitmap.insert(beyond));
        assert!(!bitmap.contains(beyond));
    }
    assert_eq!(bitmap, Bitmap::EMPTY);
    assert_eq!(Bitmap::decode(&[0; 64], MAX_BITMAP_WORDS + 1), None);
}

#[test]
fn a_bitmap_may_begin_with_a_later_word() {
    let mut bitmap = Bitmap::beginning_with(4);
    for outside in [0, 255, MAX_AHEAD, u32::MAX] {
        assert!(!bitmap.insert(outside) && !bitmap.contains(outside));
    }
    assert_eq!(bitmap.extent(), 0, "an empty bitmap has no extent");
    assert!(bitmap.insert(256) && bitmap.insert(MAX_AHEAD - 1));
    assert!(bitmap.offsets().eq([256, MAX_AHEAD - 1]));
    assert_eq!(bitmap.last(), Some(MAX_AHEAD - 1));
    assert_eq!((bitmap.words(), bitmap.extent()), (4, 4 << 4 | 4));
    assert_eq!(Bitmap::decode(&bitmap.encode(), 0x44), Some(bitmap));
    // These name too many words, words too far ahead, or a first word of no words at all.
    for extent in [0x05, 0x54, 0x81, 0x72, 0xF1, 0x10, 0x80] {
        assert_eq!(Bitmap::decode(&[0; 64], extent), None, "{extent:x}");
    }
    assert_eq!(Bitmap::decode(&[0; 64], u32::MAX), None);
}
