//! Messages of more than one packet, at the client side: sends the packets of large requests and
//! asks for those of large responses (rules S7, S8, S13; eRPC §5).
//!
//! Both are a [`Transfer`](crate::transfer::scoreboard::Transfer): what CRs acknowledge of a
//! request, and what arrives of a response. Called by `client/calls.rs` for calls that do not fit
//! into a packet, by the loop for its queue (`attend`), and by `endpoint/scan.rs` when time has
//! passed. Nothing here calls user code.

use dunlin_msgbuf::BufRef;
use dunlin_wire::{Bitmap, Flags, Header, PacketType, PktNum, Token};

use crate::client::call::{CallIdx, CallState};
use crate::endpoint::proto::Proto;
use crate::error::CloseReason;
#[cfg(feature = "mutants")]
use crate::mutant::Mutant;
use crate::observe::counters::DropReason;
use crate::session::rtt::away_limit;
use crate::time::Nanos;

/// Packets that one message may send, or ask for by one RFR, before another one of the endpoint has
/// its turn, so that neither fills a queue on its own.
pub(crate) const TURN: u32 = 16;
/// Most credits that large messages leave to small ones.
const MOST_RESERVED: u32 = 8;
/// Shortest time after which the tail is probed.
const SHORTEST_PROBE: Nanos = Nanos::from_micros(20);
/// Shortest time after which it is probed while no round trip is known. To it comes up to a
/// millisecond that each session has of its own: senders that have begun together, and lost
/// together what a switch had no room for, would lose it once more.
const FIRST_PROBE: Nanos = Nanos::from_micros(250);
/// Probes of the tail before the timeout. One of them, or its answer, may be lost too.
const PROBES: u8 = 3;
/// How much later than others a packet may be, if nothing is known of the round trip.
const FIRST_WINDOW: Nanos = Nanos::from_micros(10);
/// Doublings of the timeout after which it stays as it is.
const MAX_BACKOFF: u8 = 6;

/// Credits that small requests of the session have for themselves.
fn reserved(limit: u32) -> u32 {
    (limit / 8).min(MOST_RESERVED)
}

/// Packets of a message.
pub(crate) fn packets_of(size: u32, data_size: u32) -> u32 {
    size.div_ceil(data_size).max(1)
}

impl Proto {
    /// Begins to send a request that does not fit into a packet. It has its slot and a credit.
    #[cold]
    pub(crate) fn start_large(&mut self, session: u32, idx: CallIdx, size: u32) {
        let packets = packets_of(size, self.sessions.at(session).terms().data_size);
        let transfer = self.transfers.insert(idx, packets);
        let call = self.calls.at_mut(idx);
        call.state = CallState::Sending;
        call.transfer = transfer;
        self.stats.on_large_sent();
        self.send_later(transfer);
    }

    /// Puts the message into the queue of those that may send.
    pub(crate) fn send_later(&mut self, transfer: u32) {
        if self.transfers.queue(transfer) {
            self.agenda.call_attention();
        }
    }

    /// Gives each message in the queue its turn.
    pub(crate) fn send_large(&mut self) {
        for _ in 0..self.transfers.queue_len() {
            if let Some(transfer) = self.transfers.next_turn()
                && self.take_turn(transfer)
            {
                self.send_later(transfer);
            }
        }
    }

    /// Sends up to [`TURN`] packets of the message. True if more could go at once.
    fn take_turn(&mut self, transfer: u32) -> bool {
        let session = self.calls.at(self.transfers.at(transfer).call).session;
        if self.sessions.at(session).is_paced() {
            return self.take_paced_turn(transfer, false);
        }
        let sent = self.send_some(transfer, TURN);
        self.after_turn(transfer, sent);
        sent == TURN
    }

    /// Sends up to `most` packets of the message, or asks for them; returns how many.
    pub(crate) fn send_some(&mut self, transfer: u32, most: u32) -> u32 {
        let mut asked = Asked::default();
        let mut sent = 0;
        while sent < most {
            let Some((packet, again)) = self.transfers.at(transfer).next_to_send() else {
                break;
            };
            if !again && !self.has_credit(transfer) {
                break;
            }
            if !again {
                self.take_credit(transfer);
            }
            self.transfers
                .at_mut(transfer)
                .on_sent(packet, self.moment.now());
            match self.calls.at(self.transfers.at(transfer).call).state {
                CallState::Sending => self.send_packet(transfer, packet, again),
                _ => self.ask_for(transfer, &mut asked, packet, again),
            }
            sent += 1;
        }
        self.ask(transfer, &mut asked);
        sent
    }

