//! Turns of large messages: which message of a session sends next, and how many packets.
//!
//! A session has credits, and a window and a rate for each direction. The messages of one direction
//! share these in turns (`QUANTUM` of `transfer/scoreboard.rs`), so that messages of the same size
//! take about the same time. Turns are shorter if the path is so slow that the server would give up
//! the messages that wait. Called by `transfers/sending.rs`, by the event loop for the queue, and
//! by `protocol/client.rs` when a packet's time has come.

use crate::congestion::Way;
use crate::congestion::wheel::Paced;
use crate::handle::{CallIdx, FlowIdx, SessionIdx, TransferIdx};
use crate::packet::words::HEADER_BYTES;
use crate::time::Nanos;
use crate::transfer::transfers::{Lent, Transfers};

/// Packets that one message may send, or ask for with one RFR, before the next message of the
/// endpoint. The limit keeps a single message from filling a queue.
const TURN: u32 = 16;
/// Packets that one RFR of a paced session may ask for (design §7).
const MOST_ASKED_PACED: u32 = 4;

impl Transfers {
    /// Puts the message into the queue of messages that may send.
    pub(super) fn send_later(&mut self, lent: &mut Lent<'_>, transfer: TransferIdx) {
        if self.queue(transfer) {
            lent.context.agenda.call_attention();
        }
    }

    /// Lets a message of a paced session send, because the time `at` has come. Does nothing if the
    /// message no longer waits for that time.
    pub(crate) fn on_place(&mut self, lent: &mut Lent<'_>, transfer: TransferIdx, at: Nanos) {
        let message = self.at_mut(transfer);
        if message.end_place(at) && self.take_paced_turn(lent, transfer, true) {
            self.send_later(lent, transfer);
        }
    }

    /// Gives each message in the queue its turn.
    pub(crate) fn send_large(&mut self, lent: &mut Lent<'_>) {
        for _ in 0..self.queue_len() {
            if let Some(transfer) = self.next_turn()
                && self.take_turn(lent, transfer)
            {
                self.send_later(lent, transfer);
            }
        }
    }

    /// Sends up to [`TURN`] packets of the message. True if it could send more immediately.
    fn take_turn(&mut self, lent: &mut Lent<'_>, transfer: TransferIdx) -> bool {
        let (session, way) = self.stream_of(lent, transfer);
        match lent.sessions.at(session).flow() {
            FlowIdx::NONE
                if self.has_free_credit(lent, session) || self.at(transfer).has_lost() =>
            {
                self.take_window_turn(lent, session, way, u32::MAX)
            }
            // A packet that uses the call's own credit takes none from other messages.
            FlowIdx::NONE => {
                self.send_in_turn(lent, transfer, 1);
                false
            }
            _ => self.take_paced_turn(lent, transfer, false),
        }
    }

    /// The session and the direction of a large message.
    pub(super) fn stream_of(&self, lent: &Lent<'_>, transfer: TransferIdx) -> (SessionIdx, Way) {
        let idx = self.at(transfer).call();
        (lent.calls.session_of(idx), self.way_of(lent, idx))
    }

    /// Sends packets of the message's session whose time has come, and reserves a place for the
    /// next one. `placed` means that the first packet has already waited for its place. True if the
    /// session could send more immediately.
    fn take_paced_turn(
        &mut self,
        lent: &mut Lent<'_>,
        transfer: TransferIdx,
        placed: bool,
    ) -> bool {
        let (session, way) = self.stream_of(lent, transfer);
        let flow = lent.sessions.at(session).flow();
        match lent.pacer.window(flow, way) {
            Some(window @ 1..) => self.take_window_turn(lent, session, way, window),
            None if lent.pacer.is_free(flow, way) => {
                self.take_window_turn(lent, session, way, u32::MAX)
            }
            _ => self.take_rate_turn(lent, transfer, placed),
        }
    }

