//! Sums compared with their definition.

use super::*;
use proptest::prelude::*;

/// The definition, word by word.
fn slow(bytes: &[u8]) -> u16 {
    let mut total = 0_u32;
    for word in bytes.chunks(2) {
        let word = [word[0], word.get(1).copied().unwrap_or(0)];
        total += u32::from(u16::from_be_bytes(word));
        total = (total & 0xFFFF) + (total >> 16);
    }
    u16::try_from(total).unwrap()
}

proptest! {
    #[test]
    fn parts_of_any_length_have_the_sum_of_the_definition(
        bytes in proptest::collection::vec(any::<u8>(), 0..1500),
        cuts in proptest::collection::vec(0_usize..1500, 0..5),
    ) {
        let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
        cuts.sort_unstable();
        let mut sum = Sum::default();
        let mut from = 0;
        for to in cuts.into_iter().chain([bytes.len()]) {
            sum.add(&bytes[from..to]);
            from = to;
        }
        prop_assert_eq!(sum.folded(), slow(&bytes));
    }

    #[test]
    fn a_copy_has_the_bytes_and_the_sum(
        before in proptest::collection::vec(any::<u8>(), 0..4),
        bytes in proptest::collection::vec(any::<u8>(), 0..1500),
    ) {
        let (mut sum, mut copy) = (Sum::default(), vec![0; bytes.len()]);
        sum.add(&before);
        sum.copy(&bytes, &mut copy);
        prop_assert_eq!(sum.folded(), slow(&[before, bytes.clone()].concat()));
        prop_assert_eq!(copy, bytes);
    }
}

#[test]
fn long_sums_do_not_overflow() {
    let bytes = [0xFF; 65_535];
    let mut sum = Sum::default();
    sum.add(&bytes);
    assert_eq!(sum.folded(), slow(&bytes));
    let (mut sum, mut copy) = (Sum::default(), [0; 65_535]);
    sum.copy(&bytes, &mut copy);
    assert_eq!((sum.folded(), copy), (slow(&bytes), bytes));
}

#[test]
fn a_block_is_added_without_losing_a_carry() {
    let sums = [0, 1, 0xFFFF, u64::MAX - 1, u64::MAX];
    for total in sums {
        let sum = Sum { total, odd: false };
        assert_eq!(sum.small().folded() % 0xFFFF, sum.folded() % 0xFFFF);
        for words in sums.iter().flat_map(|one| sums.map(|other| [*one, other])) {
            let mut block = [0; 16];
            let halves = block.as_chunks_mut::<8>().0.iter_mut();
            halves
                .zip(words)
                .for_each(|(to, word)| *to = word.to_ne_bytes());
            let mut wanted = sum;
            wanted.add(&block);
            let found = sum.small().with(&block);
            assert_eq!(
                found.folded() % 0xFFFF,
                wanted.folded() % 0xFFFF,
                "{total} {words:?}"
            );
            assert_eq!(found.folded() == 0, wanted.folded() == 0);
        }
    }
}

#[test]
fn sums_are_checked_and_divided_like_their_16_bits() {
    let edges = [
        0,
        1,
        0xFFFE,
        0xFFFF,
        0x1_0000,
        0xFFFF << 16,
        u64::MAX / 2,
        u64::MAX - 1,
    ];
    let multiples = [1, 2, 3, 0xFFFF, 1 << 47, u64::MAX / 0xFFFF].map(|it| it * 0xFFFF);
    let near = multiples.map(|it| it - 1);
    for total in edges.into_iter().chain(multiples).chain(near) {
        let sum = Sum { total, odd: false };
        assert_eq!(sum.is_right(), sum.folded() == 0xFFFF, "{total:#x}");
        assert_eq!(sum.remainder(), sum.native() % 0xFFFF, "{total:#x}");
    }
}
