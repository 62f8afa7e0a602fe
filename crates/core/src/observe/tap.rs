//! A tap: somebody who is shown every packet of an endpoint as it comes and goes, for traces
//! (design §11). Off, it costs a branch for each frame and each burst.
//!
//! Called by `endpoint/event_loop.rs`: a frame is shown after it was taken apart, so that it is
//! known whether something of it was dropped; what is sent, just before the transport gets it.

use dunlin_wire::peek_session;

use crate::endpoint::core::Core;
use crate::observe::counters::Drops;
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
    /// Why something of it was dropped: a place in [`Drops::named`].
    pub dropped: Option<usize>,
}

/// A tap and what it has been told.
pub(crate) struct Tapping {
    tap: Box<dyn Tap>,
    /// As they were after the last frame that was shown.
    drops: Drops,
}

impl Tapping {
    pub(crate) fn new(tap: Box<dyn Tap>, drops: Drops) -> Self {
        Self { tap, drops }
    }

    #[cold]
    pub(crate) fn on_frame(&mut self, core: &Core, frame: &Frame<'_>) {
        let drops = core.context.stats.counters().drops;
        let (now, before) = (drops.named(), self.drops.named());
        let dropped = (0..now.len()).find(|&reason| now[reason].1 != before[reason].1);
        self.drops = drops;
        let session = peek_session(frame.bytes);
        let state = session.and_then(|session| core.sessions.get_open(session.0));
        let seen = Seen {
            at: core.context.moment.burst_time(),
            peer: state.map(|state| state.terms().peer),
            dropped,
        };
        self.tap.received(seen, frame);
    }

    #[cold]
    pub(crate) fn on_burst(&mut self, at: Nanos, items: &[TxItem]) {
        for item in items {
            self.tap.sent(at, item);
        }
    }
}
