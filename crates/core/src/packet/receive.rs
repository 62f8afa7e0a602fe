//! Packets of open sessions, and the extensions of their headers (rules W7, W10, W12).

use crate::handle::SessionIdx;
use dunlin_msgbuf::PeerBytes;
use dunlin_wire::{ACK_VECTOR_LEN, AckVector, Bitmap, Flags, HEADER_LEN, Header};

/// A packet that belongs to an open session.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet<'a> {
    pub(crate) session: SessionIdx,
    pub(crate) header: Header,
    pub(crate) data: &'a [u8],
    /// Bytes that the packet takes in the frame.
    pub(crate) len: usize,
}

/// Where a packet's data lies.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Data<'a> {
    /// In the frame.
    Here(&'a [u8]),
    /// In the sender's memory, on the same host.
    There(PeerBytes<'a>),
}

impl Data<'_> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Here(bytes) => bytes.len(),
            Self::There(bytes) => bytes.len(),
        }
    }

    /// Copies the data to `place`, which has the same length. False if the sender has withdrawn the
    /// data.
    #[must_use]
    pub(crate) fn copy_to(&self, place: &mut [u8]) -> bool {
        match self {
            Self::Here(bytes) => {
                place.copy_from_slice(bytes);
                true
            }
            Self::There(bytes) => bytes.copy_to(place),
        }
    }
}

impl Packet<'_> {
    /// The acknowledgement vector, if the packet has one. `bytes` is the frame from this packet on.
    #[inline]
    pub(crate) fn acks(&self, bytes: &[u8]) -> Option<AckVector> {
        if !self.header.flags.has(Flags::ACK_VECTOR) {
            return None;
        }
        let end = HEADER_LEN + self.header.extension_len();
        AckVector::decode(bytes.get(end - ACK_VECTOR_LEN..end)?)
    }
}

/// The bitmap after the header of a CR.
pub(crate) fn bitmap_of(header: &Header, bytes: &[u8]) -> Bitmap {
    let words = bytes.get(HEADER_LEN..).unwrap_or(&[]);
    Bitmap::decode(words, header.bitmap_extent()).unwrap_or(Bitmap::EMPTY)
}