    /// So many packets of the message have left in its turn.
    pub(crate) fn after_turn(&mut self, transfer: u32, sent: u32) {
        // After a timeout its patience stands: what was sent again may still be on its way.
        let entry = self.transfers.at(transfer);
        if sent != 0 && entry.attempts == 0 && entry.probes == 0 {
            let due = self.moment.now() + self.probe_after(transfer);
            self.expect(transfer, due);
        }
    }

    /// A packet that was not sent before needs a credit, beside the one that the call has. Large
    /// messages never fill an RX queue, this side's or that of a peer that is taken to be like it.
    pub(crate) fn has_credit(&self, transfer: u32) -> bool {
        let entry = self.transfers.at(transfer);
        let line = self.sessions.at(self.calls.at(entry.call).session);
        let most = self.limits.rx_queue / 4 * 3;
        let (credits, limit) = (line.credits(), line.terms().credits);
        entry.outstanding() == 0 || (credits > reserved(limit) && limit - credits < most)
    }

    /// Takes the credit that [`Self::has_credit`] has seen.
    fn take_credit(&mut self, transfer: u32) {
        let entry = self.transfers.at(transfer);
        if entry.outstanding() != 0 {
            let session = self.calls.at(entry.call).session;
            self.sessions.at_mut(session).take_credit();
        }
    }

    /// A packet of a request.
    fn send_packet(&mut self, transfer: u32, packet: u32, again: bool) {
        let entry = self.transfers.at(transfer);
        let call = self.calls.at_mut(entry.call);
        let line = self.sessions.at(call.session);
        let terms = line.terms();
        let Some(request) = call.request.as_ref() else {
            return;
        };
        let (start, size) = (packet as usize * terms.data_size as usize, request.len());
        let len = (size - start).min(terms.data_size as usize);
        #[cfg(feature = "mutants")]
        let len = match self.config.mutant {
            Some(Mutant::WrongLastPacket) if start + len == size => len % terms.data_size as usize,
            _ => len,
        };
        let Some(data) = request.lend_range(start, len) else {
            return;
        };
        let mut header = line.header(PacketType::Req, call.req);
        header.aux = call.req_type.0;
        header.size = u32::try_from(size).unwrap_or(u32::MAX);
        header.pkt = PktNum(packet);
        if again {
            header.flags = Flags::RETRANSMISSION;
            self.stats.on_retransmission(1);
        }
        #[cfg(feature = "mutants")]
        if again && self.config.mutant == Some(Mutant::LostNotResent) {
            return;
        }
        #[cfg(feature = "mutants")]
        if packet != 0 && self.config.mutant == Some(Mutant::ReusedWhileSent) {
            self.outbox.push(terms.peer, &header, data);
            return;
        }
        call.tx_end = self.outbox.push(terms.peer, &header, data);
    }

    /// Adds a packet of a response to what the next RFR asks for.
    fn ask_for(&mut self, transfer: u32, asked: &mut Asked, packet: u32, again: bool) {
        let follows = packet == asked.first + asked.count && again == asked.again;
        if asked.count != 0 && !follows {
            self.ask(transfer, asked);
        }
        if asked.count == 0 {
            *asked = Asked {
                first: packet,
                count: 0,
                again,
            };
        }
        asked.count += 1;
    }

    /// Sends the RFR (rule S13).
    fn ask(&mut self, transfer: u32, asked: &mut Asked) {
        let Asked {
            first,
            count,
            again,
        } = std::mem::take(asked);
        if count == 0 {
            return;
        }
        let entry = self.transfers.at(transfer);
        let call = self.calls.at(entry.call);
        let line = self.sessions.at(call.session);
        let mut header = line.header(PacketType::Rfr, call.req);
        header.aux = u16::try_from(count).unwrap_or(u16::MAX);
        header.pkt = PktNum(first);
        header.size = Header::arrivals(PktNum(entry.base()), 0);
        if again {
            header.flags = Flags::RETRANSMISSION;
            self.stats.on_retransmission(count);
        }
        let peer = line.terms().peer;
        self.outbox.push(peer, &header, BufRef::EMPTY);
    }

