//! Long messages that are not in the lane, because their calls or requests keep them: the lane
//! takes copies for a transport that needs its lines, and when an owner ends. Called by `lane` and
//! the outbox.

use dunlin_wire::HEADER_LEN;

use super::memory::{MASK, lines_of};
use super::{IN_FEW, LANE_COPIED, Lane, Messages, Source};
use dunlin_msgbuf::fresh_chunks;

impl Lane {
    /// Copies all messages into the lane, for a transport that needs its lines.
    #[inline]
    pub(crate) fn complete<'a>(&mut self, messages: impl Messages<'a>) {
        if !self.has_long {
            return;
        }
        for place in 0..self.len() {
            if let Some(source) = self.elsewhere(place) {
                self.copy(place, messages.message(source));
            }
        }
    }

    /// Copies a message into the lane if a packet there needs it, because its owner ends.
    #[cold]
    pub(crate) fn keep(&mut self, source: Source, message: &[u8]) {
        for place in 0..self.len() {
            if self.elsewhere(place) == Some(source) {
                self.copy(place, message);
            }
        }
    }

    /// The source of a packet whose message is not in the lane.
    fn elsewhere(&self, place: usize) -> Option<Source> {
        let source = self.memory.sources[place & MASK];
        let is_long = self.packet(place).size() > LANE_COPIED;
        (is_long && source != Source::LANE).then_some(source)
    }

    /// Copies the message of a packet into its lines; if the message is gone, clears its header.
    fn copy(&mut self, place: usize, message: &[u8]) {
        let packet = self.packet(place);
        debug_assert!(message.is_empty() || message.len() > IN_FEW);
        self.memory.sources[place & MASK] = Source::LANE;
        if HEADER_LEN + message.len() != packet.size() {
            return self.memory.range_mut(packet.line(), HEADER_LEN).fill(0);
        }
        // Only up to the packet's end: the zeros that follow a message must not reach the next
        // packet, which is there already.
        let place = self.memory.chunks_from(packet.line());
        let own = 2 * lines_of(message.len()) as usize - 1;
        let fits = fresh_chunks(&mut place[..own], message);
        debug_assert!(fits, "these lines have room for the message");
    }
}
