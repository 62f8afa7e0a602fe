//! A tap sees every packet of an endpoint as it comes and goes, for traces (design §11). An
//! endpoint without one pays a branch for each frame and each burst.
//!
//! Called by `endpoint/event_loop.rs`: the tap sees a received frame after its packets were
//! handled, because only then the drops are known, and a packet that leaves just before the
//! endpoint gives it to the transport.

use dunlin_wire::Header;

use crate::time::Nanos;
use crate::transport::{Frame, PeerId, TxItem};

/// Finds the length of a received packet from its header; `None` if no open session has such a
/// packet, so the start of the next packet in its frame is unknown (rule W11).
pub type PacketLen<'a> = &'a dyn Fn(&Header) -> Option<usize>;

/// A listener to packets. It runs on the data path of the endpoint, so it must be quick.
pub trait Tap {
    /// A frame has come.
    fn received(&mut self, seen: Seen, frame: &Frame<'_>, packet_len: PacketLen<'_>);

    /// A packet is about to be given to the transport, which still lends its data.
    fn sent(&mut self, at: Nanos, item: &TxItem);
}

/// The circumstances of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seen {
    /// When the endpoint took its burst.
    pub at: Nanos,
    /// The peer that sent it; `None`: it belongs to no open session.
    pub peer: Option<PeerId>,
    /// Why some of it was dropped: a place in [`Drops::named`](crate::Drops::named).
    pub dropped: Option<usize>,
}
