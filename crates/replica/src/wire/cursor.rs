//! Fixed fields, which are read and written in order.

use super::format::{Malformed, VERSION};

/// Bytes that are read from the front.
#[derive(Clone, Copy)]
pub(crate) struct Cursor<'a>(pub(crate) &'a [u8]);

impl<'a> Cursor<'a> {
    /// Makes a cursor for the fields of a message, after checking its version.
    pub(crate) fn of_message(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut cursor = Self(bytes);
        match cursor.u8()? {
            VERSION => Ok(cursor),
            _ => Err(Malformed),
        }
    }

    fn array<const LEN: usize>(&mut self) -> Result<[u8; LEN], Malformed> {
        let (head, rest) = self.0.split_first_chunk().ok_or(Malformed)?;
        self.0 = rest;
        Ok(*head)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Malformed> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Malformed> {
        self.array().map(u64::from_le_bytes)
    }

    pub(crate) fn bytes(&mut self, len: usize) -> Result<&'a [u8], Malformed> {
        let (head, rest) = self.0.split_at_checked(len).ok_or(Malformed)?;
        self.0 = rest;
        Ok(head)
    }

    /// Reads bytes, after their length as four bytes.
    pub(crate) fn counted(&mut self) -> Result<&'a [u8], Malformed> {
        let len = self.u32()?;
        self.bytes(usize::try_from(len).map_err(|_| Malformed)?)
    }

    /// Reads the number of parts that follow. Each has at least `least` bytes, so a peer cannot
    /// make the reader reserve more memory than a few times the bytes that the peer has sent.
    pub(crate) fn count(&mut self, least: usize) -> Result<usize, Malformed> {
        let count = usize::try_from(self.u32()?).map_err(|_| Malformed)?;
        match count <= self.0.len() / least {
            true => Ok(count),
            false => Err(Malformed),
        }
    }

    /// Reads a byte that must be 0 or 1.
    pub(crate) fn flag(&mut self) -> Result<bool, Malformed> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Malformed),
        }
    }

    /// Skips bytes that must be zero, so that a later version can use them.
    pub(crate) fn zeros<const LEN: usize>(&mut self) -> Result<(), Malformed> {
        match self.array::<LEN>()? == [0; LEN] {
            true => Ok(()),
            false => Err(Malformed),
        }
    }

    pub(crate) fn end(self) -> Result<(), Malformed> {
        match self.0.is_empty() {
            true => Ok(()),
            false => Err(Malformed),
        }
    }
}

/// Appends bytes, after their length.
///
/// # Panics
/// If there are 4 GiB or more: every caller has a limit below that.
pub(crate) fn put_counted(out: &mut Vec<u8>, bytes: &[u8]) {
    put_count(out, bytes.len());
    out.extend_from_slice(bytes);
}

/// Appends the number of parts that follow.
///
/// # Panics
/// If the number needs more than 32 bits: every caller has a limit below that.
pub(crate) fn put_count(out: &mut Vec<u8>, count: usize) {
    let count = u32::try_from(count).expect("messages and their parts have limits below 4 GiB");
    out.extend_from_slice(&count.to_le_bytes());
}

/// Appends numbers of eight bytes.
pub(crate) fn put_words(out: &mut Vec<u8>, words: &[u64]) {
    for word in words {
        out.extend_from_slice(&word.to_le_bytes());
    }
}
