//! Requests that handlers keep, and answer or drop later.
//!
//! Invariant: `free` has the empty places of `held`. Called by `handlers`, by timers and by the
//! ends of nested calls.

use dunlin_core::{Cx, DeferredRequest, Nanos, Session, Ticket};

use super::super::fact::EndpointFact;
use super::super::ledger::NESTED_FAILED;
use super::super::message::{Ask, Kind};
use super::{Alarm, App};

/// The number of handles of given-up requests that a process remembers.
const REMEMBERED: usize = 32;

/// A request that its handler has kept.
#[derive(Debug)]
pub(super) struct Kept {
    held: DeferredRequest,
    ask: Ask,
}

impl App {
    /// The client of a kept request no longer waits. The handler answers the request nevertheless.
    pub(in super::super) fn on_given_up(&mut self, ticket: Ticket, cx: &mut Cx<'_>) {
        self.note(cx, &EndpointFact::GivenUp(ticket.index()));
        if self.given_up.len() == REMEMBERED {
            self.given_up.pop_front();
        }
        self.given_up.push_back(ticket);
    }

    /// Keeps a request until `answer` or `take`.
    pub(in super::super) fn keep(&mut self, held: DeferredRequest, ask: Ask) -> usize {
        let key = self.free.pop().unwrap_or_else(|| {
            self.held.push(None);
            self.held.len() - 1
        });
        self.held[key] = Some(Kept { held, ask });
        key
    }

    /// Checks that a session has no more kept requests than slots, because a slot has at most one
    /// live handler. Also checks that handles of given-up requests do not name later requests,
    /// which are not given up.
    pub(in super::super) fn check_kept(&self, session: Session, cx: &Cx<'_>) {
        for &ticket in &self.given_up {
            if cx.is_cancelled(ticket) != Ok(true) {
                let what = format!(
                    "the handle of request {}, which is over, names another",
                    ticket.index()
                );
                self.shared.lock().violate(what);
            }
        }
        let Ok(info) = cx.session_info(session) else {
            return;
        };
        let kept = self
            .held
            .iter()
            .flatten()
            .filter(|kept| kept.held.session() == session);
        let count = kept.count();
        if count > info.window as usize {
            let window = info.window;
            let what = format!("{count} live handlers in a session of {window} slots");
            self.shared.lock().violate(what);
        }
    }

    /// Sets a timer that answers or drops a kept request.
    pub(in super::super) fn answer_later(
        &mut self,
        key: usize,
        lose: bool,
        after: Nanos,
        cx: &mut Cx<'_>,
    ) {
        let alarm = if lose { Alarm::Lose } else { Alarm::Answer };
        cx.timer(cx.now() + after, alarm.token(key as u64));
    }

    /// Answers a kept request.
    pub(in super::super) fn answer(&mut self, key: usize, well: bool, cx: &mut Cx<'_>) {
        let Some(Kept { held, ask }) = self.take(key) else {
            return self
                .shared
                .lock()
                .violate(format!("request {key} is answered twice"));
        };
        if well {
            held.reply(cx, ask.answer_len as usize, |out| ask.answer(out));
        } else {
            held.reject(cx, NESTED_FAILED);
        }
    }

    /// Issues a call on behalf of a kept request. False if there is no session to call on, or if
    /// the endpoint does not take the call.
    pub(in super::super) fn call_for(&mut self, key: usize, cx: &mut Cx<'_>) -> bool {
        let depth_ends = self.rng.one_in(4);
        let kind = if depth_ends {
            *self.rng.pick(&self.work.kinds)
        } else {
            Kind::Echo
        };
        match self.pick_session() {
            Some(known) => self.issue(known, kind, Some(key), cx),
            None => false,
        }
    }

    pub(super) fn take(&mut self, key: usize) -> Option<Kept> {
        let kept = self.held.get_mut(key)?.take()?;
        self.free.push(key);
        Some(kept)
    }
}
