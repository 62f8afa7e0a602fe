//! The checksum of the Internet protocols (RFC 1071): the ones' complement sum of 16-bit words.

/// A sum in progress.
///
/// ```
/// use dunlin_packet::Sum;
/// // The example of RFC 1071, in two parts of odd length.
/// let mut sum = Sum::default();
/// sum.add(&[0x00, 0x01, 0xf2]);
/// sum.add(&[0x03, 0xf4, 0xf5, 0xf6, 0xf7]);
/// assert_eq!(sum.folded(), 0xddf2);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sum {
    /// The sum of 16-bit words in the order of this machine's bytes, which has the same carries
    /// (RFC 1071, 2.B). Each part that is added has fewer than 32 bits, so it does not overflow
    /// before 2^32 of them.
    total: u64,
    /// Whether the bytes so far end in the middle of a word.
    odd: bool,
}

impl Sum {
    /// Adds bytes after those so far.
    #[inline]
    pub fn add(&mut self, bytes: &[u8]) {
        let bytes = match bytes.split_first() {
            Some((second, rest)) if self.odd => {
                self.total += u64::from(u16::from_ne_bytes([0, *second]));
                self.odd = false;
                rest
            }
            _ => bytes,
        };
        let (words, rest) = bytes.as_chunks::<4>();
        let words = words
            .iter()
            .map(|word| u64::from(u32::from_ne_bytes(*word)));
        self.total += words.sum::<u64>();
        let (pairs, last) = rest.as_chunks::<2>();
        for pair in pairs {
            self.total += u64::from(u16::from_ne_bytes(*pair));
        }
        if let [first] = last {
            self.total += u64::from(u16::from_ne_bytes([*first, 0]));
            self.odd = true;
        }
    }

    /// Appends another sum to this one, which must have an even number of bytes.
    #[inline]
    pub fn append(&mut self, other: Self) {
        debug_assert!(!self.odd, "a sum is appended at a whole word");
        self.total += other.total;
        self.odd = other.odd;
    }

    /// The sum as 16 bits.
    #[inline]
    pub fn folded(&self) -> u16 {
        let mut total = self.total;
        while total > 0xFFFF {
            total = (total & 0xFFFF) + (total >> 16);
        }
        let [low, high, ..] = total.to_le_bytes();
        u16::from_be(u16::from_le_bytes([low, high]))
    }
}

#[cfg(test)]
mod tests;
