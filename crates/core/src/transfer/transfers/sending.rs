//! Messages of more than one packet, at the client side. This file sends the packets of large
//! requests and asks for those of large responses (rules S7, S8, S13; eRPC §5).
//!
//! Requests and responses alike are a [`Transfer`](crate::transfer::scoreboard::Transfer): CRs
//! acknowledge the packets of a request; the packets of a response acknowledge themselves by
//! arriving. Called by `protocol/client.rs` for calls that do not fit into a packet, by
//! `transfers/turns.rs` when a message may send, and by `transfers/silence.rs` when time has
//! passed. No user code runs here.

use dunlin_wire::{Bitmap, Flags, Header, PacketType};

use crate::client::calls::parts::{Asked, Run};
use crate::congestion::{Sample, Way};
use crate::context::Context;
use crate::context::moment::Moment;
use crate::handle::{CallIdx, FlowIdx, SessionIdx, TransferIdx};
#[cfg(feature = "mutants")]
use crate::mutant::Mutant;
use crate::observe::counters::DropReason;
use crate::session::line::Line;
use crate::session::rtt::away_limit;
use crate::time::Nanos;
use crate::transfer::scoreboard::{Answered, packets_of};
use crate::transfer::transfers::{Lent, Transfers};

/// The maximum number of credits that large messages leave for small ones.
const MOST_RESERVED: u32 = 8;

/// The free credits of the session that its large messages may take. The others are for small
/// requests.
fn free_credits(lent: &Lent<'_>, session: SessionIdx) -> u32 {
    let line = lent.sessions.at(session);
    let most = lent.context.limits.rx_queue / 4 * 3;
    let (credits, limit) = (line.credits(), line.terms().credits);
    let reserved = (limit / 8).min(MOST_RESERVED);
    let room = most.saturating_sub(limit - credits);
    credits.saturating_sub(reserved).min(room)
}

impl Transfers {
    /// Begins to send a request that does not fit into a packet. The call already has a slot and a
    /// credit.
    #[cold]
    pub(crate) fn start(
        &mut self,
        lent: &mut Lent<'_>,
        session: SessionIdx,
        idx: CallIdx,
        size: u32,
    ) {
        let packets = packets_of(size, lent.sessions.at(session).terms().data_size);
        let transfer = self.insert(session, idx, packets);
        lent.calls.begin_sending(idx, transfer);
        #[cfg(feature = "mutants")]
        if lent.context.shows(Mutant::AwaitedAmidTransfer) {
            lent.calls.spoil_slot(idx, true);
        }
        #[cfg(feature = "mutants")]
        if lent.context.shows(Mutant::TransferLeaked) {
            self.leak();
        }
        lent.context.stats.on_large_sent();
        self.send_later(lent, transfer);
    }

    /// Sends up to `most` packets of the message, or asks for them; returns their number.
    pub(super) fn send_some(
        &mut self,
        lent: &mut Lent<'_>,
        transfer: TransferIdx,
        most: u32,
    ) -> u32 {
        if lent.calls.is_sending(self.at(transfer).call()) {
            return self.send_packets(lent, transfer, most);
        }
        let mut asked = Asked::default();
        let mut sent = 0;
        while sent < most {
            let Some((packet, again)) = self.at(transfer).next_to_send() else {
                break;
            };
            if !again && !self.has_credit(lent, transfer) {
                break;
            }
            if !again {
                self.take_credits(lent, transfer, 1);
            }
            self.at_mut(transfer)
                .on_sent(packet, lent.context.moment.now());
            self.ask_for(lent, transfer, &mut asked, packet, again);
            sent += 1;
        }
        self.ask(lent, transfer, &mut asked);
        sent
    }

    /// Sends up to `most` packets of the request: first lost ones, then as many others as have
    /// credits.
    fn send_packets(&mut self, lent: &mut Lent<'_>, transfer: TransferIdx, most: u32) -> u32 {
        let now = lent.context.moment.now();
        let mut sent = 0;
        while sent < most
            && let Some((packet, true)) = self.at(transfer).next_to_send()
        {
            self.at_mut(transfer).on_sent(packet, now);
            self.send_run(lent, transfer, &Run::again(packet));
            sent += 1;
        }
        let unsent = self.at(transfer).unsent().min(most - sent);
        let count = self.credits_for(lent, transfer).min(unsent);
        if count != 0 {
            self.take_credits(lent, transfer, count);
            let first = self.at_mut(transfer).on_run_sent(count, now);
            // Without congestion control, each CR lets a packet leave as soon as possible.
            let session = lent.calls.session_of(self.at(transfer).call());
            let controlled = lent.sessions.at(session).flow() != FlowIdx::NONE;
            let run = Run::new(first..first + count, controlled, sent);
            self.send_run(lent, transfer, &run);
        }
        sent + count
    }

