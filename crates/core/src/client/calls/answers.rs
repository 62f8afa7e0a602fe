//! Answers of one packet: RESP, ERR and CR (rules S1, S5, S7, S10).

use dunlin_wire::{ErrorCode, Flags, Header, PacketType, Residence};

use super::{Call, CallMarks, CallState, Calls, Ended};
use crate::call::Done;
use crate::congestion::pacer::Pacer;
use crate::congestion::{Sample, Way};
use crate::context::Context;
use crate::error::RpcError;
use crate::handle::{CallIdx, Session};
use crate::observe::counters::DropReason;
use crate::session::line::Line;
use crate::session::rtt::away_limit;
use crate::time::Nanos;

/// A call whose answer has come. Only its completion is left to do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answered {
    session: Session,
    idx: CallIdx,
}

/// How an answer affects its call.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Answer {
    /// The call has ended. The caller must still complete it.
    Ends(Answered),
    /// There is nothing more to do.
    Taken,
    /// The answer is one packet of a response of several packets.
    InParts,
    /// A large message of the call is on its way. Its transfer must end first.
    Amid(CallIdx),
}

impl Calls {
    /// Handles a RESP or an ERR.
    #[inline(always)]
    pub(crate) fn on_answer(
        &mut self,
        header: &Header,
        data: &[u8],
        line: &mut Line,
        pacer: &mut Pacer,
        context: &mut Context,
    ) -> Answer {
        let is_response = header.kind == PacketType::Resp;
        let Some(idx) = self.in_slot(line.slot_at(header.req), header.req) else {
            context.stats.on_drop(DropReason::Unexpected);
            return Answer::Taken;
        };
        if is_response && !line.is_single(header.size) {
            return Answer::InParts;
        }
        match self.at(idx).state {
            CallState::Receiving if is_response => {
                // A response of many packets cannot become one of a single packet.
                context.stats.on_drop(DropReason::Size);
                return Answer::Taken;
            }
            state if state.has_transfer() => return Answer::Amid(idx),
            _ => {}
        }
        self.release_answered(idx, header, line, context);
        if header.aux != Residence::NO_SAMPLE.0 || header.flags.has(Flags::ECN_ECHO) {
            self.take_sample(idx, header, line, pacer, context);
        }
        let answered = Answered {
            session: line.handle(),
            idx,
        };
        let call = self.at_mut(idx);
        let unfinished = !context.held.is_done(call.tx_end());
        #[cfg(feature = "mutants")]
        let unfinished = unfinished && !context.shows(crate::mutant::Mutant::ReleasedBeforeDone);
        match &mut call.bufs {
            Some(bufs) if !unfinished => bufs.request.revoke(),
            _ => {
                let keeps_rules = line.keeps_code_rules();
                self.finish_later(answered, header, data, keeps_rules, context);
                return Answer::Taken;
            }
        }
        context.stats.on_completion();
        self.note_answered(idx, context);
        Answer::Ends(answered)
    }

    #[inline(always)]
    fn release_answered(
        &mut self,
        idx: CallIdx,
        header: &Header,
        line: &mut Line,
        context: &mut Context,
    ) {
        self.release(line, header.req);
        #[cfg(feature = "mutants")]
        {
            self.stop_numbers(line.slot_at(header.req), header.req, line.window(), context);
            if header.kind != PacketType::Resp && context.shows(crate::mutant::Mutant::CreditLeaked)
            {
                line.take_credits(1);
            }
        }
        if line.has_waiting() {
            context.wake(self.session_of(idx), line);
        }
    }

    /// Records the duration of an answered call whose user still waits for it.
    #[inline(always)]
    pub(super) fn note_answered(&self, idx: CallIdx, context: &mut Context) {
        let took = context.moment.came().since(self.at(idx).first_sent);
        #[cfg(feature = "mutants")]
        let took = took + Nanos(context.shows(crate::mutant::Mutant::MeasuredLonger).into());
        context.stats.on_answered(took);
    }

    /// Ends an answered call whose completion the loop delivers later.
    #[cold]
    fn finish_later(
        &mut self,
        answered: Answered,
        header: &Header,
        data: &[u8],
        keeps_rules: bool,
        context: &mut Context,
    ) {
        let call = self.at(answered.idx);
        if call.bufs.is_none() {
            // A zombie: the user has its completion.
            return self.remove(answered.idx);
        }
        let tx_end = call.tx_end();
        self.note_answered(answered.idx, context);
        let done = self.finish(answered, header, data, |_| keeps_rules);
        context.end(done, tx_end);
    }

