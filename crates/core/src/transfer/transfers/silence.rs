//! Silence: what is done for messages on their way when nothing comes (rule S8).
//!
//! A packet is lost if one of its message that left later has arrived, which the scoreboard tells.
//! Of the last packets it cannot; these are asked after, when the whole session has been silent
//! for long enough, or has had answers to what left later. Called by `transfers/sending.rs` when
//! something has come, and by `protocol/timeouts.rs` when time has passed.

use dunlin_wire::Token;

use crate::handle::{SessionIdx, TransferIdx};
use crate::time::Nanos;
use crate::transfer::transfers::{Lent, Transfers};

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

impl Transfers {
    /// Finds packets of the message that are lost because later ones have arrived. Returns when
    /// more of them will be.
    pub(super) fn look_for_losses(&mut self, lent: &mut Lent<'_>, transfer: TransferIdx) -> Nanos {
        let session = lent.calls.session_of(self.at(transfer).call);
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

    /// Something must be done for the message at `due`.
    pub(super) fn expect(&mut self, lent: &mut Lent<'_>, transfer: TransferIdx, due: Nanos) {
        self.at_mut(transfer).due = due;
        lent.context.agenda.on_transfer(due);
    }

    /// How long nothing may come before the tail is probed.
    pub(super) fn probe_after(&self, lent: &Lent<'_>, transfer: TransferIdx) -> Nanos {
        let session = lent.calls.session_of(self.at(transfer).call);
        let line = lent.sessions.at(session);
        let timeout = self.timeout(lent, session);
        if line.is_near() {
            // Nothing gets lost on the way, and the peer may wait for a processor.
            return timeout;
        }
        if let Some(patience) = line.rtt().patience() {
            return patience.max(SHORTEST_PROBE).min(timeout);
        }
        // The time of a packet that left twice proves little: a probe that came too early would
        // make the next come as early, and no packet would ever leave once and be measured.
        let seen = self.at(transfer).round_trip();
        let (_, Token(token)) = line.remote();
        let own = u64::from(token.wrapping_mul(0x9E37_79B9) >> 12);
        let patience = seen.map_or(Nanos::ZERO, |seen| seen.times(2));
        patience.max(FIRST_PROBE + Nanos(own)).min(timeout)
    }

    /// Does what is due for an entry of the table.
    pub(crate) fn check(&mut self, lent: &mut Lent<'_>, index: TransferIdx) {
        if self.due_of(index) <= lent.context.moment.now() {
            self.on_silence(lent, index);
        }
    }

    /// Nothing has come for as long as could be expected.
    fn on_silence(&mut self, lent: &mut Lent<'_>, transfer: TransferIdx) {
        let session = lent.calls.session_of(self.at(transfer).call);
        let late = self.look_for_losses(lent, transfer);
        let now = lent.context.moment.now();
        let entry = self.at(transfer);
        let Some(tail) = entry.tail() else {
            // Nothing is in flight: what comes next waits for its time or for a credit.
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

    /// Asks after the message by its last packet: the answer tells which others are lost.
    fn probe_tail(&mut self, lent: &mut Lent<'_>, transfer: TransferIdx, tail: u32) {
        let now = lent.context.moment.now();
        let (session, way) = self.stream_of(lent, transfer);
        let probes = self.on_probe(session, transfer, tail, now);
        if probes > PROBES {
            let line = lent.sessions.at_mut(session);
            line.on_asked(lent.context.moment.present_now());
            lent.pacer.learn_timeout(line, way, lent.context);
        }
        self.expect(
            lent,
            transfer,
            now + self.patience_after(lent, transfer, probes),
        );
        self.send_again(lent, transfer, tail);
    }

    /// How long nothing may come after `probes` probes in a row.
    fn patience_after(&self, lent: &Lent<'_>, transfer: TransferIdx, probes: u8) -> Nanos {
        let timeout = self.timeout(lent, lent.calls.session_of(self.at(transfer).call));
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

    /// Time without an answer after which something counts as lost for want of a better sign.
    fn timeout(&self, lent: &Lent<'_>, session: SessionIdx) -> Nanos {
        let config = &lent.context.config;
        let line = lent.sessions.at(session);
        let floor = config.least_timeout(line.is_near());
        line.rtt().timeout(floor, config.rto_initial)
    }
}
