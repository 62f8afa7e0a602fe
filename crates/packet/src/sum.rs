//! The checksum of the Internet protocols (RFC 1071): the ones' complement sum of 16-bit words.

use std::hint::black_box;

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
    /// The sum of 64-bit words in the byte order of this machine, with end-around carry. It has the
    /// same 16-bit sum (RFC 1071, 2.B and 2.C).
    total: u64,
    /// Whether the bytes so far end in the middle of a 16-bit word.
    odd: bool,
}

/// From this number of bytes on, words are added without carries between them (`Halves`). This
/// takes some time to set up, so shorter runs of whole words are added with the carry of the word
/// before.
const MANY: usize = 192;

/// Words are added without carries in blocks, so that the loop has no remainder.
const BLOCK: usize = 64;

/// From this number of bytes on, one loop copies and adds (`copy_many`).
const LONG: usize = 512;

impl Sum {
    /// The sum of an even number of bytes; the compiler knows the number.
    #[inline]
    pub fn of<const N: usize>(bytes: &[u8; N]) -> Self {
        const { assert!(N.is_multiple_of(2), "the number of bytes is even") };
        let (_, rest) = bytes.as_chunks::<8>();
        let (pairs, _) = rest.as_chunks::<2>();
        let pairs = pairs
            .iter()
            .map(|pair| u64::from(u16::from_ne_bytes(*pair)));
        Self {
            total: sum_of_block(pairs.sum(), bytes),
            odd: false,
        }
    }

    /// Appends bytes to the sum.
    #[inline]
    pub fn add(&mut self, bytes: &[u8]) {
        let part = match is_short(bytes) {
            true => sum_of_words(bytes),
            false => sum_of_any(bytes),
        };
        self.add_part(part, bytes.len());
    }

    /// Copies bytes, and appends them to the sum.
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
        let part = match is_short(from) {
            true => copy_words(from, to),
            false if from.len() >= LONG => copy_many(from, to),
            false => {
                to.copy_from_slice(from);
                sum_of_any(from)
            }
        };
        self.add_part(part, from.len());
    }

    /// Copies a block of whole words, and appends its first `len` bytes to the sum. Its other bytes
    /// must be zeros.
    ///
    /// ```
    /// use dunlin_packet::Sum;
    /// let (mut one, mut other, mut copy) = (Sum::default(), Sum::default(), [1; 16]);
    /// one.add(b"thirteen byte");
    /// other.copy_block(b"thirteen byte\0\0\0", &mut copy, 13);
    /// assert_eq!((&copy, one), (b"thirteen byte\0\0\0", other));
    /// ```
    #[inline]
    pub fn copy_block<const N: usize>(&mut self, from: &[u8; N], to: &mut [u8; N], len: usize) {
        const { assert!(N.is_multiple_of(8), "a block has whole words") };
        debug_assert!(from[len..].iter().all(|byte| *byte == 0));
        *to = *from;
        // Zeros change no sum.
        self.add_part(sum_of_block(0, from), len);
    }

    /// The same sum in few bits, for [`Self::with`].
    #[inline]
    pub(super) fn small(self) -> Self {
        Self {
            total: (self.total >> 32) + (self.total & 0xFFFF_FFFF),
            odd: self.odd,
        }
    }

    /// This sum with a block of whole words appended. This sum must come from [`Self::small`] and
    /// have an even number of bytes.
    #[inline]
    pub(super) fn with<const N: usize>(self, block: &[u8; N]) -> Self {
        const { assert!(N.is_multiple_of(8), "a block has whole words") };
        debug_assert!(!self.odd, "a block is added at a whole word");
        debug_assert!(self.total >> 33 == 0, "the sum has few bits");
        let (sum, carry) = words_of_block(0, block);
        // If the addition carries, the total left is small, so adding the carry cannot overflow.
        let (total, carry) = sum.carrying_add(self.total, carry);
        Self {
            total: total.wrapping_add(u64::from(carry)),
            odd: false,
        }
    }

    /// This sum, which must have an even number of bytes, with two bytes appended.
    #[inline]
    pub(super) fn plus(self, pair: [u8; 2]) -> Self {
        debug_assert!(!self.odd, "a pair is added at a whole word");
        Self {
            total: around(self.total, u64::from(u16::from_ne_bytes(pair))),
            odd: false,
        }
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
        u16::from_be(self.native())
    }

    /// Whether a packet is undamaged; the sum must include its checksum. True if [`Self::folded`]
    /// is 0xFFFF, but with fewer instructions.
    ///
    /// ```
    /// use dunlin_packet::Sum;
    /// assert!(Sum::of(&[0x12, 0x34, 0xED, 0xCB]).is_right());
    /// assert!(!Sum::of(&[0x12, 0x34, 0xED, 0xCA]).is_right());
    /// assert!(!Sum::of(&[0; 4]).is_right());
    /// ```
    #[inline]
    pub fn is_right(&self) -> bool {
        // The 16-bit sum is 0xFFFF if the total is a multiple of 65 535 other than 0. The product
        // of MOST and 65 535 k is -k, for each k from 1 to MOST; any other total has another
        // product, because MOST is odd.
        const MOST: u64 = u64::MAX / 0xFFFF;
        const _: () = assert!(MOST.wrapping_mul(0xFFFF) == 1_u64.wrapping_neg());
        self.total.wrapping_mul(MOST) >= MOST.wrapping_neg()
    }

    /// The remainder of the sum when divided by 65 535, in the byte order of this machine.
    #[inline]
    pub(super) fn remainder(&self) -> u16 {
        (self.total % 0xFFFF) as u16
    }

    /// The sum as 16 bits in the byte order of this machine.
    #[inline]
    pub(super) fn native(&self) -> u16 {
        // After adding a number to itself with its halves exchanged, the upper half has the sum of
        // both halves. The lower half has the same sum, so its carry is the end-around carry.
        let half = (self.total.wrapping_add(self.total.rotate_left(32)) >> 32) as u32;
        (half.wrapping_add(half.rotate_left(16)) >> 16) as u16
    }

    /// Adds the sum of `len` bytes. If they begin in the middle of a 16-bit word, each byte belongs
    /// in the other half of its word, so their sum is rotated by a byte.
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