    /// Notes that `sent` packets of the message have left in its turn.
    pub(super) fn after_turn(&mut self, lent: &mut Lent<'_>, transfer: TransferIdx, sent: u32) {
        // After a probe, packets that leave do not change the time of the next probe: a packet that
        // was sent again may still be on its way.
        if sent != 0 && !self.at(transfer).asks() {
            let due = lent.context.moment.now() + self.probe_after(lent, transfer);
            self.expect(lent, transfer, due);
        }
    }

    /// Whether there is a credit for a packet that was not sent before.
    pub(super) fn has_credit(&self, lent: &Lent<'_>, transfer: TransferIdx) -> bool {
        self.credits_for(lent, transfer) != 0
    }

    /// The credits for packets that were not sent before: the call's own one, and the free ones of
    /// the session.
    fn credits_for(&self, lent: &Lent<'_>, transfer: TransferIdx) -> u32 {
        let entry = self.at(transfer);
        let own = u32::from(entry.outstanding() == 0);
        own + free_credits(lent, lent.calls.session_of(entry.call()))
    }

    /// Whether the session has a free credit that its large messages may take.
    pub(super) fn has_free_credit(&self, lent: &Lent<'_>, session: SessionIdx) -> bool {
        free_credits(lent, session) != 0
    }

    /// Takes the first `count` credits of [`Self::credits_for`].
    fn take_credits(&mut self, lent: &mut Lent<'_>, transfer: TransferIdx, count: u32) {
        let entry = self.at(transfer);
        let own = u32::from(entry.outstanding() == 0);
        let session = lent.calls.session_of(entry.call());
        lent.sessions.at_mut(session).take_credits(count - own);
    }

    /// Sends packets of a request.
    fn send_run(&mut self, lent: &mut Lent<'_>, transfer: TransferIdx, run: &Run) {
        let idx = self.at(transfer).call();
        let line = lent.sessions.at(lent.calls.session_of(idx));
        lent.calls.send_parts(idx, run, line, lent.context);
    }