    /// Sends as much as the rate allows. If one message has reserved a place, any message of the
    /// same session and direction may use it.
    fn take_rate_turn(
        &mut self,
        lent: &mut Lent<'_>,
        transfer: TransferIdx,
        mut placed: bool,
    ) -> bool {
        let (session, way) = self.stream_of(lent, transfer);
        let flow = lent.sessions.at(session).flow();
        let alone = lent.pacer.is_below_one(flow, way);
        let mut sent = 0;
        while sent < TURN && !self.at(transfer).has_place() {
            let Some((packet, again)) = self.at(transfer).next_to_send() else {
                break;
            };
            if !again && !self.has_credit(lent, transfer) {
                break;
            }
            if alone && !placed && !again && self.survey(lent, session, way).in_flight != 0 {
                break;
            }
            let idx = self.at(transfer).call();
            let bytes = self.bytes_of(lent, idx, packet);
            if !placed && self.wait_for_place(lent, transfer, packet, bytes) {
                break;
            }
            placed = false;
            let most = match way {
                Way::Out => 1,
                Way::Back => MOST_ASKED_PACED,
            };
            let next = self.survey(lent, session, way).next.unwrap_or(transfer);
            let count = self.send_in_turn(lent, next, most);
            let more = bytes.saturating_mul(count.saturating_sub(1));
            lent.pacer.charge(flow, way, more);
            sent += count;
            if count == 0 {
                break;
            }
        }
        sent >= TURN
    }

    /// Sends as much as the window allows. If credits are short, the messages of the other
    /// direction, which share them, get as many as those of this one. True if the session could
    /// send more immediately.
    fn take_window_turn(
        &mut self,
        lent: &mut Lent<'_>,
        session: SessionIdx,
        way: Way,
        window: u32,
    ) -> bool {
        let mut sent = 0;
        while sent < TURN {
            let Survey { in_flight, next } = self.survey(lent, session, way);
            let Some(next) = next else {
                self.pass_turn(lent, session, way);
                return false;
            };
            let own = || match window.saturating_sub(in_flight) {
                1 if self.waits_for_pair(next) => 0,
                // One lost packet may leave nevertheless, because the packets that count as in
                // flight may be lost too.
                0 => u32::from(sent == 0 && self.at(next).has_lost()),
                room => room,
            };
            let other = self.poorer(lent, session, way.other(), in_flight);
            let (message, most) = other.unwrap_or_else(|| (next, own()));
            let count = self.send_in_turn(lent, message, most.min(TURN - sent));
            if count == 0 {
                return false;
            }
            sent += count;
        }
        true
    }

    /// Called for one direction, while the other has `rival` packets in flight. If this direction
    /// has fewer, returns its message that sends next, and the difference. `None` if it does not
    /// have fewer, or its own window or rate lets no packet leave. Both directions share the
    /// credits of the session. Without this rule, an arrival would only let another packet of its
    /// own direction leave, and the direction that took all credits first would keep them until it
    /// has nothing left to send.
    fn poorer(
        &self,
        lent: &Lent<'_>,
        session: SessionIdx,
        way: Way,
        rival: u32,
    ) -> Option<(TransferIdx, u32)> {
        if self.is_alone(session) {
            return None;
        }
        let Survey { in_flight, next } = self.survey(lent, session, way);
        let next = next?;
        let window = match lent.sessions.at(session).flow() {
            FlowIdx::NONE => u32::MAX,
            flow => match lent.pacer.window(flow, way) {
                Some(window) => window,
                None if lent.pacer.is_free(flow, way) => u32::MAX,
                None => 0,
            },
        };
        match rival.min(window).saturating_sub(in_flight) {
            0 => None,
            1 if self.waits_for_pair(next) => None,
            fewer => Some((next, fewer)),
        }
    }

    /// Whether the message waits until its window has room for two packets, instead of sending one
    /// now: one CR or RFR per packet takes a twelfth of a link whose packets have 1 KB. An arrival
    /// of the message itself must be able to end the wait. Lost packets, and the last packet of a
    /// message or of its turn, leave immediately.
    fn waits_for_pair(&self, transfer: TransferIdx) -> bool {
        let message = self.at(transfer);
        message.outstanding() != 0
            && message.turn_left() > 1
            && !message.has_lost()
            && !message.has_one_left()
    }

