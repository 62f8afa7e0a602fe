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
    /// The sum of 64-bit words in the order of this machine's bytes, with the carry added again. It
    /// has the same 16-bit sum (RFC 1071, 2.B and 2.C).
    total: u64,
    /// Whether the bytes so far end in the middle of a 16-bit word.
    odd: bool,
}

/// Words from which on many are added at once, without carries between them. That takes some time
/// to set up.
const MANY: usize = 24;

impl Sum {
    /// Adds bytes after those so far.
    #[inline]
    pub fn add(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        let total = match words.len() {
            MANY.. => sum_of_many(words),
            _ => words.iter().fold(0, |sum, word| around(sum, number(*word))),
        };
        self.add_part(around(total, sum_of_rest(rest)), bytes.len());
    }

    /// Copies bytes, and adds them after those so far.
    ///
    /// ```
    /// use dunlin_packet::Sum;
    /// let (mut one, mut other, mut copy) = (Sum::default(), Sum::default(), [0; 11]);
    /// one.add(b"hello again");
    /// other.copy(b"hello again", &mut copy);
    /// assert_eq!((&copy, one), (b"hello again", other));
    /// ```
    ///
    /// # Panics
    /// If the lengths differ.
    #[inline]
    pub fn copy(&mut self, from: &[u8], to: &mut [u8]) {
        assert_eq!(from.len(), to.len(), "a copy is as long as its source");
        let (words, rest) = from.as_chunks::<8>();
        if words.len() >= MANY {
            to.copy_from_slice(from);
            return self.add(from);
        }
        let (copies, last) = to.as_chunks_mut::<8>();
        let mut total = sum_of_rest(rest);
        for (word, copy) in words.iter().zip(copies) {
            *copy = *word;
            total = around(total, number(*word));
        }
        for (byte, copy) in rest.iter().zip(last) {
            *copy = *byte;
        }
        self.add_part(total, from.len());
    }

    /// Appends another sum to this one, which must have an even number of bytes.
    #[inline]
    pub fn append(&mut self, other: Self) {
        debug_assert!(!self.odd, "a sum is appended at a whole word");
        self.total = around(self.total, other.total);
        self.odd = other.odd;
    }

    /// The sum as 16 bits.
    #[inline]
    pub fn folded(&self) -> u16 {
        let half = (self.total >> 32) + (self.total & 0xFFFF_FFFF);
        let half = (half >> 32) + (half & 0xFFFF_FFFF);
        let quarter = (half >> 16) + (half & 0xFFFF);
        let quarter = (quarter >> 16) + (quarter & 0xFFFF);
        let [low, high, ..] = quarter.to_le_bytes();
        u16::from_be(u16::from_le_bytes([low, high]))
    }

    /// Adds the sum of `len` bytes. Bytes after half of a word are in the other half of each word,
    /// as if their sum were turned by a byte.
    #[inline]
    fn add_part(&mut self, part: u64, len: usize) {
        let part = if self.odd { part.rotate_left(8) } else { part };
        self.total = around(self.total, part);
        self.odd ^= len % 2 == 1;
    }
}

#[inline]
fn number(word: [u8; 8]) -> u64 {
    u64::from_ne_bytes(word)
}

/// The sum with its carry added again.
#[inline]
fn around(one: u64, other: u64) -> u64 {
    let (sum, carry) = one.overflowing_add(other);
    sum + u64::from(carry)
}

/// The sum of fewer than 2^31 words.
#[inline]
fn sum_of_many(words: &[[u8; 8]]) -> u64 {
    let (halves, _) = words.as_flattened().as_chunks::<4>();
    let halves = halves.iter();
    halves
        .map(|half| u64::from(u32::from_ne_bytes(*half)))
        .sum()
}

/// The sum of the bytes after the last word.
#[inline]
fn sum_of_rest(rest: &[u8]) -> u64 {
    if rest.is_empty() {
        return 0;
    }
    let mut word = [0; 8];
    word.iter_mut().zip(rest).for_each(|(to, byte)| *to = *byte);
    number(word)
}

#[cfg(test)]
mod tests;