    /// CR for a request that is being sent: some of it has arrived (rules S7, W7).
    #[cold]
    pub(crate) fn on_arrivals(
        &mut self,
        session: u32,
        idx: CallIdx,
        header: &Header,
        bits: Bitmap,
    ) {
        let transfer = self.calls.at(idx).transfer;
        let entry = self.transfers.at(transfer);
        let (base, next) = (entry.base(), entry.next());
        let cumulative = header.cumulative().0;
        let reach = bits.offsets();
        let from_the_future = reach
            .clone()
            .rev()
            .find(|offset| bits.contains(*offset))
            .is_some_and(|offset| cumulative + offset >= next);
        let from_the_future = cumulative > next || from_the_future || header.pkt.0 >= next;
        #[cfg(feature = "mutants")]
        let from_the_future = from_the_future && !self.shows(Mutant::FutureCreditAccepted);
        if from_the_future {
            self.stats.on_drop(DropReason::PacketNumber);
            return;
        }
        if header.flags.has(Flags::RETRANSMISSION) {
            // A packet came twice.
            let now = self.moment.now();
            self.transfers.at_mut(transfer).on_late(now);
        }
        let mut packets = 0;
        let mut rtt = None;
        let mut arrived = |arrival: Option<Arrival>| {
            packets += u32::from(arrival.is_some());
            rtt = rtt.or(arrival.and_then(|arrival| arrival.rtt));
        };
        for packet in base..cumulative {
            arrived(self.on_arrival(session, transfer, packet, header));
        }
        #[cfg(feature = "mutants")]
        let cumulative = cumulative + u32::from(self.shows(Mutant::BitmapOffByOne));
        for offset in reach {
            if bits.contains(offset) {
                arrived(self.on_arrival(session, transfer, cumulative + offset, header));
            }
        }
        self.learn(session, rtt, packets, header.flags.has(Flags::ECN_ECHO));
        self.after_arrivals(session, transfer);
        if self.transfers.at(transfer).is_complete() {
            self.end_transfer(session, idx);
            let call = self.calls.at_mut(idx);
            call.state = CallState::Accepted;
            call.attempts = 0;
            call.sent = self.moment.now();
            self.agenda
                .on_call(self.moment.now(), self.config.scan_interval);
        }
    }

    /// One packet has arrived: its credit is free, and it may give a round-trip sample. `None` if
    /// this was known.
    pub(crate) fn on_arrival(
        &mut self,
        session: u32,
        transfer: u32,
        packet: u32,
        header: &Header,
    ) -> Option<Arrival> {
        let entry = self.transfers.at_mut(transfer);
        let held = entry.held();
        let line = self.sessions.at_mut(session);
        let least = line.rtt().minimum().unwrap_or(Nanos::ZERO);
        let sent = entry.on_acked(packet, self.moment.burst_time(), least)?;
        let free = held - entry.held();
        line.return_credits(free);
        let mut arrival = Arrival { rtt: None };
        if let Some(first) = entry.take_probed(packet) {
            // Whichever copy has arrived: it took no longer than this. If that is more than was
            // thought, the probe may have come too early, and with it every one to come.
            line.rtt_mut()
                .on_bound(self.moment.burst_time().since(first));
        }
        if let Some(sent) = sent
            && packet == header.pkt.0
            && let Some(residence) = header.residence().to_nanos()
        {
            let rtt = self.moment.burst_time().since(sent).since(Nanos(residence));
            if self.moment.away() <= away_limit(rtt) {
                line.rtt_mut().on_sample(rtt);
                self.stats.on_rtt_of_part(rtt);
                arrival.rtt = Some(rtt);
            } else {
                self.stats.on_rtt_away();
            }
        }
        Some(arrival)
    }

    /// Looks for losses, and for what can be sent now.
    pub(crate) fn after_arrivals(&mut self, session: u32, transfer: u32) {
        let late = self.look_for_losses(transfer);
        let due = self.moment.now() + self.probe_after(transfer);
        self.expect(transfer, due.min(late));
        self.send_later(transfer);
        self.wake(session);
    }

    fn look_for_losses(&mut self, transfer: u32) -> Nanos {
        let session = self.calls.at(self.transfers.at(transfer).call).session;
        let rtt = self.sessions.at(session).rtt();
        let window = rtt.minimum().map_or(FIRST_WINDOW, |rtt| Nanos(rtt.0 / 4));
        let entry = self.transfers.at_mut(transfer);
        let known = entry.lost();
        let late = entry.find_lost(self.moment.now(), window);
        if entry.lost() > known {
            self.learn_loss(session);
        }
        late
    }

    /// Something must be done for the message at `due`.
    fn expect(&mut self, transfer: u32, due: Nanos) {
        self.transfers.at_mut(transfer).due = due;
        self.agenda.on_transfer(due);
    }