    /// Adds a packet of a response to the next RFR.
    fn ask_for(
        &mut self,
        lent: &mut Lent<'_>,
        transfer: TransferIdx,
        asked: &mut Asked,
        packet: u32,
        again: bool,
    ) {
        let follows = packet == asked.first + asked.count && again == asked.again;
        if asked.count != 0 && !follows {
            self.ask(lent, transfer, asked);
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
    fn ask(&mut self, lent: &mut Lent<'_>, transfer: TransferIdx, asked: &mut Asked) {
        let asked = std::mem::take(asked);
        if asked.count == 0 {
            return;
        }
        let entry = self.at(transfer);
        let line = lent.sessions.at(lent.calls.session_of(entry.call()));
        lent.calls
            .ask_for_parts(entry.call(), asked, entry.base(), line, lent.context);
    }

    /// Handles a CR for a request that is being sent: some packets have arrived (rules S7, W7).
    #[cold]
    pub(crate) fn on_arrivals(
        &mut self,
        lent: &mut Lent<'_>,
        session: SessionIdx,
        idx: CallIdx,
        header: &Header,
        bits: Bitmap,
    ) {
        let Some(transfer) = lent.calls.transfer_of(idx) else {
            return;
        };
        let entry = self.at(transfer);
        let (base, next) = (entry.base(), entry.next());
        let cumulative = header.cumulative().0;
        let last = bits.last();
        let from_the_future = last.is_some_and(|offset| cumulative + offset >= next);
        let from_the_future = cumulative > next || from_the_future || header.pkt.0 >= next;
        #[cfg(feature = "mutants")]
        let from_the_future = from_the_future && !lent.context.shows(Mutant::FutureCreditAccepted);
        if from_the_future {
            lent.context.stats.on_drop(DropReason::PacketNumber);
            return;
        }
        if header.flags.has(Flags::RETRANSMISSION) {
            // A packet came twice.
            let now = lent.context.moment.now();
            self.at_mut(transfer).on_late(now);
        }
        let run = self.on_run(lent, session, transfer, header);
        let (mut packets, mut rtt) = run.map_or((0, None), |run| (cumulative - base, run.rtt));
        let first = if run.is_some() { cumulative } else { base };
        let mut arrived = |arrival: Option<Acked>| {
            packets += u32::from(arrival.is_some());
            rtt = rtt.or(arrival.and_then(|arrival| arrival.rtt));
        };
        for packet in first..cumulative {
            arrived(self.on_arrival(lent, session, transfer, packet, header));
        }
        #[cfg(feature = "mutants")]
        let cumulative = cumulative + u32::from(lent.context.shows(Mutant::BitmapOffByOne));
        for offset in bits.offsets() {
            arrived(self.on_arrival(lent, session, transfer, cumulative + offset, header));
        }
        let line = lent.sessions.at_mut(session);
        if packets != 0 && has_waited(header, &lent.context.moment) {
            lent.pacer.learn_wait(line, Way::Out, packets, lent.context);
        }
        let answer = Sample {
            rtt,
            congestion: header.flags.has(Flags::ECN_ECHO),
            packets,
            now: lent.context.moment.now(),
        };
        lent.pacer.learn(line, Way::Out, answer, lent.context);
        self.after_arrivals(lent, session, transfer);
        if self.at(transfer).is_complete() {
            self.end(lent, session, idx);
            lent.calls.on_all_arrived(idx, lent.context);
        }
    }

    /// Notes that all packets that the CR reports in order have arrived, as [`Self::on_arrival`]
    /// would note each. `None` if there are none, or if the caller must note each.
    fn on_run(
        &mut self,
        lent: &mut Lent<'_>,
        session: SessionIdx,
        transfer: TransferIdx,
        header: &Header,
    ) -> Option<Acked> {
        let entry = self.at_mut(transfer);
        let (base, held) = (entry.base(), entry.held());
        let line = lent.sessions.at_mut(session);
        let now = lent.context.moment.burst_time();
        if line.is_reordered() {
            entry.let_tail_overtake();
        }
        let last = entry.on_run_acked(header.cumulative().0, now)?;
        line.return_credits(held - entry.held());
        let (trigger, next) = (header.pkt.0, entry.base());
        let sent = (base..next)
            .contains(&trigger)
            .then(|| entry.sent_at(trigger));
        self.on_answer(session, last, now);
        let rtt = sent.and_then(|sent| round_trip(header, now.since(sent), line, lent.context));
        Some(Acked { rtt })
    }

    /// Notes that one packet has arrived: frees its credit, and may take a round-trip sample.
    /// `None` if that was already known.
    pub(super) fn on_arrival(
        &mut self,
        lent: &mut Lent<'_>,
        session: SessionIdx,
        transfer: TransferIdx,
        packet: u32,
        header: &Header,
    ) -> Option<Acked> {
        let way = self.way_of(lent, self.at(transfer).call());
        let entry = self.at_mut(transfer);
        let held = entry.held();
        let line = lent.sessions.at_mut(session);
        let least = line.rtt().minimum().unwrap_or(Nanos::ZERO);
        let now = lent.context.moment.burst_time();
        if line.is_reordered() {
            entry.let_tail_overtake();
        }
        let Answered { sent, once, late } = entry.on_acked(packet, now, least)?;
        let free = held - entry.held();
        line.return_credits(free);
        let mut arrival = Acked { rtt: None };
        if let Some(probe) = entry.take_probe(packet) {
            // The copy that has arrived took at most this time. If that is more than the estimate,
            // this probe may have come too early, and later probes would too.
            line.on_round_trip_within(now.since(probe.first_sent()));
            let answers_last = !late && probe.is_last(sent);
            if answers_last && was_lost(header, packet, now.since(sent)) {
                lent.pacer.learn_lost_tail(line, way, lent.context);
            }
        }
        let asked = match way {
            // No RFR has asked for the first packet of a response, so its answer says nothing about
            // packets that left before it came.
            Way::Back if packet == 0 => Nanos::ZERO,
            _ => sent,
        };
        self.on_answer(session, asked, now);
        if once && packet == header.pkt.0 {
            arrival.rtt = round_trip(header, now.since(sent), line, lent.context);
        }
        Some(arrival)
    }

    /// Handles the first answer to a request whose last packets were not known to have arrived: if
    /// one of them was a probe, its earlier copies were lost. `header` is the answer's header.
    pub(crate) fn on_answer_amid(
        &mut self,
        lent: &mut Lent<'_>,
        session: SessionIdx,
        idx: CallIdx,
        header: &Header,
    ) {
        let Some(transfer) = lent.calls.transfer_of(idx) else {
            return;
        };
        let now = lent.context.moment.burst_time();
        let least = lent.sessions.at(session).rtt().minimum();
        let entry = self.at_mut(transfer);
        let Some(tail) = entry.tail() else {
            return;
        };
        let sent = entry.sent_at(tail);
        let probe = entry.take_probe(tail).filter(|probe| probe.is_last(sent));
        let is_early = now.since(sent) < least.unwrap_or(Nanos::ZERO);
        // A retransmitted answer shows that the server already had the packet.
        if probe.is_some() && !is_early && !header.flags.has(Flags::RETRANSMISSION) {
            let line = lent.sessions.at_mut(session);
            lent.pacer.learn_lost_tail(line, Way::Out, lent.context);
        }
    }

    /// Looks for losses, and sends the packets that can leave now.
    pub(super) fn after_arrivals(
        &mut self,
        lent: &mut Lent<'_>,
        session: SessionIdx,
        transfer: TransferIdx,
    ) {
        let late = self.look_for_losses(lent, transfer);
        let due = lent.context.moment.now() + self.probe_after(lent, transfer);
        self.expect(lent, transfer, due.min(late));
        self.send_later(lent, transfer);
        let line = lent.sessions.at_mut(session);
        lent.context.wake(session, line);
    }

    /// Ends the transfer of the call. The call keeps one credit.
    #[inline(never)]
    pub(crate) fn end(&mut self, lent: &mut Lent<'_>, session: SessionIdx, idx: CallIdx) {
        let way = self.way_of(lent, idx);
        if let Some(transfer) = lent.calls.end_transfer(idx) {
            #[cfg(feature = "mutants")]
            if lent.context.shows(Mutant::AwaitedLost) {
                lent.calls.spoil_slot(idx, false);
            }
            let held = self.at(transfer).held();
            self.remove(session, transfer);
            lent.sessions.at_mut(session).return_credits(held - 1);
            self.pass_turn(lent, session, way);
        }
    }

    /// Sends the packet again, or asks for it again.
    pub(super) fn send_again(&mut self, lent: &mut Lent<'_>, transfer: TransferIdx, packet: u32) {
        match lent.calls.is_sending(self.at(transfer).call()) {
            true => self.send_run(lent, transfer, &Run::again(packet)),
            false => {
                let mut asked = Asked {
                    first: packet,
                    count: 1,
                    again: true,
                };
                self.ask(lent, transfer, &mut asked);
            }
        }
    }
}

/// Takes the round trip of a packet that was answered after `took`, if it can be trusted (rule
/// S10).
fn round_trip(
    header: &Header,
    took: Nanos,
    line: &mut Line,
    context: &mut Context,
) -> Option<Nanos> {
    context.look_for_backlog();
    let Some(residence) = header.residence().to_nanos() else {
        if header.kind == PacketType::Cr {
            // The packet has waited for the server side, or has stayed there for very long.
            line.on_wait(took);
        }
        return None;
    };
    let rtt = took.since(Nanos(residence));
    if context.moment.waited() > away_limit(rtt) {
        context.stats.on_rtt_away();
        return None;
    }
    line.on_round_trip(rtt);
    context.stats.on_rtt_of_part(rtt);
    Some(rtt)
}

/// Whether a CR gives no round trip because the thread of either side did not run.
fn has_waited(header: &Header, moment: &Moment) -> bool {
    header.residence().to_nanos().is_none() || moment.has_waited(moment.burst_time())
}

/// Whether the answer to a probe with this packet shows that its earlier copies were lost. `took`:
/// how long ago the probe left.
fn was_lost(header: &Header, packet: u32, took: Nanos) -> bool {
    let again = header.flags.has(Flags::RETRANSMISSION);
    match header.kind {
        // The CR answers this packet, and the packet is new to the server.
        PacketType::Cr => header.pkt.0 == packet && !again,
        // The packet answers an RFR that asks again, and the server was not keeping it for an
        // earlier RFR.
        _ => {
            let stay = header.residence().to_nanos();
            again && stay.is_some_and(|stay| stay <= took.0)
        }
    }
}

/// The acknowledgement of a packet that was not known to have arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct Acked {
    /// Its round trip, if it can be trusted (rule S10).
    pub(super) rtt: Option<Nanos>,
}
