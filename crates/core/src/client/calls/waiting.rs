//! The backlog of a session: calls that wait for a slot or a credit, in order.

use super::{CallState, Calls, NO_CALLS};
use crate::context::Context;
use crate::handle::{CallIdx, SessionIdx};
use crate::session::line::Line;

impl Calls {
    /// The number of calls of the session that wait.
    pub(crate) fn waiting(&self, session: SessionIdx) -> u32 {
        self.waiting[session.0 as usize].len
    }

    /// Counts the waiting calls of the session one by one. `None`: the list is broken.
    pub(crate) fn count_waiting(&self, session: SessionIdx) -> Option<u32> {
        let waiting = self.waiting[session.0 as usize];
        let (mut count, mut next, mut last) = (0, waiting.first, CallIdx::NONE);
        while next != CallIdx::NONE && count <= waiting.len {
            let call = self.table.at(next);
            if call.state != CallState::Queued || call.session() != session || call.previous != last
            {
                return None;
            }
            (last, next) = (next, call.next);
            count += 1;
        }
        (count == waiting.len && last == waiting.last).then_some(count)
    }

    /// The call of the session that has waited longest.
    pub(crate) fn first_waiting(&self, session: SessionIdx) -> Option<CallIdx> {
        let first = self.waiting[session.0 as usize].first;
        (first != CallIdx::NONE).then_some(first)
    }

    /// The session's first waiting call whose request is longer than `limit` and therefore can
    /// never start.
    pub(crate) fn first_too_large(&self, session: SessionIdx, limit: usize) -> Option<CallIdx> {
        let mut next = self.waiting[session.0 as usize].first;
        while next != CallIdx::NONE {
            let call = self.table.at(next);
            if call.request().is_some_and(|request| request.len() > limit) {
                return Some(next);
            }
            next = call.next;
        }
        None
    }

    /// Makes room in the backlog's table for this number of sessions.
    pub(super) fn make_waiting(&mut self, sessions: usize) {
        let room = self.waiting.len().max(sessions);
        self.waiting.resize(room, NO_CALLS);
    }

    /// Makes the call wait for a slot or a credit.
    #[inline(never)]
    pub(super) fn enqueue(&mut self, idx: CallIdx, line: &mut Line, context: &mut Context) {
        let call = self.table.at_mut(idx);
        let waiting = &mut self.waiting[call.session().0 as usize];
        let last = std::mem::replace(&mut waiting.last, idx);
        waiting.len += 1;
        call.enter(CallState::Queued);
        call.previous = last;
        call.next = CallIdx::NONE;
        match last {
            CallIdx::NONE => waiting.first = idx,
            last => self.table.at_mut(last).next = idx,
        }
        line.begin_waiting();
        context.stats.on_stall();
        #[cfg(feature = "mutants")]
        if context.shows(crate::mutant::Mutant::CountedTwice) {
            context.stats.on_stall();
        }
        // A scan must look at its deadline.
        context.expect_scan();
    }

    /// Takes the call out of the backlog.
    pub(crate) fn unlink(&mut self, idx: CallIdx, line: &mut Line) {
        let call = self.at(idx);
        let (session, previous, next) = (call.session(), call.previous, call.next);
        let waiting = &mut self.waiting[session.0 as usize];
        waiting.len -= 1;
        match previous {
            CallIdx::NONE => waiting.first = next,
            previous => self.table.at_mut(previous).next = next,
        }
        match next {
            CallIdx::NONE => waiting.last = previous,
            next => self.table.at_mut(next).previous = previous,
        }
        if waiting.len == 0 {
            line.end_waiting();
        }
    }
}
