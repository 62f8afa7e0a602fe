//! The tap of an endpoint, and the drop counts at the last frame that it got. If the present counts
//! differ, a part of a frame was dropped, and the tap gets the frame with the reason. Called by
//! `endpoint/event_loop.rs`, `endpoint/plain.rs` and `endpoint/transmit.rs`.

use dunlin_wire::{Header, SessionNum, peek_session};

use crate::handle::SessionIdx;
use crate::observe::counters::Drops;
use crate::observe::tap::{Seen, Tap};
use crate::protocol::Core;
use crate::time::Nanos;
use crate::transport::{Frame, TxItem};

/// A tap, with the drop counts at its last frame.
pub(crate) struct Tapping {
    tap: Box<dyn Tap>,
    /// The drop counts after the last frame that the tap got.
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
        let terms_of = |session: SessionNum| {
            let open = core.sessions.get_open(SessionIdx(session.0));
            open.map(|state| state.terms())
        };
        let first = peek_session(frame.bytes).and_then(terms_of);
        let seen = Seen {
            at: core.context.moment.burst_time(),
            peer: first.map(|terms| terms.peer),
            dropped,
        };
        let packet_len = |header: &Header| header.packet_len(terms_of(header.session)?.data_size);
        self.tap.received(seen, frame, &packet_len);
    }

    #[cold]
    pub(crate) fn on_burst(&mut self, at: Nanos, items: &[TxItem]) {
        for item in items {
            self.tap.sent(at, item);
        }
    }
}