/// The sum with end-around carry.
#[inline]
fn around(one: u64, other: u64) -> u64 {
    let (sum, carry) = one.overflowing_add(other);
    sum + u64::from(carry)
}

/// Whether these are whole 64-bit words, few enough to be added word by word.
#[inline]
fn is_short(bytes: &[u8]) -> bool {
    bytes.len() < MANY && bytes.len().is_multiple_of(8)
}

/// The sum of the words of a block, without a loop: one addition for each word, with the carry of
/// the word before.
#[inline]
fn sum_of_block<const N: usize>(sum: u64, block: &[u8; N]) -> u64 {
    let (sum, carry) = words_of_block(sum, block);
    around(sum, u64::from(carry))
}

/// Like [`sum_of_block`], with the last carry returned separately.
#[inline]
fn words_of_block<const N: usize>(sum: u64, block: &[u8; N]) -> (u64, bool) {
    let (words, _) = block.as_chunks::<8>();
    let (mut sum, mut carry) = (sum, false);
    for word in words {
        (sum, carry) = sum.carrying_add(number(*word), carry);
    }
    (sum, carry)
}

/// The sum of a few whole words.
#[inline]
fn sum_of_words(bytes: &[u8]) -> u64 {
    let (mut sum, mut bytes) = (0, bytes);
    while let Some((block, rest)) = bytes.split_first_chunk::<32>() {
        sum = sum_of_block(sum, block);
        bytes = rest;
    }
    if let Some((block, rest)) = bytes.split_first_chunk::<16>() {
        sum = sum_of_block(sum, block);
        bytes = rest;
    }
    match bytes.first_chunk::<8>() {
        Some(word) => around(sum, number(*word)),
        None => sum,
    }
}

/// Copies a few whole words, and returns their sum.
#[inline]
fn copy_words(from: &[u8], to: &mut [u8]) -> u64 {
    let (blocks, rest) = from.as_chunks::<32>();
    let (copies, last) = to.as_chunks_mut::<32>();
    let mut sum = 0;
    for (block, copy) in blocks.iter().zip(copies) {
        *copy = *block;
        sum = sum_of_block(sum, block);
    }
    let half = rest.len() / 16 * 16;
    let ((block, rest), (copy, last)) = (rest.split_at(half), last.split_at_mut(half));
    if let (Some(block), Some(copy)) = (block.first_chunk::<16>(), copy.first_chunk_mut()) {
        *copy = *block;
        sum = sum_of_block(sum, block);
    }
    if let (Some(word), Some(copy)) = (rest.first_chunk::<8>(), last.first_chunk_mut()) {
        *copy = *word;
        sum = around(sum, number(*word));
    }
    sum
}

/// The sum of any bytes.
#[inline(never)]
fn sum_of_any(bytes: &[u8]) -> u64 {
    let (blocks, few) = bytes.as_chunks::<BLOCK>();
    let mut halves = Halves::default();
    for word in blocks.as_flattened().as_chunks::<8>().0 {
        halves.add(number(*word));
    }
    around(halves.sum(), sum_of_few(few))
}

/// Copies bytes, and returns their sum. Each byte is read once: a message of megabytes is not in
/// the fastest cache, so a second pass over each packet costs half as much as the first.
#[inline(never)]
fn copy_many(from: &[u8], to: &mut [u8]) -> u64 {
    // If the compiler knew this number, it would split the loop below in two, and make the first a
    // call of `memcpy`.
    let zero = black_box(0_u64);
    let (blocks, few) = from.as_chunks::<BLOCK>();
    let (copies, last) = to.as_chunks_mut::<BLOCK>();
    let words = blocks.as_flattened().as_chunks::<8>().0;
    let copies = copies.as_flattened_mut().as_chunks_mut::<8>().0;
    let mut halves = Halves::default();
    for (word, copy) in words.iter().zip(copies) {
        let word = number(*word) ^ zero;
        *copy = word.to_ne_bytes();
        halves.add(word);
    }
    last.copy_from_slice(few);
    around(halves.sum(), sum_of_few(few))
}

/// The sum of less than a block.
#[inline]
fn sum_of_few(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    words
        .iter()
        .fold(last_word(rest), |sum, word| around(sum, number(*word)))
}

/// Fewer than eight bytes as a word, with zeros after them. Most packets have none.
#[inline]
fn last_word(rest: &[u8]) -> u64 {
    if rest.is_empty() {
        return 0;
    }
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    number(last)
}

/// The sum of fewer than 2^32 words, as the sums of their lower and of their upper halves. These
/// sums have no carries, so one instruction adds several words. Adding the whole word is cheaper
/// than cutting out its lower half; the sum of the lower halves follows from it.
#[derive(Default)]
struct Halves {
    /// The sum of the words without the carries.
    whole: u64,
    upper: u64,
}

impl Halves {
    #[inline]
    fn add(&mut self, word: u64) {
        self.whole = self.whole.wrapping_add(word);
        self.upper += word >> 32;
    }

    #[inline]
    fn sum(&self) -> u64 {
        let lower = self.whole.wrapping_sub(self.upper << 32);
        around(lower, self.upper)
    }
}

#[cfg(test)]
mod tests;
