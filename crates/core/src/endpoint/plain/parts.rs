//! Packets of large requests, each in a frame of its own. If a burst has several of one request in
//! order, they are taken together. Called by the common path for frames that it does not handle
//! itself, before the general path, which does the same with each of them.

use dunlin_wire::PLAIN_REQUEST;

use crate::context::Context;
use crate::endpoint::rpc::Engine;
use crate::packet::words::{low, words_of};
use crate::time::Clock;
use crate::transport::{Rx, Tx};

impl<X: Tx, C: Clock, App> Engine<X, C, App> {
    /// Takes packets of a large request, one a frame, from a frame on; returns their number.
    #[inline(never)]
    pub(super) fn take_parts(&mut self, rx: &impl Rx, first: usize, frames: usize) -> usize {
        // A tap must see each frame.
        if self.tap.is_some() {
            return 0;
        }
        let core = &mut self.core;
        let found = rx.whole(first).and_then(|it| core.sessions.find_part(it));
        let Some((session, header)) = found else {
            return 0;
        };
        let whole = (first..frames).map_while(|index| rx.whole(index));
        let count = core.server().on_parts(session, &header, whole);
        if count != 0 {
            let Context { moment, stats, .. } = &mut core.context;
            core.sessions.on_parts(session, count, moment.came(), stats);
        }
        count as usize
    }
}

/// Whether these bytes look like a packet of a large request, but not its first one.
#[inline(always)]
pub(super) fn may_be_part(bytes: &[u8]) -> bool {
    words_of(bytes)
        .is_some_and(|([first, _, numbers], _)| low(numbers) != 0 && first & 0xFF == PLAIN_REQUEST)
}
