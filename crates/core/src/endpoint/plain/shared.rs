//! Ordinary packets among others: in frames that several packets share, or that a tap sees. Called
//! by the common path for frames that are not one ordinary packet.

use dunlin_wire::HEADER_LEN;

use super::{Cursor, run_packet, run_words};
use crate::endpoint::rpc::Engine;
use crate::handler::context::Cx;
use crate::packet::words::{first_packet, high, words_of};
use crate::time::Clock;
use crate::transport::{Frame, Tx};

/// The packet with which a run of ordinary packets ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Met {
    /// The run has come to its end.
    Nothing,
    /// A packet that may be an ordinary one.
    Untried,
    /// A packet that looked ordinary, and is not.
    Tried,
}

impl<X: Tx, C: Clock, App> Engine<X, C, App> {
    /// Handles ordinary packets of a frame that several share, from the cursor's offset on and up
    /// to the offset `until`.
    pub(super) fn run_shared(
        &mut self,
        frame: &Frame<'_>,
        until: usize,
        cursor: &mut Cursor,
        index: usize,
    ) -> Met {
        // A tap must see each frame.
        let Some(bytes) = frame.whole().filter(|_| self.tap.is_none()) else {
            return Met::Untried;
        };
        let Self {
            core,
            app,
            handlers,
            dropped,
            dispatched,
            ..
        } = self;
        let mut cx = Cx { core, dropped };
        let mut offset = cursor.offset;
        while offset < until {
            let packet = words_of(&bytes[offset..]);
            let size = packet.map_or(0, |(words, _)| high(words[1]) as usize);
            let end = offset + HEADER_LEN + size;
            let whole = packet.and_then(|(words, data)| Some((words, data.get(..size)?)));
            // A packet that is alone in its frame is not handled here: it was tried as a whole
            // frame, or [`Self::run_among_others`] tries it.
            let Some(packet) = whole.filter(|_| offset != 0 || end != bytes.len()) else {
                cursor.offset = offset;
                return Met::Untried;
            };
            // The packet is counted before it runs, because it must count even if a function of the
            // user panics.
            cursor.plain += 1;
            let user = (&mut *app, &*handlers, &mut *dispatched);
            if !run_words::<false, _>(packet, || (index, end), cursor, user, &mut cx) {
                cursor.plain -= 1;
                cursor.offset = offset;
                return Met::Tried;
            }
            offset = end;
        }
        cursor.offset = offset;
        Met::Nothing
    }

    /// Handles the packet at the cursor's offset, if it is an ordinary one.
    pub(super) fn run_among_others(
        &mut self,
        frame: &Frame<'_>,
        met: Met,
        cursor: &mut Cursor,
        index: usize,
    ) -> bool {
        let rest = &frame.bytes[cursor.offset..];
        let Some(packet) = first_packet(rest).filter(|_| frame.whole().is_some()) else {
            return false;
        };
        // The packet is counted before it runs, because it must count even if a function of the
        // user panics.
        cursor.plain += 1;
        let is_alone = packet.len() == frame.bytes.len();
        // A packet alone in its frame was tried already, unless a tap sees each frame.
        let was_tried = met == Met::Tried || is_alone && self.tap.is_none() && !cursor.again;
        let next = (index, cursor.offset + packet.len());
        let ran = !was_tried && self.run_ordinary(packet, next, cursor)
            || self.accept_among_others(packet, cursor, index)
            || !is_alone && self.end_among_others(packet, next, cursor);
        match ran {
            true => cursor.offset += packet.len(),
            false => cursor.plain -= 1,
        }
        ran
    }

    /// Handles this packet, if it is an ordinary one. `next`: as for [`run_packet`].
    #[inline(never)]
    fn run_ordinary(&mut self, packet: &[u8], next: (usize, usize), cursor: &mut Cursor) -> bool {
        let Self {
            core,
            app,
            handlers,
            dropped,
            dispatched,
            ..
        } = self;
        let mut cx = Cx { core, dropped };
        let user = (app, &*handlers, dispatched);
        run_packet::<false, _>(packet, || next, cursor, user, &mut cx)
    }

    /// Accepts this packet at the cursor's offset, if it is an ordinary request whose batch handler
    /// runs after the burst.
    fn accept_among_others(&mut self, packet: &[u8], cursor: &mut Cursor, index: usize) -> bool {
        let Some((words, data)) = words_of(packet) else {
            return false;
        };
        let start = cursor.offset + HEADER_LEN;
        let accepted = self.accept_for_batch(&words, index, start..start + data.len());
        cursor.declined += u64::from(accepted == Some(false));
        accepted == Some(true)
    }
}
