//! A set of packets of a message: for example, those that have arrived, are lost, or were sent
//! again.
//!
//! Invariant: a packet's bit is at its number modulo 512. Used by `transfer/scoreboard.rs`, whose
//! tests compare it with plain sets.

use dunlin_wire::MAX_AHEAD;

/// Words of a set of packets.
pub(super) const WORDS: usize = (MAX_AHEAD / u64::BITS) as usize;

/// A set of packets that are all less than [`MAX_AHEAD`] apart.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PacketSet([u64; WORDS]);

impl PacketSet {
    #[inline]
    fn place(packet: u32) -> (usize, u64) {
        let at = packet % MAX_AHEAD;
        ((at / u64::BITS) as usize, 1 << (at % u64::BITS))
    }

    #[inline]
    pub(super) fn has(&self, packet: u32) -> bool {
        let (word, bit) = Self::place(packet);
        self.0[word] & bit != 0
    }

    #[inline]
    pub(super) fn insert(&mut self, packet: u32) {
        let (word, bit) = Self::place(packet);
        self.0[word] |= bit;
    }

    #[inline]
    pub(super) fn remove(&mut self, packet: u32) {
        let (word, bit) = Self::place(packet);
        self.0[word] &= !bit;
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.0.iter().fold(0, |all, word| all | word) == 0
    }

    /// The set as words; the lowest bit of the first word is `base`. No packet of the set may be
    /// below `base`.
    pub(super) fn words_from(&self, base: u32) -> [u64; WORDS] {
        let (first, shift) = (Self::place(base).0, base % u64::BITS);
        std::array::from_fn(|index| {
            let [low, high] = [index, index + 1].map(|at| self.0[(first + at) % WORDS]);
            // `checked_shl` gives `None` for a shift by 64.
            low >> shift | high.checked_shl(u64::BITS - shift).unwrap_or(0)
        })
    }
}