    /// Sends up to `most` packets of the message, within the rest of its turn.
    fn send_in_turn(&mut self, lent: &mut Lent<'_>, transfer: TransferIdx, most: u32) -> u32 {
        let most = most.min(self.at(transfer).turn_left());
        let sent = self.send_some(lent, transfer, most);
        let (now, config) = (lent.context.moment.now(), &lent.context.config);
        let session = lent.calls.session_of(self.at(transfer).call());
        self.on_turn(transfer, sent, now, self.longest_turn(session, config));
        self.after_turn(lent, transfer, sent);
        sent
    }

    /// Counts the packets in flight of the session's messages in one direction, and finds the
    /// message whose turn it is.
    fn survey(&self, lent: &Lent<'_>, session: SessionIdx, way: Way) -> Survey {
        let slots = lent.sessions.at(session).slots();
        let mut survey = Survey::default();
        let mut best = (true, u64::MAX);
        for idx in lent.calls.in_slots(slots) {
            let Some(transfer) = lent.calls.transfer_of(idx) else {
                continue;
            };
            if self.way_of(lent, idx) != way {
                continue;
            }
            let entry = self.at(transfer);
            survey.in_flight += entry.outstanding() - entry.lost();
            let key = (!entry.has_lost(), entry.turn());
            if key <= best && self.can_send(lent, transfer) {
                best = key;
                survey.next = Some(transfer);
            }
        }
        survey
    }

    /// Whether the message has a packet to send, and a credit for it.
    pub(super) fn can_send(&self, lent: &Lent<'_>, transfer: TransferIdx) -> bool {
        let next = self.at(transfer).next_to_send();
        next.is_some_and(|(_, again)| again || self.has_credit(lent, transfer))
    }

    /// Lets the next message of the session send, because another one has ended or has nothing left
    /// to send. If no message of this direction can send, a message of the other direction gets the
    /// credits. Otherwise, that message would first wait for an arrival of its own, for up to a
    /// round trip.
    pub(super) fn pass_turn(&mut self, lent: &mut Lent<'_>, session: SessionIdx, way: Way) {
        let next = |way| self.survey(lent, session, way).next;
        if let Some(next) = next(way).or_else(|| next(way.other())) {
            self.send_later(lent, next);
        }
    }

    /// Takes a place for a packet of the message, and makes the message wait for it. False if the
    /// packet may leave now.
    pub(super) fn wait_for_place(
        &mut self,
        lent: &mut Lent<'_>,
        transfer: TransferIdx,
        packet: u32,
        bytes: u32,
    ) -> bool {
        let (session, way) = self.stream_of(lent, transfer);
        let line = lent.sessions.at_mut(session);
        let Some(at) = lent.pacer.take_place(line, way, bytes, lent.context) else {
            return false;
        };
        let message = self.at_mut(transfer);
        message.begin_place(at);
        let idx = message.call();
        let entry = Paced {
            session: line.handle(),
            req: lent.calls.req_of(idx),
            packet,
            at,
        };
        lent.pacer.wait(entry, lent.context);
        true
    }

    /// Bytes on the wire for a packet of the message: the packet itself, or the response packet
    /// that an RFR asks for.
    pub(super) fn bytes_of(&self, lent: &Lent<'_>, idx: CallIdx, packet: u32) -> u32 {
        let line = lent.sessions.at(lent.calls.session_of(idx));
        let data_size = line.terms().data_size;
        let size = lent.calls.bytes_under_way(idx);
        let rest = size.saturating_sub(packet.saturating_mul(data_size));
        rest.min(data_size) + HEADER_BYTES
    }

    /// The direction of the call's large message.
    pub(super) fn way_of(&self, lent: &Lent<'_>, idx: CallIdx) -> Way {
        match lent.calls.is_receiving(idx) {
            true => Way::Back,
            false => Way::Out,
        }
    }
}

/// The large messages of a session in one direction.
#[derive(Default)]
struct Survey {
    /// The packets of these messages that have left, have not arrived, and do not count as lost.
    in_flight: u32,
    /// The message whose turn it is, among those that can send.
    next: Option<TransferIdx>,
}