    /// The completion of an answered call whose slot is already free. If the answer is an error
    /// code, `keeps_rules` shows whether the code proves anything about the handler (rule W13).
    #[inline(always)]
    pub(crate) fn finish(
        &mut self,
        answered: Answered,
        header: &Header,
        data: &[u8],
        keeps_rules: impl FnOnce(Session) -> bool,
    ) -> Done {
        let call = self.at_mut(answered.idx);
        let mut ended = Ended {
            session: answered.session,
            tag: call.tag,
            bufs: call
                .bufs
                .take()
                .expect("a call that is not a zombie has its msgbufs"),
        };
        self.remove(answered.idx);
        let is_response = header.kind == PacketType::Resp;
        // Success has a branch of its own. If the result were chosen first and then moved, the
        // processor would read with one load two words that it has just stored separately, and
        // stall.
        if is_response && ended.bufs.response.fill(data).is_ok() {
            return ended.done(Ok(()));
        }
        let error = match is_response {
            true => Failed::TooLarge(data.len()),
            false => Failed::Rejected(header.size),
        };
        failed(ended, error, keeps_rules)
    }

    /// Takes the times from an answer.
    #[inline]
    pub(crate) fn take_sample(
        &mut self,
        idx: CallIdx,
        header: &Header,
        line: &mut Line,
        pacer: &mut Pacer,
        context: &mut Context,
    ) {
        let call = self.at(idx);
        call.take_sample(header.residence(), header.flags, line, pacer, context);
    }

    /// Handles a CR: the server has the request, and its answer will take time (rule S5). Returns
    /// the call if its request has more than one packet; the CR then reports which of them have
    /// arrived.
    #[inline(never)]
    pub(crate) fn on_credit_return(
        &mut self,
        header: &Header,
        line: &mut Line,
        pacer: &mut Pacer,
        context: &mut Context,
    ) -> Option<CallIdx> {
        let Some(idx) = self.in_slot(line.slot_at(header.req), header.req) else {
            context.stats.on_drop(DropReason::Unexpected);
            return None;
        };
        match self.at(idx).state {
            CallState::Sending => return Some(idx),
            CallState::Sent => {
                // The request has one packet. A CR that names another one acknowledges a packet
                // that was never sent (rule W7).
                if header.pkt.0 != 0 || header.cumulative().0 > 1 {
                    context.stats.on_drop(DropReason::PacketNumber);
                    return None;
                }
                self.take_sample(idx, header, line, pacer, context);
                self.accept(idx, context.moment.now());
            }
            _ => {}
        }
        // From now on a round trip would measure the handler, not the network.
        self.at_mut(idx).marks.set(CallMarks::SAMPLE, false);
        None
    }

    /// Notes that the server has all of the request.
    pub(super) fn accept(&mut self, idx: CallIdx, now: Nanos) {
        let call = self.at_mut(idx);
        call.enter(CallState::Accepted);
        call.attempts = 0;
        call.sent = now;
    }
}

impl Call {
    /// Takes the times from an answer: the residence of the request and, if the request asked for a
    /// sample and the sample can be trusted, the round trip (rule S10).
    #[inline(never)]
    pub(super) fn take_sample(
        &self,
        residence: Residence,
        flags: Flags,
        line: &mut Line,
        pacer: &mut Pacer,
        context: &mut Context,
    ) {
        let marked = flags.has(Flags::ECN_ECHO);
        let mut sample = None;
        context.look_for_backlog();
        let is_copy = flags.has(Flags::RETRANSMISSION);
        match residence.to_nanos().filter(|_| !is_copy) {
            Some(residence_ns) => {
                line.on_residence(residence_ns);
                let came = context.moment.burst_time();
                let rtt = came.since(self.sent).since(Nanos(residence_ns));
                if !self.marks.has(CallMarks::SAMPLE) {
                    // The request was sent more than once, or at an uncertain time.
                } else if context.moment.waited() <= away_limit(rtt) {
                    line.on_round_trip(rtt);
                    context.stats.on_rtt(rtt);
                    sample = Some(rtt);
                } else {
                    context.stats.on_rtt_away();
                }
            }
            // The request asked for a sample and got no residence, so it may have waited for the
            // peer's thread.
            None if self.marks.has(CallMarks::SAMPLE) && !is_copy => {
                line.on_wait(context.moment.burst_time().since(self.sent));
                pacer.learn_wait(line, Way::Out, 1, context);
            }
            None => {}
        }
        if sample.is_some() || marked {
            let answer = Sample {
                rtt: sample,
                congestion: marked,
                packets: 1,
                now: context.moment.now(),
            };
            pacer.learn(line, Way::Out, answer, context);
        }
    }
}

/// Why the user gets an error although an answer has come.
enum Failed {
    TooLarge(usize),
    Rejected(u32),
}

/// The completion of a failed call. Not inlined: its registers would cost each iteration a store.
#[cold]
#[inline(never)]
fn failed(ended: Ended, error: Failed, keeps_rules: impl FnOnce(Session) -> bool) -> Done {
    let error = match error {
        Failed::TooLarge(len) => RpcError::ResponseTooLarge {
            size: u32::try_from(len).unwrap_or(u32::MAX),
        },
        Failed::Rejected(code) => RpcError::rejected(ErrorCode(code), keeps_rules(ended.session)),
    };
    ended.done(Err(error))
}
