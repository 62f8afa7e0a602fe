//! How an endpoint uses shared memory, and the sizes that follow from it.
//!
//! Invariant: options that [`Options::check`] has accepted are within every limit of this module.
//! Read by `endpoint`, which opens an endpoint with them, and by `channels` and `setup`, which
//! compare them with a peer's.

use std::fmt;
use std::io;
use std::ops::RangeInclusive;

use dunlin_core::transport::MAX_INLINE;

use super::doorbell::MAX_BITS;
use super::ring::longest_packet;

/// The options of shared memory at an endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// The most data bytes in one packet. Two endpoints use the smaller of their values.
    pub data_size: u32,
    /// Cells of 64 bytes in each ring of the channels that this endpoint makes: a power of two
    /// from 64 to 65 536. A channel takes 128 bytes a cell.
    pub cells: u32,
    /// The most peers, from 1 to 4096.
    pub max_peers: u32,
    /// Whether to trust peers in other processes as if they were threads of this one. Packets
    /// longer than a cell are then validated in place, without a copy. A peer that changes a packet
    /// during validation can then do harm, and so can any process of this user that opens the
    /// channel's memory through `/proc`. Channels within this process need no trust: their memory
    /// has no descriptor, and the control plane carries only their name.
    pub trust_peer: bool,
    /// Data of at least this many bytes, or data that would take more than half of a ring, is not
    /// written into the ring: the packet names the place of the data, and the receiver, which has
    /// mapped the sender's regions, copies it from there.
    pub by_reference: u32,
    /// Bytes of one peer's memory that this endpoint maps to copy data from. Data beyond this limit
    /// comes through the ring, which is slower.
    pub map_limit: u64,
    /// The same limit for all peers of all endpoints of this process together.
    pub map_limit_process: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            data_size: 32 << 10,
            cells: 4096,
            max_peers: 1024,
            trust_peer: false,
            by_reference: 2048,
            map_limit: 64 << 30,
            map_limit_process: 1 << 40,
        }
    }
}

/// Why an endpoint could not be opened.
#[derive(Debug)]
pub enum OpenError {
    /// `cells` is not a power of two from 64 to 65 536.
    Cells(u32),
    /// `data_size` is not from 1 to 1 MiB.
    DataSize(u32),
    /// `max_peers` is 0 or more than 4096.
    MaxPeers(u32),
    /// The kernel refused.
    Os(io::Error),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cells(value) => write!(
                f,
                "the cells of a ring must be a power of two from 64 to 65536, not {value}"
            ),
            Self::DataSize(value) => {
                write!(f, "a packet has from 1 to 1048576 data bytes, not {value}")
            }
            Self::MaxPeers(value) => write!(f, "an endpoint has from 1 to 4096 peers, not {value}"),
            Self::Os(error) => write!(f, "the operating system refused: {error}"),
        }
    }
}

impl std::error::Error for OpenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Os(error) => Some(error),
            _ => None,
        }
    }
}

impl From<io::Error> for OpenError {
    fn from(error: io::Error) -> Self {
        Self::Os(error)
    }
}

/// Cells that a ring may have.
pub(super) const CELLS: RangeInclusive<u32> = 64..=65_536;

/// Data bytes that a packet may have.
const DATA_SIZES: RangeInclusive<u32> = 1..=1 << 20;

/// The most bytes of a packet in addition to its data.
#[expect(clippy::cast_possible_truncation, reason = "a small constant")]
pub(super) const INLINE: u32 = MAX_INLINE as u32;

impl Options {
    /// Finds the first option that is out of its limits.
    pub(super) fn check(&self) -> Result<(), OpenError> {
        if !CELLS.contains(&self.cells) || !self.cells.is_power_of_two() {
            return Err(OpenError::Cells(self.cells));
        }
        if !DATA_SIZES.contains(&self.data_size) {
            return Err(OpenError::DataSize(self.data_size));
        }
        if !(1..=MAX_BITS).contains(&self.max_peers) {
            return Err(OpenError::MaxPeers(self.max_peers));
        }
        Ok(())
    }
}

/// The longest packet that lies entirely in a ring, in a channel whose packets have up to `longest`
/// bytes.
pub(super) const fn in_ring(longest: u32, cells: u32) -> u32 {
    let most = longest_packet(cells);
    if longest < most { longest } else { most }
}
