//! Reading and writing the fields of a control message, little-endian, without gaps (rule C1).
//!
//! A [`Reader`] never reads past the end of its frame, and names the field at which a frame ends
//! too early. A [`Writer`] never writes past its buffer. Used only by the message types in this
//! folder.

use super::{ControlError, Field};

/// The rest of a frame.
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) const fn new(body: &'a [u8]) -> Self {
        Self { rest: body }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(super) fn array<const N: usize>(&mut self, field: Field) -> Result<[u8; N], ControlError> {
        let (first, rest) = self
            .rest
            .split_first_chunk::<N>()
            .ok_or(ControlError::Short(field))?;
        self.rest = rest;
        Ok(*first)
    }

    pub(super) fn u8(&mut self, field: Field) -> Result<u8, ControlError> {
        Ok(u8::from_le_bytes(self.array(field)?))
    }

    pub(super) fn u16(&mut self, field: Field) -> Result<u16, ControlError> {
        Ok(u16::from_le_bytes(self.array(field)?))
    }

    pub(super) fn u32(&mut self, field: Field) -> Result<u32, ControlError> {
        Ok(u32::from_le_bytes(self.array(field)?))
    }

    pub(super) fn u64(&mut self, field: Field) -> Result<u64, ControlError> {
        Ok(u64::from_le_bytes(self.array(field)?))
    }

    /// The next `len` bytes. An error if `len` exceeds `max`, or if the frame has fewer.
    pub(super) fn bytes(
        &mut self,
        len: usize,
        max: usize,
        field: Field,
    ) -> Result<&'a [u8], ControlError> {
        if len > max {
            return Err(ControlError::Value(field));
        }
        let (first, rest) = self
            .rest
            .split_at_checked(len)
            .ok_or(ControlError::Short(field))?;
        self.rest = rest;
        Ok(first)
    }

    /// A string with a length of one byte in front, at most `max` bytes of UTF-8.
    pub(super) fn str(&mut self, max: u8, field: Field) -> Result<&'a str, ControlError> {
        let len = self.u8(field)?;
        let bytes = self.bytes(usize::from(len), usize::from(max), field)?;
        core::str::from_utf8(bytes).map_err(|_| ControlError::Value(field))
    }
}

/// A buffer that is written from its start.
pub(super) struct Writer<'a> {
    out: &'a mut [u8],
    at: usize,
}

impl<'a> Writer<'a> {
    pub(super) const fn new(out: &'a mut [u8]) -> Self {
        Self { out, at: 0 }
    }

    pub(super) const fn written(&self) -> usize {
        self.at
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) -> Result<(), ControlError> {
        let end = self.at + bytes.len();
        self.out
            .get_mut(self.at..end)
            .ok_or(ControlError::Space)?
            .copy_from_slice(bytes);
        self.at = end;
        Ok(())
    }

    pub(super) fn u8(&mut self, value: u8) -> Result<(), ControlError> {
        self.bytes(&value.to_le_bytes())
    }

    pub(super) fn u16(&mut self, value: u16) -> Result<(), ControlError> {
        self.bytes(&value.to_le_bytes())
    }

    pub(super) fn u32(&mut self, value: u32) -> Result<(), ControlError> {
        self.bytes(&value.to_le_bytes())
    }

    pub(super) fn u64(&mut self, value: u64) -> Result<(), ControlError> {
        self.bytes(&value.to_le_bytes())
    }

    /// A string with a length of one byte in front, at most `max` bytes.
    pub(super) fn str(&mut self, text: &str, max: u8, field: Field) -> Result<(), ControlError> {
        match u8::try_from(text.len()) {
            Ok(len) if len <= max => {
                self.u8(len)?;
                self.bytes(text.as_bytes())
            }
            _ => Err(ControlError::Value(field)),
        }
    }
}
