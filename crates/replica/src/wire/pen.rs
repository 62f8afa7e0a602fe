//! Numbers of variable length.
//!
//! Each byte has seven bits of the number, lowest first; all bytes but the last have the highest
//! bit set. The last byte is not zero unless it is the only one, so each number has exactly one
//! encoding. Called by `parcel` and `request`.

use super::cursor::Cursor;
use super::format::Malformed;

/// The highest bit of a byte, which says that more bytes follow.
const MORE: u8 = 0x80;

/// The length of a number in bytes.
pub(super) const fn size_of_number(number: u64) -> usize {
    (70 - (number | 1).leading_zeros() as usize) / 7
}

/// Appends a number.
#[inline]
pub(super) fn put_number(out: &mut Vec<u8>, number: u64) {
    each_byte(number, |byte| out.push(byte));
}

/// Calls `put` with each byte of a number, in order.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the bits of one byte")]
fn each_byte(number: u64, mut put: impl FnMut(u8)) {
    let mut rest = number;
    while rest >= u64::from(MORE) {
        put(rest as u8 | MORE);
        rest >>= 7;
    }
    put(rest as u8);
}

/// Bytes that are written from the front. They have exactly the length of all parts.
pub(super) struct Ink<'a>(pub(super) &'a mut [u8]);

impl Ink<'_> {
    #[inline]
    pub(super) fn put(&mut self, part: &[u8]) {
        let (front, rest) = std::mem::take(&mut self.0).split_at_mut(part.len());
        front.copy_from_slice(part);
        self.0 = rest;
    }

    #[inline]
    pub(super) fn put_number(&mut self, number: u64) {
        each_byte(number, |byte| self.put(&[byte]));
    }
}

impl Cursor<'_> {
    /// Reads a number of one to ten bytes.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "most have one byte, and an entry has five numbers"
    )]
    pub(super) fn number(&mut self) -> Result<u64, Malformed> {
        let (first, rest) = self.0.split_first().ok_or(Malformed)?;
        self.0 = rest;
        match *first {
            byte if byte < MORE => Ok(byte.into()),
            byte => self.rest_of_number(byte),
        }
    }

    /// Reads the rest of a number of several bytes. Few have more than three.
    #[inline(never)]
    fn rest_of_number(&mut self, first: u8) -> Result<u64, Malformed> {
        let bits = |byte: u8| u64::from(byte & !MORE);
        let (number, rest) = match *self.0 {
            [last @ 1..MORE, ref rest @ ..] => (bits(last) << 7, rest),
            [middle @ MORE..=u8::MAX, last @ 1..MORE, ref rest @ ..] => {
                (bits(middle) << 7 | bits(last) << 14, rest)
            }
            _ => return self.long_number(first),
        };
        self.0 = rest;
        Ok(number | bits(first))
    }

    #[cold]
    fn long_number(&mut self, first: u8) -> Result<u64, Malformed> {
        let mut number = u64::from(first & !MORE);
        for shift in (7..64).step_by(7) {
            let byte = self.u8()?;
            let bits = u64::from(byte & !MORE);
            let part = bits << shift;
            if part >> shift != bits {
                return Err(Malformed);
            }
            number |= part;
            match byte {
                0 => return Err(Malformed),
                byte if byte < MORE => return Ok(number),
                _ => {}
            }
        }
        Err(Malformed)
    }

    /// Reads the number of parts that follow. Each has at least `least` bytes.
    pub(super) fn number_of_parts(&mut self, least: usize) -> Result<usize, Malformed> {
        let count = usize::try_from(self.number()?).map_err(|_| Malformed)?;
        match count <= self.0.len() / least {
            true => Ok(count),
            false => Err(Malformed),
        }
    }
}

#[cfg(test)]
mod tests;
