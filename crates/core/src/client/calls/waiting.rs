//! The backlog of a session: calls that wait for a slot or a credit, in order.

use super::{CallIdx, CallState, Calls, NO_CALLS};
use crate::context::Context;
use crate::handle::NONE;
use crate::session::line::Line;

impl Calls {
    /// How many calls of the session wait.
    pub(crate) fn waiting(&self, session: u32) -> u32 {
        self.waiting[session as usize].len
    }

    /// The same, counted one by one. `None`: what is counted is something else.
    pub(crate) fn count_waiting(&self, session: u32) -> Option<u32> {
        let waiting = self.waiting[session as usize];
        let (mut count, mut next, mut last) = (0, waiting.first, NONE);
        while next != NONE && count <= waiting.len {
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

    /// The call of the session that waits for longest.
    pub(crate) fn first_waiting(&self, session: u32) -> Option<CallIdx> {
        let first = self.waiting[session as usize].first;
        (first != NONE).then_some(CallIdx(first))
    }

    /// The first call of the session, from `from` on in its order, whose request is longer than
    /// `limit`. It has to wait no longer.
    pub(crate) fn first_too_large(&self, session: u32, limit: usize) -> Option<CallIdx> {
        let mut next = self.waiting[session as usize].first;
        while next != NONE {
            let call = self.table.at(next);
            if call
                .request
                .as_ref()
                .is_some_and(|request| request.len() > limit)
            {
                return Some(CallIdx(next));
            }
            next = call.next;
        }
        None
    }

    /// There are this many sessions now.
    pub(super) fn make_waiting(&mut self, sessions: usize) {
        let room = self.waiting.len().max(sessions);
        self.waiting.resize(room, NO_CALLS);
    }

    /// Lets the call wait for a slot or a credit.
    #[inline(never)]
    pub(super) fn enqueue(&mut self, idx: CallIdx, line: &mut Line, context: &mut Context) {
        let call = self.table.at_mut(idx.0);
        let waiting = &mut self.waiting[call.session() as usize];
        let last = std::mem::replace(&mut waiting.last, idx.0);
        waiting.len += 1;
        call.enter(CallState::Queued);
        call.previous = last;
        call.next = NONE;
        match last {
            NONE => waiting.first = idx.0,
            last => self.table.at_mut(last).next = idx.0,
        }
        line.set_waiting(true);
        context.stats.on_stall();
        #[cfg(feature = "mutants")]
        if context.shows(crate::mutant::Mutant::CountedTwice) {
            context.stats.on_stall();
        }
        // For its deadline.
        let now = context.moment.now();
        context.agenda.on_call(now, context.config.scan_interval);
    }

    /// Takes the call out of those that wait.
    pub(crate) fn unlink(&mut self, idx: CallIdx, line: &mut Line) {
        let call = self.at(idx);
        let (session, previous, next) = (call.session(), call.previous, call.next);
        let waiting = &mut self.waiting[session as usize];
        waiting.len -= 1;
        match previous {
            NONE => waiting.first = next,
            previous => self.table.at_mut(previous).next = next,
        }
        match next {
            NONE => waiting.last = previous,
            next => self.table.at_mut(next).previous = previous,
        }
        if waiting.len == 0 {
            line.set_waiting(false);
        }
    }
}
