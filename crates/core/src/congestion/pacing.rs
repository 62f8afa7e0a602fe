//! Pacing: holds the packets of sessions below line rate to their time (design §7, eRPC §5.2, rule
//! S15).
//!
//! REQ packets and RFRs are paced one by one; an RFR takes the time of the bytes that it asks for.
//! A packet takes the next place of its session's rate when it could otherwise leave, and waits for
//! it in the timing wheel. What comes up there is checked (rule S8): the session, the request and
//! its state must still be what they were. A message has one packet in the wheel at a time, so its
//! credits are taken when packets leave, and nothing has to be taken out of the wheel when a call
//! ends. A scheme that has a window instead of a rate holds each large message to it.
//!
//! Called by `client/calls.rs` and `transfer/client.rs` for sessions whose `paced` is set, and by
//! `endpoint/scan.rs` when something in the wheel is due.

use dunlin_msgbuf::MsgBuf;
use dunlin_wire::{Flags, HEADER_LEN};

use crate::client::call::{CallIdx, CallState};
use crate::congestion::flow::Flow;
use crate::congestion::wheel::Entry;
use crate::congestion::{Bypasses, BytesPerSec, CongestionControl, Link, Sample, Scheme};
use crate::endpoint::proto::Proto;
use crate::session::table::NONE;
use crate::time::Nanos;
use crate::transfer::client::TURN;
use crate::transport::Path;

/// Packets that one RFR of a paced session may ask for (design §7).
const MOST_ASKED_PACED: u32 = 4;

/// Bytes of a header.
#[expect(clippy::cast_possible_truncation, reason = "it is 24")]
const HEADER_BYTES: u32 = HEADER_LEN as u32;

impl Proto {
    /// The peer of a session is known: it gets the scheme that was chosen for it, or that of its
    /// transport.
    pub(crate) fn begin_control(&mut self, session: u32, path: &Path) {
        let line = self.sessions.at(session);
        if line.flow() != NONE {
            // The user was faster.
            return;
        }
        let scheme = line.scheme().unwrap_or(path.scheme);
        self.set_scheme(session, scheme, path);
    }

    /// Gives the session a scheme that starts from nothing.
    pub(crate) fn set_scheme(&mut self, session: u32, scheme: Scheme, path: &Path) {
        self.end_control(session);
        let line = self.sessions.at_mut(session);
        line.set_scheme(Some(scheme));
        if line.is_connecting() {
            // Until the peer is known.
            return;
        }
        let link = self.link_of(session, path);
        if let Some(flow) = Flow::new(scheme, &link, self.config.bypasses) {
            self.set_flow(session, flow);
        }
    }

    /// Gives the session a scheme of the user's own.
    pub(crate) fn set_own_scheme(
        &mut self,
        session: u32,
        scheme: Box<dyn CongestionControl>,
        path: &Path,
    ) {
        self.end_control(session);
        let link = self.link_of(session, path);
        self.set_flow(session, Flow::own(scheme, &link));
    }

    fn link_of(&mut self, session: u32, path: &Path) -> Link {
        let dither = self.rng.next_u32();
        let terms = self.sessions.at(session).terms();
        Link {
            line_rate: BytesPerSec(path.line_rate),
            base_rtt: path.base_rtt,
            packet: terms.data_size + HEADER_BYTES,
            credits: terms.credits,
            dither,
        }
    }

    fn set_flow(&mut self, session: u32, flow: Flow) {
        let flow = self.pacer.begin(flow);
        self.sessions.at_mut(session).set_flow(flow);
        self.on_rate(session);
    }

    /// Forgets the session's flow. What waits in the wheel leaves at its time all the same.
    pub(crate) fn end_control(&mut self, session: u32) {
        let line = self.sessions.at_mut(session);
        line.set_paced(false);
        self.pacer.end(line.set_flow(NONE));
    }

    /// Which short cuts are taken from now on.
    pub(crate) fn set_bypasses(&mut self, bypasses: Bypasses) {
        self.config.bypasses = bypasses;
        self.pacer.set_bypasses(bypasses);
        for session in 0..self.sessions.len() {
            self.on_rate(session);
        }
    }

    /// The session's rate may have changed.
    fn on_rate(&mut self, session: u32) {
        let line = self.sessions.at_mut(session);
        if let Some(paced) = self.pacer.must_pace(line.flow(), line.terms().credits) {
            line.set_paced(paced);
            #[cfg(feature = "mutants")]
            if self.config.mutant == Some(crate::mutant::Mutant::PlainThoughPaced) {
                line.spoil_plain();
            }
        }
    }

    /// The rate that the session is held to.
    pub(crate) fn rate_of(&self, session: u32) -> Option<BytesPerSec> {
        self.pacer.rate(self.sessions.at(session).flow())
    }

    /// Tells the session's scheme of an answer.
    #[inline]
    pub(crate) fn learn(&mut self, session: u32, rtt: Option<Nanos>, packets: u32, marked: bool) {
        let flow = self.sessions.at(session).flow();
        if marked {
            self.stats.on_congestion_mark();
        }
        let sample = Sample {
            rtt,
            congestion: marked,
            packets,
            now: self.moment.now(),
        };
        if self.pacer.on_answer(flow, sample) {
            self.on_rate(session);
        }
    }

    /// An answer was marked on its own way: this side has asked for it at its rate (rule S15).
    #[cold]
    pub(crate) fn on_marked_answer(&mut self, session: u32) {
        self.learn(session, None, 0, true);
    }

    /// Tells it that packets were lost.
    pub(crate) fn learn_loss(&mut self, session: u32) {
        let flow = self.sessions.at(session).flow();
        if self.pacer.on_loss(flow, self.moment.now()) {
            self.on_rate(session);
        }
    }

