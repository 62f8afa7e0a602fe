//! Extensions, between a packet's header and its data: the bitmap of a CR or RFR (rule W7), or an
//! acknowledgement vector (rule W10). Nothing but the header determines which of them follows, and
//! its length; the endpoint reads or writes it.

use crate::ReqNum;

#[cfg(test)]
mod tests;

/// The most words of a bitmap.
pub const MAX_BITMAP_WORDS: u32 = 4;

/// Packets that a bitmap of full length covers.
pub const MAX_BITMAP_BITS: u32 = MAX_BITMAP_WORDS * u64::BITS;

/// A sender never has packets in flight further than this from the cumulative number (rule W7): two
/// bitmaps cover all of them.
pub const MAX_AHEAD: u32 = 2 * MAX_BITMAP_BITS;

/// The most bytes between header and data: four bitmap words.
pub const MAX_EXTENSION: usize = 32;

/// Bytes that a challenge carries (rule C13).
pub const CHALLENGE_LEN: usize = 8;

/// Bytes of an acknowledgement vector.
pub const ACK_VECTOR_LEN: usize = 16;

const _: () = assert!(MAX_BITMAP_BITS as usize == MAX_EXTENSION * 8);
const _: () = assert!(ACK_VECTOR_LEN <= MAX_EXTENSION && CHALLENGE_LEN <= MAX_EXTENSION);

/// Up to four requests whose responses have arrived, in front of the data (rule W10).
///
/// With it, the server can free the response buffers of slots that the client does not use now. A
/// client that has fewer than four requests to name repeats one of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AckVector(pub [ReqNum; 4]);

/// Which packets have arrived after the cumulative number of a CR or RFR (rule W7).
///
/// Bit `i` of word `w` stands for packet `cumulative + 64 w + i`. A bitmap holds four consecutive
/// words. Only the words up to the last one that is not zero need to be sent.
///
/// ```
/// use dunlin_wire::Bitmap;
///
/// let mut arrived = Bitmap::EMPTY;
/// assert!(arrived.insert(70));
/// assert!(!arrived.insert(256), "256 lies outside of the four words");
/// assert_eq!(arrived.words(), 2);
///
/// let bytes = arrived.encode();
/// assert_eq!(Bitmap::decode(&bytes, arrived.extent()), Some(arrived));
///
/// let mut further = Bitmap::beginning_with(4);
/// assert!(further.insert(256) && !further.insert(255));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Bitmap {
    /// Number of the first word.
    first: u32,
    words: [u64; MAX_BITMAP_WORDS as usize],
}

/// Bits of an extent that hold the number of words; the first word's number is in the bits above.
pub(crate) const EXTENT_WORDS_BITS: u32 = 4;

/// True if the extent has at most four words, and all of them lie within the distance that a sender
/// may be ahead. An extent without words has no first word either.
pub(crate) const fn has_place(extent: u32) -> bool {
    let first = extent >> EXTENT_WORDS_BITS;
    let words = extent & ((1 << EXTENT_WORDS_BITS) - 1);
    words <= MAX_BITMAP_WORDS
        && (first + words) * u64::BITS <= MAX_AHEAD
        && (words != 0 || first == 0)
}

impl AckVector {
    /// The vector as bytes.
    #[inline]
    pub fn encode(&self) -> [u8; ACK_VECTOR_LEN] {
        let mut out = [0; ACK_VECTOR_LEN];
        for (place, ack) in out.as_chunks_mut::<4>().0.iter_mut().zip(self.0) {
            *place = ack.0.to_le_bytes();
        }
        out
    }

    /// Reads the vector at the start of `bytes`; `None` if there are too few bytes.
    #[inline]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let raw = bytes.first_chunk::<ACK_VECTOR_LEN>()?;
        let mut acks = [ReqNum(0); 4];
        for (ack, place) in acks.iter_mut().zip(raw.as_chunks::<4>().0) {
            *ack = ReqNum(u32::from_le_bytes(*place));
        }
        Some(Self(acks))
    }
}

impl Bitmap {
    /// No packet after the cumulative number has arrived.
    pub const EMPTY: Self = Self::beginning_with(0);

