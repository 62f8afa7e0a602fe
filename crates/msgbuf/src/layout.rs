//! The layout of a block: sizes and offsets, nothing else (design §8, eRPC §4.2.1).
//!
//! ```text
//! 0         64        88                                   block - 96 i
//! | headroom | header 0 | data, contiguous ...    | ... | headroom | header i | 8 bytes |
//! ```
//!
//! A block starts on a cache line, so header 0 and the first 40 bytes of data share the second line
//! of the block. The headers of packets 1, 2, … lie after the data; their offsets count from the
//! end of the block, so that their place does not depend on the length of the message. Their stride
//! is a multiple of 32, which keeps each 24-byte header inside one cache line.
//!
//! Invariant: for every length that [`Layout::capacity`] allows, the data and the header slots of
//! all its packets lie inside the block and do not overlap. Called by `pool` and `buf`.

use dunlin_wire::HEADER_LEN;

/// Bytes before every header slot, for the Ethernet, IP and UDP headers of a transport.
pub const HEADROOM: usize = 64;

/// Longest message, in bytes: 1 GiB (design §8).
pub const MAX_MESSAGE: usize = 1 << 30;

/// Smallest data size per packet, in bytes. With smaller packets, the header slots of the longest
/// message would exceed the 32-bit offsets of a region.
pub const MIN_DATA_SIZE: u32 = 64;

/// Distance from the start of a block to its data.
pub(crate) const DATA_OFFSET: usize = HEADROOM + HEADER_LEN;
/// Distance from one header slot after the data to the next, headroom included.
pub(crate) const SLOT_STRIDE: usize = 96;
/// Smallest block, and the unit in which blocks of a region are counted.
pub(crate) const MIN_BLOCK: usize = 1 << MIN_BLOCK_SHIFT;
pub(crate) const MIN_BLOCK_SHIFT: u32 = 7;
/// Largest block that shares a region with others; a message that needs more has its own region.
pub(crate) const MAX_BLOCK: usize = MIN_BLOCK << (SMALL_CLASSES - 1);
/// Largest region that blocks are carved from, in bytes.
pub(crate) const MAX_REGION: usize = 64 << 20;
/// Size classes of carved blocks: 128 bytes to 64 KiB.
pub(crate) const SMALL_CLASSES: usize = 10;
/// Size classes of blocks with a region of their own: 64 KiB to 1 GiB of data, powers of two.
pub(crate) const LARGE_CLASSES: usize = 15;
pub(crate) const CLASSES: usize = SMALL_CLASSES + LARGE_CLASSES;
/// Class of user memory; it has no header slots and belongs to no pool.
pub(crate) const USER_CLASS: u16 = u16::MAX;
/// Base-2 logarithm of the data bytes of the first large class.
const LARGE_SHIFT: u32 = MAX_BLOCK.trailing_zeros();

const _: () = {
    assert!(MAX_BLOCK == 1 << 16);
    assert!(DATA_OFFSET <= SLOT_STRIDE && SLOT_STRIDE.is_multiple_of(32));
    assert!(
        HEADROOM.is_multiple_of(64),
        "header 0 and the data after it share a cache line"
    );
    assert!(MAX_MESSAGE == 1 << (LARGE_SHIFT as usize + LARGE_CLASSES - 1));
    // The longest message with the smallest packets still fits the 32-bit offsets of a region.
    let slots = MAX_MESSAGE / MIN_DATA_SIZE as usize;
    assert!(DATA_OFFSET + MAX_MESSAGE + slots * SLOT_STRIDE < u32::MAX as usize);
};

/// The layout of messages for a given number of data bytes per packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Layout {
    data_size: usize,
}

impl Layout {
    /// The layout for packets of `data_size` bytes, which is at least [`MIN_DATA_SIZE`].
    pub(crate) const fn new(data_size: u32) -> Self {
        assert!(data_size >= MIN_DATA_SIZE);
        Self {
            data_size: data_size as usize,
        }
    }

    /// Packets of a message of `len` bytes; an empty message is one packet.
    pub(crate) const fn packets(self, len: usize) -> usize {
        if len <= self.data_size {
            1
        } else {
            len.div_ceil(self.data_size)
        }
    }

    /// Bytes of a block that a message of `len` bytes needs.
    pub(crate) const fn footprint(self, len: usize) -> usize {
        DATA_OFFSET + len + (self.packets(len) - 1) * SLOT_STRIDE
    }

    /// Longest message that fits a block of `block` bytes: the inverse of [`Self::footprint`].
    pub(crate) const fn capacity(self, block: usize) -> usize {
        let room = block - DATA_OFFSET;
        let packets = (room + SLOT_STRIDE).div_ceil(self.data_size + SLOT_STRIDE);
        let rest = room.saturating_sub((packets - 1) * SLOT_STRIDE);
        // The last packet's header slot may leave no room for its data. Then the message ends with
        // the packet before it.
        let full = (packets - 1) * self.data_size;
        if rest > full { rest } else { full }
    }

    /// Longest message of one packet that fits into a carved block.
    pub(crate) const fn single_limit(self) -> usize {
        let most = MAX_BLOCK - DATA_OFFSET;
        if self.data_size < most {
            self.data_size
        } else {
            most
        }
    }

    /// Class of a block for a message of `len` bytes; `None` beyond [`MAX_MESSAGE`].
    pub(crate) const fn class(self, len: usize) -> Option<usize> {
        if len > MAX_MESSAGE {
            return None;
        }
        let footprint = self.footprint(len);
        if footprint <= MAX_BLOCK {
            return Some(small_class(footprint));
        }
        let shift = len.next_power_of_two().trailing_zeros();
        let above = shift.saturating_sub(LARGE_SHIFT);
        Some(SMALL_CLASSES + above as usize)
    }

    /// Bytes of a block of `class`.
    pub(crate) const fn block_size(self, class: usize) -> usize {
        if class < SMALL_CLASSES {
            return MIN_BLOCK << class;
        }
        let data = 1 << (LARGE_SHIFT as usize + class - SMALL_CLASSES);
        self.footprint(data).next_multiple_of(MAX_BLOCK)
    }
}

/// Smallest class whose blocks have at least `footprint` bytes. `footprint` is at most
/// [`MAX_BLOCK`].
#[inline]
pub(crate) const fn small_class(footprint: usize) -> usize {
    // All sizes up to 128 bytes have class 0, so the low bits do not matter.
    let top = (footprint - 1) | (MIN_BLOCK - 1);
    (usize::BITS - top.leading_zeros() - MIN_BLOCK_SHIFT) as usize
}

/// Distance from the start of a block of `block` bytes to header slot `packet`.
pub(crate) const fn header_offset(block: usize, packet: usize) -> usize {
    if packet == 0 {
        HEADROOM
    } else {
        block - packet * SLOT_STRIDE + HEADROOM
    }
}

#[cfg(test)]
mod tests;
