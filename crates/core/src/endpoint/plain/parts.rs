//! Packets of large requests, each in a frame of its own. If a burst has several of one request in
//! order, they are taken together. Called by the common path for frames that it does not handle
//! itself, before the general path, which does the same with each of them.

use super::batched::find_whole;
use crate::context::Context;
use crate::endpoint::rpc::Engine;
use crate::time::Clock;
use crate::transport::{Rx, Tx};

impl<X: Tx, C: Clock, App> Engine<X, C, App> {
    /// Takes packets of a large request, one a frame, from a frame on; returns the index after
    /// them.
    #[inline(never)]
    pub(super) fn take_parts(&mut self, rx: &impl Rx, first: usize, frames: usize) -> usize {
        // A tap must see each frame.
        if self.tap.is_some() {
            return first;
        }
        let core = &mut self.core;
        let found = find_whole(rx, first).and_then(|bytes| core.sessions.find_part(bytes));
        let Some((session, header)) = found else {
            return first;
        };
        let whole = (first..frames).map_while(|index| rx.whole(index));
        let count = core.server().on_parts(session, &header, whole);
        if count == 0 {
            return first;
        }
        let Context { moment, stats, .. } = &mut core.context;
        core.sessions.on_parts(session, count, moment.came(), stats);
        first + count as usize
    }
}
