//! Calls that have waited too long for an answer: the client sends their requests again, until it
//! considers the peer failed (rules S5, S6, S8, S11).

use dunlin_msgbuf::BufRef;
use dunlin_wire::{Flags, PacketType};

use super::{CallMarks, CallState, Calls};
use crate::config::{ASKS_PER_HOLD, SCAN_LIMIT};
use crate::congestion::Way;
use crate::congestion::pacer::Pacer;
use crate::context::Context;
use crate::handle::CallIdx;
use crate::session::line::Line;
use crate::session::table::Sessions;
use crate::time::Nanos;

/// The most doublings of the timeout.
const MAX_BACKOFF: u8 = 6;
/// Attempts before the client asks the peer over the control plane.
const MIN_ATTEMPTS: u8 = 3;

/// Once a silent peer has answered one call, the other calls wait at least this many scan intervals
/// before they ask too.
const GRACE_INTERVALS: u64 = 4;

/// The step that is due for a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Overdue {
    /// No step is due before this time.
    Not(Nanos),
    /// Its deadline has passed.
    Deadline,
    /// Packets of a large message are on their way, and the endpoint must check their progress.
    /// Contains the call's deadline, which has not passed.
    InParts(Nanos),
    /// The peer has not answered the call's packets for the failure timeout: the client asks for an
    /// account over the control plane.
    Account,
    /// The client should ask for the answer with a packet.
    Answer,
}

impl Calls {
    /// Finds the step that is due for an entry of the table. `blame`: an unanswered packet counts
    /// as lost.
    pub(crate) fn find_due(
        &mut self,
        idx: CallIdx,
        blame: bool,
        sessions: &Sessions,
        context: &Context,
    ) -> Overdue {
        let (call, now) = (self.at(idx), context.moment.now());
        match call.state {
            CallState::Free => Overdue::Not(Nanos::MAX),
            state if state.is_pending() && call.deadline() <= now => Overdue::Deadline,
            CallState::Queued => Overdue::Not(call.deadline()),
            CallState::Sending | CallState::Receiving => Overdue::InParts(call.deadline()),
            _ if blame => {
                let session = call.session();
                self.find_answer_due(idx, sessions.at(session), context)
            }
            _ => Overdue::Not(now),
        }
    }

    fn find_answer_due(&mut self, idx: CallIdx, line: &Line, context: &Context) -> Overdue {
        let call = self.at(idx);
        let due = call.sent + patience(call.attempts, line, context);
        if due > context.moment.now() {
            Overdue::Not(due.min(call.deadline()))
        } else if call.attempts >= MIN_ATTEMPTS && self.is_overdue(idx, context) {
            Overdue::Account
        } else if self.excuse(idx, line, context) {
            Overdue::Not(context.moment.now())
        } else {
            Overdue::Answer
        }
    }

    /// Whether a due call need not ask yet. While a session is silent, one of its calls asks for
    /// all of them. Once the peer has answered that call, it gets some time to answer the others.
    ///
    /// In a session that is not silent, other calls may be asking and getting answers all the time.
    /// There a call is excused for the same time, but only once. Otherwise the peer could discard a
    /// lost response before the client asks for it.
    fn excuse(&mut self, idx: CallIdx, line: &Line, context: &Context) -> bool {
        let (config, now) = (&context.config, context.moment.present_now());
        let grace = config.scan_interval.times(GRACE_INTERVALS);
        let grace = grace.max(line.rtt().patience().unwrap_or_default());
        // Each scan covers only a part of a long table.
        let scans = u64::try_from(self.len().div_ceil(SCAN_LIMIT)).unwrap_or(u64::MAX);
        let between = config.scan_interval.times(scans);
        let call = self.at_mut(idx);
        if call.state != CallState::Sent || call.attempts != 0 {
            return false;
        }
        let late = now.since(call.first_sent + patience(0, line, context));
        if line.is_silent(now, late.since(grace)) {
            return true;
        }
        let answered = heard_since(call.sent, line, context);
        let is_answered = line.asks() || answered.is_some_and(|ago| ago < grace);
        let most = grace.0.div_ceil(between.0.max(1));
        if !is_answered || u64::from(call.excuses) >= most.min(u8::MAX.into()) {
            return false;
        }
        call.excuses += 1;
        true
    }

