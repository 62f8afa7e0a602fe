//! Fixed fields, which are read and written in order.

use super::format::Malformed;

/// Bytes that are read from the front.
#[derive(Clone, Copy)]
pub(super) struct Cursor<'a>(pub(super) &'a [u8]);

impl<'a> Cursor<'a> {
    #[inline]
    pub(super) fn take<const LEN: usize>(&mut self) -> Result<[u8; LEN], Malformed> {
        let (head, rest) = self.0.split_first_chunk().ok_or(Malformed)?;
        self.0 = rest;
        Ok(*head)
    }

    #[inline]
    pub(super) fn u8(&mut self) -> Result<u8, Malformed> {
        self.take::<1>().map(|[byte]| byte)
    }

    #[inline]
    pub(super) fn u16(&mut self) -> Result<u16, Malformed> {
        self.take().map(u16::from_le_bytes)
    }

    #[inline]
    pub(super) fn u32(&mut self) -> Result<u32, Malformed> {
        self.take().map(u32::from_le_bytes)
    }

    #[inline]
    pub(super) fn u64(&mut self) -> Result<u64, Malformed> {
        self.take().map(u64::from_le_bytes)
    }

    /// Reads consecutive numbers, with one check of the length.
    #[inline]
    pub(super) fn words(&mut self) -> Result<[u64; 3], Malformed> {
        let bytes = self.take::<24>()?;
        let (words, _) = bytes.as_chunks();
        Ok([0, 1, 2].map(|at: usize| u64::from_le_bytes(words[at])))
    }

    #[inline]
    pub(super) fn bytes(&mut self, len: usize) -> Result<&'a [u8], Malformed> {
        let (head, rest) = self.0.split_at_checked(len).ok_or(Malformed)?;
        self.0 = rest;
        Ok(head)
    }

    /// Skips bytes that must be zero, so that a later version can use them.
    #[inline]
    pub(super) fn zeros<const LEN: usize>(&mut self) -> Result<(), Malformed> {
        (self.take::<LEN>()? == [0; LEN])
            .then_some(())
            .ok_or(Malformed)
    }

    #[inline]
    pub(super) fn end(self) -> Result<(), Malformed> {
        self.0.is_empty().then_some(()).ok_or(Malformed)
    }
}

/// The lower and the upper half of a word.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the lower half")]
pub(super) const fn halves(word: u64) -> [u32; 2] {
    [word as u32, (word >> 32) as u32]
}

/// A buffer that is written from the front. It must be long enough.
pub(super) struct Pen<'a> {
    out: &'a mut [u8],
    at: usize,
}

impl<'a> Pen<'a> {
    #[inline]
    pub(super) fn new(out: &'a mut [u8]) -> Self {
        Self { out, at: 0 }
    }

    #[inline]
    pub(super) fn put(&mut self, bytes: &[u8]) {
        self.out[self.at..self.at + bytes.len()].copy_from_slice(bytes);
        self.at += bytes.len();
    }
}
