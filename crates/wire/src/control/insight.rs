//! The request for a part of a process's counters file, and the part in the answer (rule C10).

use super::codec::{Reader, Writer};
use super::{ControlError, Field};

/// The most bytes of one part.
pub const MAX_INSIGHT: usize = 4000;

/// Asks for a part of the counters file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InsightRead {
    /// Where in the file the part begins.
    pub offset: u64,
    /// Length of the part, at most [`MAX_INSIGHT`].
    pub len: u16,
}

/// A part of the counters file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Insight<'a> {
    /// Where in the file the part begins.
    pub offset: u64,
    /// The bytes, fewer than requested at the end of the file; none if the process hides its file.
    pub bytes: &'a [u8],
}

impl InsightRead {
    pub(super) fn read(body: &mut Reader<'_>) -> Result<Self, ControlError> {
        let read = Self {
            offset: body.u64(Field::Insight)?,
            len: body.u16(Field::Insight)?,
        };
        read.check()?;
        Ok(read)
    }

    pub(super) fn write(&self, out: &mut Writer<'_>) -> Result<(), ControlError> {
        self.check()?;
        out.u64(self.offset)?;
        out.u16(self.len)
    }

    fn check(&self) -> Result<(), ControlError> {
        match usize::from(self.len) <= MAX_INSIGHT {
            true => Ok(()),
            false => Err(ControlError::Value(Field::Insight)),
        }
    }
}

impl<'a> Insight<'a> {
    pub(super) fn read(body: &mut Reader<'a>) -> Result<Self, ControlError> {
        let offset = body.u64(Field::Insight)?;
        let len = body.u16(Field::Insight)?;
        let bytes = body.bytes(usize::from(len), MAX_INSIGHT, Field::Insight)?;
        Ok(Self { offset, bytes })
    }

    pub(super) fn write(&self, out: &mut Writer<'_>) -> Result<(), ControlError> {
        let len = u16::try_from(self.bytes.len()).ok();
        let len = len.filter(|len| usize::from(*len) <= MAX_INSIGHT);
        out.u64(self.offset)?;
        out.u16(len.ok_or(ControlError::Value(Field::Insight))?)?;
        out.bytes(self.bytes)
    }
}
