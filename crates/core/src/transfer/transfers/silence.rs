//! Silence: the steps that the client takes when no answer comes for a message on its way (rule
//! S8).
//!
//! The scoreboard notices that a packet is lost when later packets of its message have arrived. No
//! packets follow the last ones of a message, so the client probes them: when the whole session has
//! been silent for long enough, or when packets that left later were answered. Called by
//! `transfers/sending.rs` when a packet has arrived, and by `protocol/client.rs` when time has
//! passed.

use dunlin_wire::Token;

use crate::handle::{SessionIdx, TransferIdx};
use crate::time::Nanos;
use crate::transfer::transfers::{Lent, Transfers};

/// Shortest time after which the tail is probed.
const SHORTEST_PROBE: Nanos = Nanos::from_micros(20);
/// Shortest time before the probe while no round trip is known. Each session adds a time of its
/// own, up to a millisecond. Otherwise, senders that begin together and overflow a switch would
/// also probe together, and overflow it again.
const FIRST_PROBE: Nanos = Nanos::from_micros(250);
/// Probes of the tail before the timeout. One of them, or its answer, may be lost too.
const PROBES: u8 = 3;
/// Time by which a packet may arrive later than others while no round trip is known.
const FIRST_WINDOW: Nanos = Nanos::from_micros(10);
/// The most doublings of the timeout.
const MAX_BACKOFF: u8 = 6;

impl Transfers {
    /// Finds lost packets of the message: packets that should have arrived before later ones.
    /// Returns when it may find more.
    pub(super) fn look_for_losses(&mut self, lent: &mut Lent<'_>, transfer: TransferIdx) -> Nanos {
        let session = lent.calls.session_of(self.at(transfer).call());
        let rtt = lent.sessions.at(session).rtt();
        let window = rtt.minimum().map_or(FIRST_WINDOW, |rtt| Nanos(rtt.0 / 4));
        let entry = self.at_mut(transfer);
        let known = entry.lost();
        let late = entry.find_lost(lent.context.moment.now(), window);
        if entry.lost() > known {
            let (session, way) = self.stream_of(lent, transfer);
            let line = lent.sessions.at_mut(session);
            lent.pacer.learn_loss(line, way, lent.context);
        }
        late
    }

    /// Notes that the client must act for the message at `due`.
    pub(super) fn expect(&mut self, lent: &mut Lent<'_>, transfer: TransferIdx, due: Nanos) {
        self.at_mut(transfer).expect(due);
        lent.context.agenda.on_transfer(due);
    }

    /// How long the client waits for any packet before it probes the tail.
    pub(super) fn probe_after(&self, lent: &Lent<'_>, transfer: TransferIdx) -> Nanos {
        let session = lent.calls.session_of(self.at(transfer).call());
        let line = lent.sessions.at(session);
        let timeout = self.timeout(lent, session);
        if line.is_near() {
            // Such a path loses no packet, but the peer may have to wait for a processor.
            return timeout;
        }
        if let Some(patience) = line.rtt().patience() {
            let kept = match lent.calls.is_sending(self.at(transfer).call()) {
                true => Nanos::ZERO,
                false => self.word(session).kept(),
            };
            return (patience.max(SHORTEST_PROBE) + kept).min(timeout);
        }
        // The round trip of a packet that left twice proves little. If it replaced the shortest
        // time, a probe that came too early would make the next one come just as early. Then every
        // packet would leave twice, and none would give a sample.
        let seen = self.at(transfer).round_trip();
        let (_, Token(token)) = line.remote();
        let own = u64::from(token.wrapping_mul(0x9E37_79B9) >> 12);
        let patience = seen.map_or(Nanos::ZERO, |seen| seen.times(2));
        patience.max(FIRST_PROBE + Nanos(own)).min(timeout)
    }

    /// Does the work for the entry, if it is due.
    pub(crate) fn check(&mut self, lent: &mut Lent<'_>, index: TransferIdx) {
        if self.due_of(index) <= lent.context.moment.now() {
            self.on_silence(lent, index);
        }
    }

    /// Acts because no packet has arrived within the expected time.
    fn on_silence(&mut self, lent: &mut Lent<'_>, transfer: TransferIdx) {
        let session = lent.calls.session_of(self.at(transfer).call());
        let late = self.look_for_losses(lent, transfer);
        let now = lent.context.moment.now();
        let entry = self.at(transfer);
        let Some(tail) = entry.tail() else {
            // Nothing is in flight: the next packet waits for its time in the wheel or for a
            // credit.
            return self.expect(lent, transfer, Nanos::MAX);
        };
        if entry.has_lost() || late != Nanos::MAX {
            self.expect(lent, transfer, late.min(now + self.timeout(lent, session)));
            return self.send_later(lent, transfer);
        }
        let word = self.word(session);
        let patience = self.patience_after(lent, transfer, word.asks());
        let excused = word.excuses(entry.sent_at(tail), patience);
        if let Some(until) = excused.filter(|until| *until > now) {
            return self.expect(lent, transfer, until);
        }
        self.probe_tail(lent, transfer, tail);
    }

    /// Probes the message with its last packet. The answer shows which others are lost.
    fn probe_tail(&mut self, lent: &mut Lent<'_>, transfer: TransferIdx, tail: u32) {
        let now = lent.context.moment.now();
        let (session, way) = self.stream_of(lent, transfer);
        let probes = self.on_probe(session, transfer, tail, now);
        if probes > PROBES {
            let line = lent.sessions.at_mut(session);
            line.on_asked(lent.context.moment.present_now());
            lent.pacer.learn_timeout(line, way, lent.context);
        }
        let flow = lent.sessions.at(session).flow();
        if probes == 1 && lent.pacer.is_below_one(flow, way) {
            // No later packet is in flight that could show the loss.
            let line = lent.sessions.at_mut(session);
            lent.pacer.learn_loss(line, way, lent.context);
        }
        self.expect(
            lent,
            transfer,
            now + self.patience_after(lent, transfer, probes),
        );
        self.send_again(lent, transfer, tail);
    }

    /// How long the client waits for any packet after `probes` probes in a row.
    fn patience_after(&self, lent: &Lent<'_>, transfer: TransferIdx, probes: u8) -> Nanos {
        let timeout = self.timeout(lent, lent.calls.session_of(self.at(transfer).call()));
        match probes.checked_sub(PROBES) {
            None => self
                .probe_after(lent, transfer)
                .times(1 << probes)
                .min(timeout),
            Some(timeouts) => {
                let grown = timeout.times(1 << timeouts.min(MAX_BACKOFF));
                grown.min(lent.context.config.longest_backoff().max(timeout))
            }
        }
    }

    /// Time after which an unanswered packet counts as lost without any other evidence.
    fn timeout(&self, lent: &Lent<'_>, session: SessionIdx) -> Nanos {
        let config = &lent.context.config;
        let line = lent.sessions.at(session);
        let floor = config.least_timeout(line.is_near());
        line.rtt().timeout(floor, config.rto_initial)
    }
}
