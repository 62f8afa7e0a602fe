//! Answers that state how long their requests stayed in the server. An answer does so if the
//! request asked for it, or if the answer left in a later iteration than the one in which the
//! request came (rules W4 and S10). Called by the common path for frames that it does not handle
//! itself.
//!
//! The client takes the times as on the general path; all else is as for other ordinary answers.
//! These answers have a loop of their own, because the loop over other packets needs all registers
//! for itself.

use super::batched::while_whole;
use super::{Blame, Cursor, Running};
use crate::endpoint::rpc::Engine;
use crate::handler::context::Cx;
use crate::packet::words::{high, is_timed, words_of};
use crate::protocol::Core;
use crate::time::Clock;
use crate::transport::{Rx, Tx};

impl<X: Tx, C: Clock, App> Engine<X, C, App> {
    /// Handles frames from `first` on that are neither one ordinary packet each, nor requests for
    /// batch handlers. Returns the index of the next frame.
    #[inline(never)]
    pub(super) fn run_otherwise(
        &mut self,
        rx: &impl Rx,
        cursor: &mut Cursor,
        first: usize,
        frames: usize,
    ) -> usize {
        match self.end_timed(rx, cursor, first, frames) {
            after if after == first => self.run_apart(rx, cursor, first, frames),
            after => after,
        }
    }

    /// Like [`Self::run_otherwise`], for the only frame of a burst. If a function of the user has
    /// panicked, the cursor is after its packet.
    #[inline(always)]
    pub(super) fn run_lone_apart(&mut self, rx: &impl Rx, cursor: &mut Cursor) {
        if cursor.frame != 0 {
            return;
        }
        if cursor.offset == 0 {
            // The packet is counted before it runs, because it must count even if the function
            // panics.
            cursor.plain += 1;
            if self.end_timed(rx, cursor, 0, 1) != 0 {
                return;
            }
            cursor.plain -= 1;
        }
        self.run_apart(rx, cursor, 0, 1);
    }

    /// Ends the calls of frames that are one such answer each, from `first` on. Returns the index
    /// of the first other frame, or the number of frames.
    #[inline(always)]
    fn end_timed(
        &mut self,
        rx: &impl Rx,
        cursor: &mut Cursor,
        first: usize,
        frames: usize,
    ) -> usize {
        // A tap must see each frame.
        let frames = if self.tap.is_some() { first } else { frames };
        while_whole(rx, first, frames, |bytes, index| {
            self.end_packet(bytes, (index + 1, 0), cursor)
        })
    }

    /// Like [`Self::end_packet`], for a packet of a frame that several share.
    #[inline(never)]
    pub(super) fn end_among_others(
        &mut self,
        packet: &[u8],
        next: (usize, usize),
        cursor: &mut Cursor,
    ) -> bool {
        self.end_packet(Some(packet), next, cursor)
    }

    /// Ends the call of a packet with these bytes, if the packet is such an answer, and ordinary
    /// otherwise. `next`: the frame and the offset with which the burst continues if the user's
    /// function panics.
    #[inline(always)]
    fn end_packet(
        &mut self,
        bytes: Option<&[u8]>,
        next: (usize, usize),
        cursor: &mut Cursor,
    ) -> bool {
        let Some((words, data)) = bytes.and_then(words_of) else {
            return false;
        };
        if !is_timed(&words) || data.len() != high(words[1]) as usize {
            return false;
        }
        let Self {
            core,
            app,
            handlers,
            dropped,
            ..
        } = self;
        let Core {
            calls,
            sessions,
            pacer,
            context,
            ..
        } = &mut *core;
        let Some(ended) = calls.end_timed(&words, data, sessions, pacer, context) else {
            // This does not count as declined: the server has often acknowledged such a request,
            // and then only the general path ends its call.
            return false;
        };
        let blame = Blame::<false, _> {
            cursor,
            next: || next,
            running: Running::Completion,
        };
        (handlers.completion)(app, ended.done(Ok(())), &mut Cx { core, dropped });
        blame.lift();
        true
    }
}
