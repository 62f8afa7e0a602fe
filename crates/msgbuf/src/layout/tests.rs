//! Tests of `layout`: every length has a block that holds it with all of its headers.

use super::*;
use proptest::prelude::*;

/// The pieces of a block: the data, and each header slot with its headroom.
fn pieces(layout: Layout, len: usize) -> (usize, Vec<std::ops::Range<usize>>) {
    let class = layout.class(len).expect("the length is allowed");
    let block = layout.block_size(class);
    let slot = |packet| {
        let header = header_offset(block, packet);
        header - HEADROOM..header + HEADER_LEN
    };
    let data = DATA_OFFSET..DATA_OFFSET + len;
    (
        block,
        std::iter::once(data)
            .chain((0..layout.packets(len)).map(slot))
            .collect(),
    )
}

fn assert_disjoint_in_block(layout: Layout, len: usize) {
    let (block, mut pieces) = pieces(layout, len);
    pieces.sort_by_key(|piece| (piece.start, piece.end));
    for pair in pieces.windows(2) {
        assert!(
            pair[0].end <= pair[1].start,
            "{pair:?} overlap, {len} bytes in {layout:?}"
        );
    }
    let last = pieces.last().expect("the data is a piece");
    assert!(
        last.end <= block,
        "{last:?} ends after its block of {block} bytes"
    );
}

#[test]
fn a_message_of_32_bytes_shares_the_line_of_its_header() {
    assert_eq!(header_offset(MIN_BLOCK, 0) % 64, 0);
    assert_eq!(header_offset(MIN_BLOCK, 0) + HEADER_LEN, DATA_OFFSET);
    const { assert!(HEADER_LEN + 32 <= 64) };
    assert_eq!(Layout::new(1440).class(40), Some(0));
    assert_eq!(Layout::new(1440).class(41), Some(1));
}

#[test]
fn classes_are_minimal_and_monotonic() {
    for data_size in [MIN_DATA_SIZE, 1440, 4096, 1 << 20] {
        let layout = Layout::new(data_size);
        let step = if cfg!(miri) { 1009 } else { 1 };
        for len in (0..=MAX_BLOCK + 1000).step_by(step) {
            let class = layout.class(len).expect("the length is allowed");
            assert!(layout.footprint(len) <= layout.block_size(class));
            if let Some(below) = class.checked_sub(1) {
                assert!(layout.footprint(len) > layout.block_size(below) || below >= SMALL_CLASSES);
            }
            if len <= layout.single_limit() {
                assert_eq!(
                    small_class(DATA_OFFSET + len),
                    class,
                    "the fast path finds the same class"
                );
            }
        }
    }
}

#[test]
fn the_longest_message_has_the_last_class() {
    let layout = Layout::new(MIN_DATA_SIZE);
    assert_eq!(layout.class(MAX_MESSAGE), Some(CLASSES - 1));
    assert_eq!(layout.class(MAX_MESSAGE + 1), None);
    assert!(layout.block_size(CLASSES - 1) < u32::MAX as usize);
    assert!(layout.capacity(layout.block_size(CLASSES - 1)) >= MAX_MESSAGE);
}

#[test]
fn headers_after_the_data_do_not_straddle_cache_lines() {
    for packet in 0..100 {
        let at = header_offset(MAX_BLOCK, packet);
        assert_eq!(at / 64, (at + HEADER_LEN - 1) / 64, "header {packet}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 256 }))]

    #[test]
    fn capacity_is_the_longest_message_that_fits(data_size in 64_u32..9000, class in 0..CLASSES) {
        let layout = Layout::new(data_size);
        let block = layout.block_size(class);
        let capacity = layout.capacity(block);
        prop_assert!(layout.footprint(capacity) <= block);
        prop_assert!(layout.footprint(capacity + 1) > block);
    }

    #[test]
    fn data_and_headers_lie_in_the_block(
        data_size in 64_u32..9000,
        len in prop_oneof![0_usize..300, 0_usize..100_000, Just(1 << 20), Just((1 << 20) + 1)],
    ) {
        assert_disjoint_in_block(Layout::new(data_size), len);
    }
}
