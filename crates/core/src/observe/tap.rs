//! A tap sees every packet of an endpoint as it comes and goes, for traces (design §11). An
//! endpoint without one pays a branch for each frame and each burst.
//!
//! Called by `endpoint/event_loop.rs`: the tap sees a frame after it was taken apart, when it is
//! known whether some of it was dropped, and a packet that leaves just before the transport does.

use dunlin_wire::Header;

use crate::time::Nanos;
use crate::transport::{Frame, PeerId, TxItem};

/// The length of a packet that came, as its session has it; `None` if no session is open that has
/// such a packet, and so nothing says where the next one of its frame begins (rule W11).
pub type PacketLen<'a> = &'a dyn Fn(&Header) -> Option<usize>;

/// A listener to packets. It runs on the data path of the endpoint, so it must be quick.
pub trait Tap {
    /// A frame has come.
    fn received(&mut self, seen: Seen, frame: &Frame<'_>, packet_len: PacketLen<'_>);

    /// A packet is about to be given to the transport, so what it names is still lent.
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
