//! A tap: somebody who is shown every packet of an endpoint as it comes and goes, for traces
//! (design §11). Off, it costs a branch for each frame and each burst.
//!
//! Called by `endpoint/event_loop.rs`: a frame is shown after it was taken apart, so that it is
//! known whether something of it was dropped; what is sent, just before the transport gets it.

use crate::time::Nanos;
use crate::transport::{Frame, PeerId, TxItem};

/// Who is shown the packets. It is called on the data path of an endpoint that is traced, and is
/// to be quick.
pub trait Tap {
    /// A frame has come.
    fn received(&mut self, seen: Seen, frame: &Frame<'_>);

    /// A packet is about to be given to the transport, so what it names is still lent.
    fn sent(&mut self, at: Nanos, item: &TxItem);
}

/// What the endpoint says of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seen {
    /// When the burst was taken that it was in.
    pub at: Nanos,
    /// Who sent it; `None`: it is of no open session.
    pub peer: Option<PeerId>,
    /// Why something of it was dropped: a place in [`Drops::named`](crate::Drops::named).
    pub dropped: Option<usize>,
}