    /// An empty bitmap for packets from `cumulative + 64 word` on.
    pub const fn beginning_with(word: u32) -> Self {
        Self {
            first: word,
            words: [0; MAX_BITMAP_WORDS as usize],
        }
    }

    /// A bitmap of these words; `first` is the number of the first. Words that do not fit are left
    /// out; if all words are zero, the bitmap is [`Self::EMPTY`].
    pub fn of_words(first: usize, words: &[u64]) -> Self {
        let mut bitmap = Self::beginning_with(u32::try_from(first).unwrap_or(u32::MAX));
        for (place, word) in bitmap.words.iter_mut().zip(words) {
            *place = *word;
        }
        match bitmap.words() {
            0 => Self::EMPTY,
            _ => bitmap,
        }
    }

    /// Notes that packet `cumulative + offset` has arrived.
    ///
    /// Does nothing and returns false if the bitmap does not cover that packet.
    #[inline]
    pub fn insert(&mut self, offset: u32) -> bool {
        let Some(index) = (offset / u64::BITS).checked_sub(self.first) else {
            return false;
        };
        let Some(word) = self.words.get_mut(index as usize) else {
            return false;
        };
        *word |= 1 << (offset % u64::BITS);
        true
    }

    /// True if packet `cumulative + offset` has arrived.
    #[inline]
    pub fn contains(&self, offset: u32) -> bool {
        let index = (offset / u64::BITS).checked_sub(self.first);
        let word = index.and_then(|index| self.words.get(index as usize));
        word.is_some_and(|word| word >> (offset % u64::BITS) & 1 == 1)
    }

    /// Offsets of the packets that have arrived, in order. A step takes one packet: most bitmaps
    /// have few packets or none, and senders read one for every few packets of a large message.
    #[inline]
    pub fn offsets(&self) -> impl Iterator<Item = u32> + use<> {
        (self.first..).zip(self.words).flat_map(|(number, word)| {
            let next = |left: &u64| Some(left & left.wrapping_sub(1));
            core::iter::successors(Some(word), next)
                .take_while(|left| *left != 0)
                .map(move |left| number * u64::BITS + left.trailing_zeros())
        })
    }

    /// Offset of the last packet that has arrived; `None` if the bitmap is empty.
    #[inline]
    pub fn last(&self) -> Option<u32> {
        let words = (self.first..).zip(self.words);
        let (number, word) = words.filter(|(_, word)| *word != 0).last()?;
        Some(number * u64::BITS + word.ilog2())
    }

    /// Number of words to send: from 0 to [`MAX_BITMAP_WORDS`].
    #[inline]
    pub fn words(&self) -> u32 {
        let zeros = self.words.iter().rev().take_while(|word| **word == 0);
        zeros.fold(MAX_BITMAP_WORDS, |words, _| words - 1)
    }

    /// The number of words to send and the number of the first one, encoded as in the header.
    #[inline]
    pub fn extent(&self) -> u32 {
        match self.words() {
            0 => 0,
            words => self.first << EXTENT_WORDS_BITS | words,
        }
    }

    /// All words as bytes; send the first [`Self::words`] of them.
    #[inline]
    pub fn encode(&self) -> [u8; MAX_EXTENSION] {
        let mut out = [0; MAX_EXTENSION];
        for (place, word) in out.as_chunks_mut::<8>().0.iter_mut().zip(self.words) {
            *place = word.to_le_bytes();
        }
        out
    }

    /// Reads the words at the start of `bytes`; `None` if there are too few bytes, or if no bitmap
    /// has this extent.
    #[inline]
    pub fn decode(bytes: &[u8], extent: u32) -> Option<Self> {
        if !has_place(extent) {
            return None;
        }
        let mut bitmap = Self::beginning_with(extent >> EXTENT_WORDS_BITS);
        let words = extent & ((1 << EXTENT_WORDS_BITS) - 1);
        let places = bitmap.words.get_mut(..words as usize)?;
        let raw = bytes.as_chunks::<8>().0.get(..words as usize)?;
        for (word, place) in places.iter_mut().zip(raw) {
            *word = u64::from_le_bytes(*place);
        }
        Some(bitmap)
    }
}
