//! The packets that the endpoint gives in one call.

use dunlin_core::transport::{Lane, LanePacket, MAX_INLINE, PeerId, TxItem};
use dunlin_msgbuf::BufRef;

/// The packets of one call: some of a lane, then items.
#[derive(Clone, Copy, Debug)]
pub(super) struct Burst<'a> {
    pub(super) lane: Option<&'a Lane>,
    pub(super) staged: &'a [LanePacket],
    pub(super) items: &'a [TxItem],
}

/// A packet to send.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packet<'a> {
    /// `None`: the item claims more inline bytes than there can be.
    pub(super) inline: Option<&'a [u8]>,
    pub(super) data: BufRef,
}

impl<'a> Burst<'a> {
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.staged.len() + self.items.len()
    }

    #[inline]
    pub(super) fn peer(&self, index: usize) -> PeerId {
        match self.staged.get(index) {
            Some(packet) => packet.peer(),
            None => self.items[index - self.staged.len()].peer,
        }
    }

    /// The line of a packet of up to `most` bytes that is staged, and its bytes there.
    #[inline]
    pub(super) fn line(&self, index: usize, most: usize) -> Option<(&'a [u8; MAX_INLINE], usize)> {
        let (packet, lane) = (self.staged.get(index)?, self.lane?);
        let fits = (1..=most.min(MAX_INLINE)).contains(&packet.size());
        fits.then(|| (lane.line(*packet), packet.size()))
    }

    #[inline]
    pub(super) fn packet(&self, index: usize) -> Packet<'a> {
        match (self.staged.get(index), self.lane) {
            (Some(packet), Some(lane)) => Packet {
                inline: Some(lane.bytes(*packet)),
                data: BufRef::EMPTY,
            },
            _ => {
                let item = &self.items[index - self.staged.len()];
                Packet {
                    inline: item.inline.get(..item.inline_len as usize),
                    data: item.data,
                }
            }
        }
    }
}
