//! Items of a trace: values whose lengths are spread evenly over powers of two.

/// The length of the shortest value, and the length of the longest one divided by it, as powers of
/// two.
const SHORTEST_BITS: f64 = 4.0;
const RANGE_BITS: f64 = 10.0;

/// The longest value.
pub(super) const LONGEST: usize = 1 << 14;

/// Bytes of the mean item: (2^14 − 2^4) / ln 2^10 for its value, and the bytes of its key.
pub(super) const MEAN: u64 = 2362 + crate::harness::items::KEY as u64;

/// The length of an item's value, which never changes.
pub(super) fn len_of(number: u32) -> usize {
    let share = f64::from(scattered(number)) / f64::from(u32::MAX);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between 16 and 16384"
    )]
    let len = RANGE_BITS.mul_add(share, SHORTEST_BITS).exp2() as usize;
    len.min(LONGEST)
}

/// Scatters numbers, so that neighbours are far apart (the finaliser of `MurmurHash3`).
const fn scattered(number: u32) -> u32 {
    let mut mixed = number;
    mixed = (mixed ^ mixed >> 16).wrapping_mul(0x85eb_ca6b);
    mixed = (mixed ^ mixed >> 13).wrapping_mul(0xc2b2_ae35);
    mixed ^ mixed >> 16
}

#[cfg(test)]
mod tests;
