//! Ordinary requests with batch handlers: they are accepted one by one, and wait for the end of the
//! burst. Called by the common path.

use std::ops::Range;

use dunlin_wire::HEADER_LEN;

use crate::endpoint::rpc::Engine;
use crate::handler::batch::BatchEntry;
use crate::packet::words::{Words, high, words_of};
use crate::protocol::Core;
use crate::session::proof::plain_request_type;
use crate::time::Clock;
use crate::transport::{RX_BURST, Rx, Tx};

impl<X: Tx, C: Clock, App> Engine<X, C, App> {
    /// Keeps ordinary requests for their batch handlers, one per frame, from a frame on; returns
    /// the index after them. If no request waited before, the burst ends with these, and all are of
    /// one type, this runs their handler: their bytes are known now, and would have to be found
    /// again later. This is a separate function, because the loop over other packets needs its
    /// registers for other values.
    #[inline(never)]
    pub(super) fn keep_whole(&mut self, rx: &impl Rx, first: usize, frames: usize) -> usize {
        // A tap must see each frame.
        let end = if self.tap.is_some() { first } else { frames };
        let (mut kept, none_waits) = ([&[][..]; RX_BURST], self.batch.is_empty());
        let after = while_whole(rx, first, end, |bytes, index| {
            let Some(data) = self.keep_frame(bytes, index) else {
                return false;
            };
            if let Some(place) = kept.get_mut(self.batch.len().wrapping_sub(1)) {
                *place = data;
            }
            true
        });
        // Then no frame was rejected for lack of memory, and each has its place among the kept
        // ones.
        if none_waits && after == frames && self.batch.len() == frames - first {
            self.run_kept(&kept);
        }
        after
    }

    /// Like [`Self::keep_whole`], for the only frame of a burst. True if it is kept.
    #[inline(never)]
    pub(super) fn keep_lone(&mut self, rx: &impl Rx) -> bool {
        let first = rx.first().or_else(|| rx.whole(0));
        self.tap.is_none() && self.keep_frame(first, 0).is_some()
    }

    /// Keeps a frame with these bytes, if it is an ordinary request with a batch handler; returns
    /// the request's data.
    #[inline(always)]
    fn keep_frame<'a>(&mut self, bytes: Option<&'a [u8]>, index: usize) -> Option<&'a [u8]> {
        let (words, data) = words_of(bytes?)?;
        if data.len() != high(words[1]) as usize {
            return None;
        }
        let place = HEADER_LEN..HEADER_LEN + data.len();
        (self.accept_for_batch(&words, index, place) == Some(true)).then_some(data)
    }

    /// Runs the batch handler on all waiting requests, if all are of one type. `kept` has the bytes
    /// of each.
    #[inline(always)]
    fn run_kept(&mut self, kept: &[&[u8]; RX_BURST]) {
        let [first, ..] = &self.batch[..] else { return };
        let is_same = |entry: &BatchEntry| entry.req_type == first.req_type;
        if let Some(data) = kept.get(..self.batch.len())
            && self.batch.iter().all(is_same)
        {
            self.run_batch(data.len(), data);
        }
    }

    /// Accepts a request with these header words, whose data is at this place of frame `index`, if
    /// its batch handler runs after the burst. `Some(false)`: it has such a handler, but is not
    /// ordinary.
    #[inline(always)]
    pub(super) fn accept_for_batch(
        &mut self,
        words: &Words,
        index: usize,
        data: Range<usize>,
    ) -> Option<bool> {
        let req_type = plain_request_type(words)?;
        let max_response = self.handlers.fast_batch(req_type)?;
        let Core {
            requests,
            sessions,
            context,
            ..
        } = &mut self.core;
        let Some((session, inbound)) = requests.on_plain_request(words, sessions, context) else {
            return Some(false);
        };
        self.keep_for_batch((req_type, inbound, session), index, data, max_response);
        Some(true)
    }
}

/// Passes the frames from `first` on to `take`, each with its index, until it returns false.
/// Returns the index of that frame, or the number of frames.
#[inline(always)]
pub(super) fn while_whole<'a>(
    rx: &'a impl Rx,
    first: usize,
    frames: usize,
    mut take: impl FnMut(Option<&'a [u8]>, usize) -> bool,
) -> usize {
    let mut lined_up = rx.lined_up(first);
    for index in first..frames {
        let mut bytes = lined_up.next();
        if bytes.is_none() {
            lined_up = rx.lined_up(index);
            bytes = lined_up.next().or_else(|| find_whole(rx, index));
        }
        if !take(bytes, index) {
            return index;
        }
    }
    frames
}

/// Like [`Rx::whole`], for a frame that does not come in a row.
#[inline(never)]
pub(crate) fn find_whole<R: Rx>(rx: &R, index: usize) -> Option<&[u8]> {
    rx.whole(index)
}
