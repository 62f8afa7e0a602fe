//! Opening a sequence: from its name to the number by which requests name it.

use super::cursor::Cursor;
use super::format::{Malformed, VERSION};
use super::name::MAX_NAME;
use super::status::Status;

/// A request that opens a sequence.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Open<'a> {
    /// The highest epoch that the client has seen; 0 if none. A server of an older epoch has been
    /// deposed, and stops.
    pub known_epoch: u32,
    /// Whether the server creates the sequence if it does not exist.
    pub create: bool,
    /// The bytes of the name, which the server checks; at most 255.
    pub name: &'a [u8],
}

/// The answer to an [`Open`] that was not refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Opened {
    /// The number by which requests of this epoch name the sequence.
    pub sequence: u16,
    /// The server's epoch.
    pub epoch: u32,
    /// The next number, if no other client takes it first.
    pub next: u64,
}

impl<'a> Open<'a> {
    /// The most bytes of a request with a valid name.
    pub const MAX_SIZE: usize = 8 + MAX_NAME;

    /// Reads a request.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn decode(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut cursor = Cursor(bytes);
        let [version, create, len, zero] = cursor.take()?;
        let known_epoch = cursor.u32()?;
        let name = cursor.bytes(len.into())?;
        cursor.end()?;
        if version != VERSION || create > 1 || zero != 0 {
            return Err(Malformed);
        }
        Ok(Self {
            known_epoch,
            create: create == 1,
            name,
        })
    }

    /// Encodes the request. A name of more than 255 bytes is truncated.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let len = u8::try_from(self.name.len()).unwrap_or(u8::MAX);
        let mut out = vec![VERSION, u8::from(self.create), len, 0];
        out.extend_from_slice(&self.known_epoch.to_le_bytes());
        out.extend_from_slice(&self.name[..len.into()]);
        out
    }
}

impl Opened {
    /// Bytes of the answer.
    pub const SIZE: usize = 16;

    /// Encodes the answer.
    #[must_use]
    pub fn encode(&self) -> [u8; Self::SIZE] {
        let mut out = [0; Self::SIZE];
        out[2..4].copy_from_slice(&self.sequence.to_le_bytes());
        out[4..8].copy_from_slice(&self.epoch.to_le_bytes());
        out[8..].copy_from_slice(&self.next.to_le_bytes());
        out
    }

    /// Reads an answer.
    ///
    /// # Errors
    /// [`Malformed`], or the refusal inside.
    pub fn decode(bytes: &[u8]) -> Result<Result<Self, Status>, Malformed> {
        if let [number] = bytes {
            return Status::from_number(*number).map(Err);
        }
        let mut cursor = Cursor(bytes);
        let [status, zero] = cursor.take()?;
        let opened = Self {
            sequence: cursor.u16()?,
            epoch: cursor.u32()?,
            next: cursor.u64()?,
        };
        cursor.end()?;
        match (status, zero) {
            (0, 0) => Ok(Ok(opened)),
            _ => Err(Malformed),
        }
    }
}
