//! The client's large messages: the messages on their way in either direction, and the queue of
//! those that may send (rules S7, S8, S13; eRPC §5).
//!
//! A message is the request or the response of a call. It uses the call's session, whose flow sets
//! the pace. Therefore, this part borrows calls, sessions and pacer with each event ([`Lent`]). The
//! endpoint's core routes events here.

mod large_responses;
mod sending;
mod silence;
mod turns;

use std::collections::VecDeque;

use crate::client::calls::Calls;
use crate::config::{ASKS_PER_HOLD, Config};
use crate::congestion::pacer::Pacer;
use crate::context::Context;
use crate::handle::{CallIdx, SessionIdx, TransferIdx};
use crate::session::table::Sessions;
use crate::slab::Slab;
use crate::time::Nanos;
use crate::transfer::scoreboard::Transfer;
use crate::transfer::word::Word;

/// The other parts that large messages need, borrowed for one event.
pub(crate) struct Lent<'a> {
    pub(crate) calls: &'a mut Calls,
    pub(crate) sessions: &'a mut Sessions,
    pub(crate) pacer: &'a mut Pacer,
    pub(crate) context: &'a mut Context,
}

/// The large messages of an endpoint that are on their way, and the queue of those that may send.
#[derive(Debug, Default)]
pub(crate) struct Transfers {
    all: Slab<TransferIdx, Transfer>,
    /// The number of turns ever begun.
    turns: u64,
    sending: VecDeque<TransferIdx>,
    /// The state of each session, up to the highest index that has had large messages.
    sessions: Vec<OfSession>,
}

/// The messages of one session.
#[derive(Clone, Copy, Debug, Default)]
struct OfSession {
    live: u32,
    word: Word,
}

impl Transfers {
    /// The indexes of all entries, in use or not.
    pub(crate) fn indexes(&self) -> impl Iterator<Item = TransferIdx> + use<> {
        self.all.indexes()
    }

    /// The number of messages on their way.
    pub(crate) fn live(&self) -> usize {
        self.all.live()
    }

    /// A planted bug: takes an entry that belongs to no message.
    #[cfg(feature = "mutants")]
    pub(crate) fn leak(&mut self) {
        self.all.take();
    }

    /// Begins a message of `packets` packets.
    fn insert(&mut self, session: SessionIdx, call: CallIdx, packets: u32) -> TransferIdx {
        let sessions = session.0 as usize + 1;
        if self.sessions.len() < sessions {
            self.sessions.resize(sessions, OfSession::default());
        }
        let of_session = &mut self.sessions[session.0 as usize];
        if of_session.live == 0 {
            of_session.word = of_session.word.anew();
        }
        of_session.live += 1;
        let index = self.all.take();
        self.turns += 1;
        self.all.at_mut(index).begin(call, packets, self.turns);
        index
    }

    /// Counts `sent` packets of the message's turn. After the last packet of the turn, or after the
    /// longest time, other messages send.
    fn on_turn(&mut self, index: TransferIdx, sent: u32, now: Nanos, longest: Nanos) {
        let entry = self.all.at_mut(index);
        if entry.spend_turn(sent, now, longest) {
            self.turns += 1;
            entry.begin_turn(self.turns);
        }
    }

    fn remove(&mut self, session: SessionIdx, index: TransferIdx) {
        self.sessions[session.0 as usize].live -= 1;
        self.all.at_mut(index).end();
        self.all.release(index);
    }

    #[inline]
    fn at(&self, index: TransferIdx) -> &Transfer {
        self.all.at(index)
    }

    #[inline]
    fn at_mut(&mut self, index: TransferIdx) -> &mut Transfer {
        self.all.at_mut(index)
    }

    /// The entry at this index, if it is in use.
    fn get_live(&mut self, index: TransferIdx) -> Option<&mut Transfer> {
        self.all
            .get_mut(index)
            .filter(|transfer| transfer.is_live())
    }

    /// Credits that this call in a slot holds.
    pub(crate) fn credits_of(&self, idx: CallIdx, calls: &Calls) -> u32 {
        let transfer = calls.transfer_of(idx);
        transfer.map_or(1, |transfer| self.held(transfer))
    }

    /// Credits that the message holds.
    fn held(&self, index: TransferIdx) -> u32 {
        self.at(index).held()
    }

    /// Notes how many packets of the message have arrived, and since when that number has not
    /// changed.
    pub(crate) fn look_at_progress(&mut self, index: TransferIdx, present: Nanos) {
        self.at_mut(index).look_at_progress(present);
    }

    /// Whether packets of the message are on their way, and none has arrived for `span`.
    pub(crate) fn is_stalled(&self, index: TransferIdx, present: Nanos, span: Nanos) -> bool {
        self.at(index).is_stalled(present, span)
    }

    /// When work for the entry is due.
    pub(crate) fn due_of(&mut self, index: TransferIdx) -> Nanos {
        self.get_live(index).map_or(Nanos::MAX, |entry| entry.due())
    }

    /// Whether at most one message of the session is on its way.
    fn is_alone(&self, session: SessionIdx) -> bool {
        self.sessions[session.0 as usize].live <= 1
    }

    /// The longest turn of a message of the session. The server gives up a message of which no
    /// packet comes for its hold (rules S9, S14), so each message gets several turns in that time.
    fn longest_turn(&self, session: SessionIdx, config: &Config) -> Nanos {
        match u64::from(self.sessions[session.0 as usize].live) {
            ..=1 => Nanos::MAX,
            messages => Nanos(config.response_hold.0 / ASKS_PER_HOLD / messages),
        }
    }

    /// The record of the peer's answers. The session must have had large messages.
    fn word(&self, session: SessionIdx) -> &Word {
        &self.sessions[session.0 as usize].word
    }

    /// Notes the answer to a packet that left at `sent`.
    fn on_answer(&mut self, session: SessionIdx, sent: Nanos, now: Nanos) {
        self.sessions[session.0 as usize].word.on_answer(sent, now);
    }

    /// Notes how long the server kept a packet that the session had asked for.
    fn on_kept(&mut self, session: SessionIdx, residence: Nanos) {
        self.sessions[session.0 as usize].word.on_kept(residence);
    }

    /// Notes that the message probes with its packet `tail`, which leaves again now. Returns the
    /// number of unanswered probes in a row, of this message or of its session, whichever is
    /// larger.
    fn on_probe(&mut self, session: SessionIdx, index: TransferIdx, tail: u32, now: Nanos) -> u8 {
        let word = &mut self.sessions[session.0 as usize].word;
        word.on_ask(now);
        word.asks().max(self.all.at_mut(index).on_probe(tail, now))
    }

    /// Whether a message may send.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.sending.is_empty()
    }

    /// Queues the message for its turn. False if it waits in the timing wheel, or is already
    /// queued.
    fn queue(&mut self, index: TransferIdx) -> bool {
        let queues = self.all.at_mut(index).begin_wait();
        if queues {
            self.sending.push_back(index);
        }
        queues
    }

    /// The number of messages in the queue. Some of them may have ended.
    fn queue_len(&self) -> usize {
        self.sending.len()
    }

    /// Takes the first message out of the queue; `None` if that message has ended.
    fn next_turn(&mut self) -> Option<TransferIdx> {
        let index = self.sending.pop_front()?;
        self.get_live(index)?.end_wait();
        Some(index)
    }
}

#[cfg(test)]
mod tests;
