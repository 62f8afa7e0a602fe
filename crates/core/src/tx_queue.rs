//! Packets on their way to the transport within one iteration of the event loop (rule S8).
//!
//! Slots push here and never see the transport. What can only be known at transmission time (when
//! it was sent, how long the request stayed in the server) is written by [`TxQueue::stamp`] just
//! before the burst.

use dunlin_msgbuf::BufRef;
use dunlin_wire::{ACK_VECTOR_LEN, AckVector, HEADER_LEN, Header, Residence};

use crate::call::CallIdx;
use crate::time::Nanos;
use crate::transport::{MAX_INLINE, PeerId, TxItem, TxSeq};

/// Inline bytes of a packet that is a header and nothing else in front of its data.
const BARE_LEN: u32 = 24;
/// Inline bytes of a packet with an acknowledgement vector.
const ACKS_LEN: u32 = 40;

const _: () = assert!(BARE_LEN as usize == HEADER_LEN);
const _: () = assert!(ACKS_LEN as usize == HEADER_LEN + ACK_VECTOR_LEN);

/// What to fill in when a packet leaves.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stamp {
    /// Nothing.
    None,
    /// The time goes into this call, for round trip and timeout.
    SentAt(CallIdx),
    /// The time since then goes into the header as residence (rule W4).
    ResidenceSince(Nanos),
}

/// The packets of one iteration, in order.
#[derive(Debug)]
pub(crate) struct TxQueue {
    items: Vec<TxItem>,
    stamps: Vec<Stamp>,
    /// Position in the transport's sequence before the first item.
    base: TxSeq,
}

impl TxQueue {
    pub(crate) fn with_capacity(capacity: usize) -> Self {
        Self {
            items: Vec::with_capacity(capacity),
            stamps: Vec::with_capacity(capacity),
            base: TxSeq(0),
        }
    }

    /// Appends a packet and returns the position after it: once the transport's `done` has
    /// reached that, `data` may be given back.
    #[inline]
    pub(crate) fn push(
        &mut self,
        peer: PeerId,
        header: &Header,
        data: BufRef,
        stamp: Stamp,
    ) -> TxSeq {
        let mut inline = [0; MAX_INLINE];
        inline[..HEADER_LEN].copy_from_slice(&header.encode());
        self.push_item(
            TxItem {
                peer,
                inline_len: BARE_LEN,
                inline,
                data,
            },
            stamp,
        )
    }

    /// Like [`Self::push`], with an acknowledgement vector behind the header (rule W10), whose
    /// flag the caller has set.
    pub(crate) fn push_with_acks(
        &mut self,
        peer: PeerId,
        header: &Header,
        acks: AckVector,
        data: BufRef,
        stamp: Stamp,
    ) -> TxSeq {
        const END: usize = HEADER_LEN + ACK_VECTOR_LEN;
        let mut inline = [0; MAX_INLINE];
        inline[..HEADER_LEN].copy_from_slice(&header.encode());
        inline[HEADER_LEN..END].copy_from_slice(&acks.encode());
        self.push_item(
            TxItem {
                peer,
                inline_len: ACKS_LEN,
                inline,
                data,
            },
            stamp,
        )
    }

    #[inline]
    fn push_item(&mut self, item: TxItem, stamp: Stamp) -> TxSeq {
        self.items.push(item);
        self.stamps.push(stamp);
        TxSeq(self.base.0 + self.items.len() as u64)
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    /// The packets, ready to go.
    #[inline]
    pub(crate) fn items(&self) -> &[TxItem] {
        &self.items
    }

    /// Writes what is known only now into packets and calls; `sent` gets each call's time.
    #[inline]
    pub(crate) fn stamp(&mut self, now: Nanos, mut sent: impl FnMut(CallIdx)) {
        for (item, stamp) in self.items.iter_mut().zip(&self.stamps) {
            match *stamp {
                Stamp::None => {}
                Stamp::SentAt(call) => sent(call),
                Stamp::ResidenceSince(start) => {
                    let residence = Residence::from_nanos(now.since(start).0);
                    item.inline[2..4].copy_from_slice(&residence.0.to_le_bytes());
                }
            }
        }
    }

    /// Forgets the packets: the transport has taken them, up to `end` of its sequence.
    #[inline]
    pub(crate) fn clear(&mut self, end: TxSeq) {
        debug_assert_eq!(end.0, self.base.0 + self.items.len() as u64);
        self.items.clear();
        self.stamps.clear();
        self.base = end;
    }
}
