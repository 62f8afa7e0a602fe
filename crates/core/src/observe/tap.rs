//! A tap sees every packet that an endpoint receives or sends, for traces (design §11). An endpoint
//! without a tap pays a branch for each frame and each burst.
//!
//! Called by `endpoint/tapping.rs`. The tap sees a received frame after its packets were handled,
//! because only then are the drops known. It sees a packet that leaves just before the endpoint
//! gives the packet to the transport.

use dunlin_wire::Header;

use crate::time::Nanos;
use crate::transport::{Frame, PeerId, TxItem};

/// Finds the length of a received packet from its header. `None` if the packet belongs to no open
/// session; then the start of the next packet in its frame is unknown (rule W11).
pub type PacketLen<'a> = &'a dyn Fn(&Header) -> Option<usize>;

/// An observer of packets. It runs on the endpoint's data path and must be quick.
pub trait Tap {
    /// A frame has come.
    fn received(&mut self, seen: Seen, frame: &Frame<'_>, packet_len: PacketLen<'_>);

    /// A packet is about to be given to the transport. Its data can still be read.
    fn sent(&mut self, at: Nanos, item: &TxItem);
}

/// The circumstances of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seen {
    /// When the endpoint took the burst with the frame.
    pub at: Nanos,
    /// The peer that sent the frame; `None` if the frame belongs to no open session.
    pub peer: Option<PeerId>,
    /// Why part of the frame was dropped: an index into [`Drops::named`](crate::Drops::named).
    pub dropped: Option<usize>,
}