    /// How long nothing may come before the tail is probed.
    fn probe_after(&self, transfer: u32) -> Nanos {
        let session = self.calls.at(self.transfers.at(transfer).call).session;
        let rtt = self.sessions.at(session).rtt();
        let timeout = rtt.timeout(self.config.rto_floor, self.config.rto_initial);
        if let Some(patience) = rtt.patience() {
            return patience.max(SHORTEST_PROBE).min(timeout);
        }
        // What a packet took that left twice says little: a probe that came too early would make
        // the next come as early, and no packet would ever leave once and be measured.
        let seen = self.transfers.at(transfer).round_trip();
        let (_, Token(token)) = self.sessions.at(session).remote();
        let own = u64::from(token.wrapping_mul(0x9E37_79B9) >> 12);
        let patience = seen.map_or(Nanos::ZERO, |seen| seen.times(2));
        patience.max(FIRST_PROBE + Nanos(own)).min(timeout)
    }

    /// Forgets what the call was sending or receiving. It keeps one credit.
    #[inline(never)]
    pub(crate) fn end_transfer(&mut self, session: u32, idx: CallIdx) {
        let call = self.calls.at_mut(idx);
        if !call.state.has_transfer() {
            return;
        }
        call.state = CallState::Sent;
        let transfer = call.transfer;
        let held = self.transfers.at(transfer).held();
        self.transfers.remove(transfer);
        self.sessions.at_mut(session).return_credits(held - 1);
    }

    /// Does what is due for messages on their way.
    pub(crate) fn check_transfers(&mut self, blame: bool) {
        let mut next = Nanos::MAX;
        for index in 0..self.transfers.len() {
            let index = u32::try_from(index).unwrap_or(u32::MAX);
            let Some(entry) = self.transfers.get_live(index) else {
                continue;
            };
            if entry.due <= self.moment.now() && blame {
                self.on_silence(index);
            }
            if let Some(entry) = self.transfers.get_live(index) {
                next = next.min(entry.due);
            }
        }
        self.agenda.set_transfers(next);
    }

    /// Nothing has come for as long as could be expected.
    fn on_silence(&mut self, transfer: u32) {
        let idx = self.transfers.at(transfer).call;
        let session = self.calls.at(idx).session;
        let late = self.look_for_losses(transfer);
        let rtt = self.sessions.at(session).rtt();
        let timeout = rtt.timeout(self.config.rto_floor, self.config.rto_initial);
        let probe = self.probe_after(transfer);
        let entry = self.transfers.at_mut(transfer);
        if entry.outstanding() == 0 {
            // Nothing is in flight: what comes next waits for its time or for a credit.
            return self.expect(transfer, Nanos::MAX);
        }
        if entry.has_lost() || late != Nanos::MAX {
            self.expect(transfer, late.min(self.moment.now() + timeout));
            return self.send_later(transfer);
        }
        if entry.probes < PROBES
            && let Some(tail) = entry.tail()
        {
            entry.on_probe(tail);
            entry.on_sent(tail, self.moment.now());
            let patience = match entry.probes {
                PROBES => timeout,
                probes => probe.times(1 << probes).min(timeout),
            };
            self.expect(transfer, self.moment.now() + patience);
            return self.send_again(transfer, tail);
        }
        entry.attempts = entry.attempts.saturating_add(1);
        entry.lose_all();
        let attempts = entry.attempts;
        self.calls.at_mut(idx).attempts = attempts;
        self.expect_word(session);
        if self.is_silent(idx) {
            let session = self.sessions.handle(session);
            self.close(session, CloseReason::PeerFailed, true);
            return;
        }
        self.learn_timeout(session);
        let grown = timeout.times(1 << attempts.min(MAX_BACKOFF));
        let patience = grown.min(self.config.longest_backoff().max(timeout));
        self.expect(transfer, self.moment.now() + patience);
        self.send_later(transfer);
    }

    fn send_again(&mut self, transfer: u32, packet: u32) {
        match self.calls.at(self.transfers.at(transfer).call).state {
            CallState::Sending => self.send_packet(transfer, packet, true),
            _ => {
                let mut asked = Asked {
                    first: packet,
                    count: 1,
                    again: true,
                };
                self.ask(transfer, &mut asked);
            }
        }
    }

    /// Credits that the call holds, for whoever checks that none is lost.
    pub(crate) fn credits_held(&self, idx: CallIdx) -> u32 {
        let call = self.calls.at(idx);
        match call.state.has_transfer() {
            true => self.transfers.at(call.transfer).held(),
            false => 1,
        }
    }
}

/// A packet that was not known to have arrived.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    /// Its round trip, if it can be trusted (rule S10).
    pub(crate) rtt: Option<Nanos>,
}

/// Packets of a response in a row that one RFR asks for.
#[derive(Clone, Copy, Default, Debug)]
struct Asked {
    first: u32,
    count: u32,
    again: bool,
}
