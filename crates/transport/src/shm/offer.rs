//! The bytes of offers and answers. Little-endian, of fixed length, and not part of the network
//! protocol: both ends run on one host, but perhaps not the same version.
//!
//! | bytes | field |
//! |---|---|
//! | 0–2 | "dun" |
//! | 3 | version of everything the two sides share: these bytes, memory layout, ring |
//! | 4 | kind |
//! | 5 | binary logarithm of the cells of a ring |
//! | 6–7 | bit of the receiver of this message in the sender's doorbell |
//! | 8–11 | the sender's data size |
//! | 12–27 | name of the channel |
//!
//! Called by `setup`, which checks that a decoded message is plausible; this file checks only its
//! form.

use super::channel::{ChannelId, Role};
use crate::connect::ConnectError;

/// Bytes of every message.
const LEN: usize = 28;

const MAGIC: [u8; 4] = *b"dun\x02";

/// The kind of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Kind {
    /// Offers a new channel. Descriptors: its memory, the offerer's doorbell, the acceptor's end
    /// of the wake-up line.
    New = 0,
    /// Offers to reuse a channel that the offerer made.
    ReuseByCreator = 1,
    /// Offers to reuse a channel that the acceptor made.
    ReuseByAcceptor = 2,
    /// Accepts a new channel. Descriptor: the acceptor's doorbell.
    Accepted = 3,
    /// Accepts the reuse of a channel.
    Reused = 4,
    /// Offers a new channel to an endpoint of the same process, which finds it in the table by its
    /// name.
    Here = 5,
    /// Accepts such a channel; the offerer finds the terms by the channel's name.
    Taken = 6,
}

/// An offer or an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Message {
    /// The kind.
    pub(super) kind: Kind,
    /// Cells of each ring, a power of two.
    pub(super) cells: u32,
    /// The bit that the receiver of this message sets in the sender's doorbell.
    pub(super) bit: u16,
    /// The most data bytes of a packet that the sender accepts.
    pub(super) data_size: u32,
    /// The channel.
    pub(super) id: ChannelId,
}

impl Kind {
    /// The kind of the offer by which the end `role` reuses an old channel.
    pub(super) const fn reuse_by(role: Role) -> Self {
        match role {
            Role::Creator => Self::ReuseByCreator,
            Role::Acceptor => Self::ReuseByAcceptor,
        }
    }

    const fn from_byte(byte: u8) -> Option<Self> {
        Some(match byte {
            0 => Self::New,
            1 => Self::ReuseByCreator,
            2 => Self::ReuseByAcceptor,
            3 => Self::Accepted,
            4 => Self::Reused,
            5 => Self::Here,
            6 => Self::Taken,
            _ => return None,
        })
    }
}

impl Message {
    /// The message as bytes.
    pub(super) fn encode(&self) -> Vec<u8> {
        let log = u8::try_from(self.cells.trailing_zeros()).expect("a power of two has few bits");
        let mut bytes = Vec::with_capacity(LEN);
        bytes.extend(MAGIC);
        bytes.extend([self.kind as u8, log]);
        bytes.extend(self.bit.to_le_bytes());
        bytes.extend(self.data_size.to_le_bytes());
        bytes.extend(self.id.0);
        bytes
    }

    /// Reads a message.
    pub(super) fn decode(bytes: &[u8]) -> Result<Self, ConnectError> {
        Self::read(bytes).ok_or(ConnectError::Malformed)
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; LEN] = bytes.try_into().ok()?;
        if bytes[..4] != MAGIC {
            return None;
        }
        Some(Self {
            kind: Kind::from_byte(bytes[4])?,
            cells: 1_u32.checked_shl(u32::from(bytes[5]))?,
            bit: u16::from_le_bytes([bytes[6], bytes[7]]),
            data_size: u32::from_le_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]),
            id: ChannelId(*bytes[12..].first_chunk()?),
        })
    }
}

#[cfg(test)]
mod tests;