    /// Whether the call has had no answer for the failure timeout, counting only time in which this
    /// endpoint was running (rule S11). No large message of the call may be on its way.
    pub(crate) fn is_overdue(&self, idx: CallIdx, context: &Context) -> bool {
        let call = self.at(idx);
        let span = context.moment.present_now().since(call.first_sent);
        span >= context.config.failure_timeout
    }

    /// Asks the server again for the answer of a call that has waited too long.
    pub(crate) fn ask_again(
        &mut self,
        idx: CallIdx,
        line: &mut Line,
        pacer: &mut Pacer,
        context: &mut Context,
    ) {
        match self.at(idx).state {
            CallState::Sent => self.retransmit(idx, line, pacer, context),
            CallState::Accepted => self.probe(idx, line, context),
            _ => self.send_cancel(idx, line, context),
        }
    }

    /// Sends the request again after a timeout (rule S8).
    fn retransmit(
        &mut self,
        idx: CallIdx,
        line: &mut Line,
        pacer: &mut Pacer,
        context: &mut Context,
    ) {
        let call = self.at_mut(idx);
        call.attempts = call.attempts.saturating_add(1);
        call.marks.set(CallMarks::SAMPLE, false);
        context.stats.on_retransmission(1);
        if heard_since(call.sent, line, context).is_none() {
            line.on_asked(context.moment.present_now());
        }
        pacer.learn_timeout(line, Way::Out, context);
        let flags = Flags::RETRANSMISSION;
        #[cfg(feature = "mutants")]
        let flags = match context.shows(crate::mutant::Mutant::OtherByte) {
            true => Flags::NONE,
            false => flags,
        };
        match line.is_paced() {
            true => self.pace_request(idx, line, flags, pacer, context),
            false => self.send_request(idx, line, flags, context),
        }
    }

    /// Asks for the first response packet of an accepted request (rule S5).
    fn probe(&mut self, idx: CallIdx, line: &mut Line, context: &mut Context) {
        context.stats.on_probe();
        self.send_bare(idx, PacketType::Rfr, line, context);
    }

    /// Tells the server that the client no longer wants the response (rule S6).
    pub(super) fn send_cancel(&mut self, idx: CallIdx, line: &mut Line, context: &mut Context) {
        context.stats.on_cancel();
        self.send_bare(idx, PacketType::Cancel, line, context);
    }

    fn send_bare(
        &mut self,
        idx: CallIdx,
        kind: PacketType,
        line: &mut Line,
        context: &mut Context,
    ) {
        let call = self.at_mut(idx);
        call.attempts = call.attempts.saturating_add(1);
        line.on_asked(context.moment.present_now());
        let header = line.header(kind, self.req_of(idx));
        let peer = line.terms().peer;
        context.outbox.push(peer, &header, BufRef::EMPTY);
        context.outbox.tell_when_sent(idx);
    }
}

/// How long ago the peer answered a packet of the session, if that was after `sent`.
fn heard_since(sent: Nanos, line: &Line, context: &Context) -> Option<Nanos> {
    line.heard_since(context.moment.present(sent), context.moment.present_now())
}

/// How long a call of the session waits for an answer before it asks again. However long round
/// trips and handlers take, it asks several times while the server holds the response (rule S9), if
/// the server has the same options.
fn patience(attempts: u8, line: &Line, context: &Context) -> Nanos {
    let (config, rtt) = (&context.config, line.rtt());
    let floor = config.least_timeout(line.is_near());
    let timeout = rtt.timeout(floor, config.rto_initial);
    let grown = timeout.times(1 << attempts.min(MAX_BACKOFF));
    let measured = rtt.measured(floor, config.rto_initial);
    let most = Nanos(config.response_hold.0 / ASKS_PER_HOLD);
    grown.min(config.longest_backoff().max(measured.min(most)))
}

#[cfg(test)]
mod tests;