    /// Tells it that nothing came for too long.
    pub(crate) fn learn_timeout(&mut self, session: u32) {
        let flow = self.sessions.at(session).flow();
        if self.pacer.on_timeout(flow, self.moment.now()) {
            self.on_rate(session);
        }
    }

    /// The next place for `bytes` bytes of the session. `None`: they may leave at once.
    fn take_place(&mut self, session: u32, bytes: u32) -> Option<Nanos> {
        let flow = self.sessions.at(session).flow();
        let at = self.pacer.reserve(flow, bytes, self.moment.now());
        self.on_rate(session);
        at
    }

    /// Puts a packet of the call into the wheel.
    fn wait_for(&mut self, session: u32, idx: CallIdx, packet: u32, at: Nanos) {
        let entry = Entry {
            session: self.sessions.handle(session),
            req: self.calls.at(idx).req,
            packet,
            at,
        };
        self.stats.on_paced();
        self.pacer.hold(entry, self.moment.now());
        self.agenda.at_latest(self.pacer.next_due());
    }

    /// Sends the request of a call that fits into a packet when its time has come: the first time,
    /// or again.
    #[cold]
    pub(crate) fn pace_request(&mut self, session: u32, idx: CallIdx, flags: Flags) {
        let len = self.calls.at(idx).request.as_ref().map_or(0, MsgBuf::len);
        let bytes = u32::try_from(len).unwrap_or(u32::MAX);
        match self.take_place(session, bytes.saturating_add(HEADER_BYTES)) {
            Some(at) => {
                // No timeout begins before that.
                self.calls.at_mut(idx).sent = at;
                self.wait_for(session, idx, 0, at);
            }
            None => self.send_request(session, idx, flags),
        }
    }

    /// Sends what waited in the wheel and is due.
    pub(crate) fn release_paced(&mut self) {
        while let Some(entry) = self.pacer.pop_due(self.moment.now()) {
            self.on_place(entry);
        }
    }

    /// A packet's time has come, if it is still to be sent (rule S8).
    fn on_place(&mut self, entry: Entry) {
        let Some(session) = self.sessions.find(entry.session) else {
            return;
        };
        let at = self.sessions.at(session).slot_at(entry.req);
        let Some(idx) = self.calls.in_slot(at, entry.req) else {
            return;
        };
        let call = self.calls.at(idx);
        match call.state {
            CallState::Sent if call.sent == entry.at => {
                let flags = match (call.attempts, call.sample) {
                    (0, true) => Flags::SAMPLE,
                    (0, false) => Flags::NONE,
                    _ => Flags::RETRANSMISSION,
                };
                self.send_request(session, idx, flags);
            }
            CallState::Sending | CallState::Receiving => {
                let transfer = call.transfer;
                let entry_of = self.transfers.at_mut(transfer);
                if entry_of.place == Some(entry.at) {
                    entry_of.place = None;
                    if self.take_paced_turn(transfer, true) {
                        self.send_later(transfer);
                    }
                }
            }
            _ => {}
        }
    }

    /// Sends packets of the message whose time has come, and takes a place for the next one.
    /// `placed`: the first has had its place. True if more could go at once.
    pub(crate) fn take_paced_turn(&mut self, transfer: u32, mut placed: bool) -> bool {
        let idx = self.transfers.at(transfer).call;
        let session = self.calls.at(idx).session;
        let flow = self.sessions.at(session).flow();
        if let Some(window) = self.pacer.window(flow) {
            return self.take_window_turn(transfer, window);
        }
        let mut sent = 0;
        while sent < TURN && self.transfers.at(transfer).place.is_none() {
            let Some((packet, again)) = self.transfers.at(transfer).next_to_send() else {
                break;
            };
            if !again && !self.has_credit(transfer) {
                break;
            }
            let bytes = self.bytes_of(idx, packet);
            if !placed && let Some(at) = self.take_place(session, bytes) {
                self.transfers.at_mut(transfer).place = Some(at);
                self.wait_for(session, idx, packet, at);
                break;
            }
            placed = false;
            let most = match self.calls.at(idx).state {
                CallState::Sending => 1,
                _ => MOST_ASKED_PACED,
            };
            let count = self.send_some(transfer, most);
            let more = bytes.saturating_mul(count.saturating_sub(1));
            self.pacer.charge(flow, more);
            sent += count;
        }
        self.after_turn(transfer, sent);
        sent >= TURN
    }

    /// Sends what the window allows of the message. True if more could go at once.
    fn take_window_turn(&mut self, transfer: u32, window: u32) -> bool {
        let entry = self.transfers.at(transfer);
        let in_flight = entry.outstanding() - entry.lost();
        // A lost packet may always go: what is in flight beside it may be lost as well.
        let room = window.saturating_sub(in_flight).max(entry.lost().min(1));
        let most = room.min(TURN);
        let sent = self.send_some(transfer, most);
        self.after_turn(transfer, sent);
        sent == TURN
    }

    /// What a packet of the message costs: its own bytes, or those that an RFR for it asks for.
    fn bytes_of(&self, idx: CallIdx, packet: u32) -> u32 {
        let call = self.calls.at(idx);
        let data_size = self.sessions.at(call.session).terms().data_size;
        let message = match call.state {
            CallState::Sending => &call.request,
            _ => &call.response,
        };
        let len = message.as_ref().map_or(0, MsgBuf::len);
        let size = u32::try_from(len).unwrap_or(u32::MAX);
        let rest = size.saturating_sub(packet.saturating_mul(data_size));
        rest.min(data_size) + HEADER_BYTES
    }
}
