//! Short numbers, and bytes written into a message whose length is known.
//!
//! A number has seven of its bits in each byte, the lowest first; all bytes but the last have the
//! highest bit set. The last one is not zero unless it is the only one, so a number has one form.
//! Called by `parcel`.

use super::cursor::Cursor;
use super::format::Malformed;

/// The highest bit of a byte: more bytes follow.
const MORE: u8 = 0x80;

/// Bytes of a number.
pub(super) const fn size_of_number(number: u64) -> usize {
    (70 - (number | 1).leading_zeros() as usize) / 7
}

/// Writes a message from its front. Invariant: its writer has counted the bytes before.
pub(super) struct Pen<'a>(pub(super) &'a mut [u8]);

impl Pen<'_> {
    #[inline]
    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        let all = std::mem::take(&mut self.0);
        let (place, rest) = all.split_at_mut(bytes.len());
        place.copy_from_slice(bytes);
        self.0 = rest;
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the bits of one byte")]
    pub(super) fn number(&mut self, number: u64) {
        let all = std::mem::take(&mut self.0);
        let (mut rest, mut at) = (number, 0);
        while rest >= u64::from(MORE) {
            all[at] = rest as u8 | MORE;
            (rest, at) = (rest >> 7, at + 1);
        }
        all[at] = rest as u8;
        self.0 = &mut all[at + 1..];
    }
}

impl Cursor<'_> {
    /// A number of one to ten bytes.
    #[inline]
    pub(super) fn number(&mut self) -> Result<u64, Malformed> {
        match self.u8()? {
            byte if byte < MORE => Ok(byte.into()),
            byte => self.rest_of_number(byte),
        }
    }

    fn rest_of_number(&mut self, first: u8) -> Result<u64, Malformed> {
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

    /// A number of parts that follow. Each has `least` bytes at least.
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
