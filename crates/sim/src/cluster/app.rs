//! The user's side of a simulated process: it issues calls of every kind, cancels some, closes
//! sessions and keeps requests, as its seed determines.
//!
//! Invariant: all actions depend only on the process's own stream of random numbers and on its
//! input. Called by the endpoint (timers, continuations, session events) and by `node`; `handlers`
//! has the handlers of requests.

mod kept;

use std::collections::{BTreeMap, VecDeque};

use dunlin_core::{
    CallId, CallOptions, CloseReason, Cx, Done, Nanos, Session, SessionEvent, Tag, Ticket,
    TimerToken,
};
use dunlin_msgbuf::MsgBuf;
use dunlin_wire::{SessionNum, Token};

use super::fact::EndpointFact;
use super::ledger::{Issue, Phase, Shared};
use super::message::{Ask, Kind, PREFIX};
use crate::cluster::plan::Workload;
use crate::world::ProcessId;
use crate::world::clock::SimClock;
use crate::world::net::PortId;
use crate::world::net::channels::port_of;
use crate::world::rng::{Ppm, Rng};
use kept::Kept;

/// All user state of one process.
#[derive(Debug)]
pub(super) struct App {
    pub(super) id: ProcessId,
    pub(super) shared: Shared,
    pub(super) rng: Rng,
    pub(super) clock: SimClock,
    pub(super) work: Workload,
    /// Sessions that are connecting or open, with the peer of each.
    pub(super) sessions: Vec<Known>,
    /// New sessions that have no pace yet.
    pub(super) unpaced: Vec<Session>,
    /// Peers to which sessions should be opened, each with the earliest time for that.
    pub(super) reopen: Vec<(Nanos, PortId)>,
    /// Msgbufs that are held and never used, so that the pool runs short.
    hoard: Vec<MsgBuf>,
    /// Requests that wait for a nested call or a timer.
    held: Vec<Option<Kept>>,
    free: Vec<usize>,
    /// Handles of the latest requests whose clients had stopped waiting.
    given_up: VecDeque<Ticket>,
    /// For each session that this process has granted, by session number, the token that the peer
    /// has chosen.
    granted: BTreeMap<SessionNum, Token>,
    /// Nested calls, each with the kept request that needs it.
    nested: BTreeMap<u64, usize>,
    /// Calls that may still be cancelled.
    cancellable: BTreeMap<u64, CallId>,
    /// Calls to issue in this phase.
    remaining: u32,
    phase: Phase,
}

/// A session of this process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    pub(super) session: Session,
    pub(super) peer: PortId,
    /// Whether this process opened it. If so, the process opens another one when this one ends.
    pub(super) ours: bool,
    /// The token that the opener of the session has chosen.
    pub(super) token: Token,
}

impl Known {
    /// The ledger's name for the session: the process that opened it, at `here` or at the peer, and
    /// the token.
    fn name(&self, here: PortId) -> (PortId, u32) {
        let opener = if self.ours { here } else { self.peer };
        (opener, self.token.0)
    }
}

/// Purpose of a timer: the high byte of its token.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u64)]
enum Alarm {
    Issue,
    Cancel,
    Answer,
    Lose,
}

impl Alarm {
    const ALL: [Self; 4] = [Self::Issue, Self::Cancel, Self::Answer, Self::Lose];

    fn token(self, argument: u64) -> TimerToken {
        TimerToken((self as u64) << 56 | argument)
    }
}

/// Longest time until an ended session is opened again.
const REOPEN: Nanos = Nanos::from_millis(5);
/// A process that has no session looks for one again after this time.
const NO_SESSION_WAIT: Nanos = Nanos::from_micros(200);
/// An answer that is too large on purpose exceeds the session's limit by at most this many bytes.
const TOO_MUCH: u64 = 1000;

impl App {
    pub(super) fn new(
        id: ProcessId,
        shared: Shared,
        rng: Rng,
        clock: SimClock,
        work: Workload,
    ) -> Self {
        Self {
            id,
            shared,
            rng,
            clock,
            work,
            sessions: Vec::new(),
            unpaced: Vec::new(),
            reopen: Vec::new(),
            hoard: Vec::new(),
            held: Vec::new(),
            free: Vec::new(),
            given_up: VecDeque::new(),
            granted: BTreeMap::new(),
            nested: BTreeMap::new(),
            cancellable: BTreeMap::new(),
            remaining: 0,
            phase: Phase::Chaos,
        }
    }

    /// Begins to issue this phase's calls.
    pub(super) fn begin(&mut self, phase: Phase, cx: &mut Cx<'_>) {
        self.phase = phase;
        self.remaining = match phase {
            Phase::Chaos => self.work.calls,
            Phase::Calm => self.work.calm_calls,
            Phase::Settle | Phase::Close => 0,
        };
        if self.remaining > 0 {
            cx.timer(cx.now(), Alarm::Issue.token(0));
        }
    }

    /// Takes almost all memory of the pool.
    pub(super) fn hoard(&mut self, largest: usize, cx: &mut Cx<'_>) {
        while let Ok(buf) = cx.buf(largest) {
            self.hoard.push(buf);
        }
        // Freed blocks keep their size, and serve only messages of that size.
        for _ in 0..self.rng.between(1, 60) {
            cx.recycle(self.hoard.pop());
        }
    }

    /// Gives the hoarded memory back.
    pub(super) fn release_hoard(&mut self, cx: &mut Cx<'_>) {
        cx.recycle(self.hoard.drain(..));
    }

    /// Adds a session that was made.
    pub(super) fn add_session(&mut self, known: Known) {
        self.sessions.push(known);
        self.unpaced.push(known.session);
    }

    /// Notes that a session was granted to a peer that has chosen this token.
    pub(super) fn on_grant(&mut self, session: SessionNum, token: Token) {
        self.granted.insert(session, token);
    }

    /// Sometimes, under faults, ends the session of the request that a handler is handling.
    pub(super) fn maybe_disconnect(&mut self, session: Session, cx: &mut Cx<'_>) {
        let often = Ppm(self.work.disconnects.0 / 5);
        if self.phase == Phase::Chaos && self.rng.chance(often) {
            self.shared.check_handle(cx.disconnect(session));
        }
    }

    /// The number of calls in this phase that are not issued yet.
    pub(super) fn remaining(&self) -> u32 {
        self.remaining
    }

    /// Records what the application gets or does, if the run is compared.
    pub(super) fn note(&self, cx: &Cx<'_>, fact: &EndpointFact<'_>) {
        self.shared.record().note(cx.now(), self.id.port, fact);
    }

    /// Handles a timer that fires.
    pub(super) fn on_timer(&mut self, token: TimerToken, cx: &mut Cx<'_>) {
        self.note(cx, &EndpointFact::Timer(token.0));
        let argument = token.0 & ((1 << 56) - 1);
        let alarm = Alarm::ALL
            .iter()
            .find(|alarm| **alarm as u64 == token.0 >> 56);
        let key = usize::try_from(argument).unwrap_or(usize::MAX);
        match alarm {
            Some(Alarm::Issue) => self.on_issue(cx),
            Some(Alarm::Cancel) => self.on_cancel(argument, cx),
            Some(Alarm::Answer) => self.answer(key, true, cx),
            Some(Alarm::Lose) => drop(self.take(key)),
            None => {
                let what = "a timer fires that was not set".to_owned();
                self.shared.lock().violate(what);
            }
        }
    }

    /// Handles the end of a call.
    pub(super) fn on_completion(&mut self, done: Done, cx: &mut Cx<'_>) {
        self.note(cx, &EndpointFact::Completes(&done));
        let call = done.tag.0;
        self.cancellable.remove(&call);
        {
            let mut ledger = self.shared.lock();
            ledger.complete(call, self.id, cx.now(), done.result, done.response.data());
            let request = done.request.data();
            let intact = match ledger.kind_of(call) {
                Some(Kind::Empty) => request.is_empty(),
                _ => Ask::read(request).is_some_and(|ask| ask.call == call),
            };
            if !intact {
                ledger.violate(format!(
                    "call {call} comes back with another request's bytes"
                ));
            }
        }
        if let Some(key) = self.nested.remove(&call) {
            self.answer(key, done.result.is_ok(), cx);
        }
        let session = done.session;
        cx.recycle([done.request, done.response]);
        self.maybe_disconnect(session, cx);
    }

    /// Handles the beginning or the end of a session.
    pub(super) fn on_session(&mut self, event: SessionEvent, cx: &mut Cx<'_>) {
        self.note(cx, &EndpointFact::Session(event));
        if let SessionEvent::Closed { session, reason } = event
            && let CloseReason::Inconsistent(law) = reason
        {
            let law = format!("{session:?} ends by a broken law: {law}");
            self.shared.lock().violate(law);
        }
        let (session, reason) = match event {
            SessionEvent::Closed { session, reason } => (session, reason),
            SessionEvent::Connected(_) => return,
            SessionEvent::Accepted(session) => {
                // If a session has already ended, it has no information any more, and its end is
                // the next event. Until then, this process stands in for its peer.
                let info = cx.session_info(session);
                let peer = info.map_or(self.id.port, |info| PortId(port_of(info.peer)));
                let token = self.granted.remove(&session.number());
                return self.add_session(Known {
                    session,
                    peer,
                    ours: false,
                    token: token.unwrap_or_default(),
                });
            }
        };
        let ended = |known: &Known| known.session == session;
        let Some(at) = self.sessions.iter().position(ended) else {
            let what = "an unknown session has closed".to_owned();
            return self.shared.lock().violate(what);
        };
        let known = self.sessions.remove(at);
        if known.ours {
            if reason == CloseReason::ConnectTimeout {
                self.shared.lock().give_up(known.name(self.id.port));
            }
            let wait = Nanos(self.rng.log_between(1_000, REOPEN.0));
            self.reopen.push((cx.now() + wait, known.peer));
        }
    }

    fn pick_session(&mut self) -> Option<Known> {
        let at = self.rng.index(self.sessions.len());
        self.sessions.get(at).copied()
    }

    /// Issues a burst of calls and plans the next one.
    fn on_issue(&mut self, cx: &mut Cx<'_>) {
        if self.remaining == 0 || self.sessions.is_empty() {
            if self.remaining > 0 {
                cx.timer(cx.now() + NO_SESSION_WAIT, Alarm::Issue.token(0));
            }
            return;
        }
        let burst = self
            .rng
            .between(1, self.work.burst)
            .min(u64::from(self.remaining));
        for _ in 0..burst {
            let kind = *self.rng.pick(&self.work.kinds);
            let Some(known) = self.pick_session() else {
                break;
            };
            let taken = self.issue(known, kind, None, cx);
            // Under faults, a refused call counts as issued, because the plan does not wait for an
            // overloaded peer.
            if taken || self.phase == Phase::Chaos {
                self.remaining -= 1;
            }
        }
        if self.phase == Phase::Chaos
            && self.rng.chance(self.work.disconnects)
            && let Some(known) = self.pick_session()
        {
            self.shared.check_handle(cx.disconnect(known.session));
        }
        if self.remaining > 0 {
            let gap = Nanos(self.rng.log_between(500, self.work.gap.0));
            cx.timer(cx.now() + gap, Alarm::Issue.token(0));
        }
    }

    fn on_cancel(&mut self, call: u64, cx: &mut Cx<'_>) {
        let Some(id) = self.cancellable.remove(&call) else {
            return;
        };
        // A call whose completion is already queued can no longer be cancelled.
        let cancelled = cx.cancel(id);
        self.shared.check_handle(cancelled);
        let could = cancelled.is_ok();
        self.note(cx, &EndpointFact::Cancels { call, could });
        if could {
            self.shared.lock().cancel(call);
        }
    }

    /// Issues one call. False if the endpoint does not take it.
    fn issue(&mut self, known: Known, kind: Kind, parent: Option<usize>, cx: &mut Cx<'_>) -> bool {
        let Ok(info) = cx.session_info(known.session) else {
            return false;
        };
        let largest = u64::from(info.max_message);
        let len = match kind {
            Kind::Empty => 0,
            _ => self.work.sizes.next(&mut self.rng, PREFIX as u64),
        };
        let answer_len = self.draw_answer_len(kind, largest);
        let room = if self.rng.one_in(32) {
            0
        } else {
            answer_len.min(info.max_message)
        };
        let (Ok(mut request), Ok(response)) = (cx.buf(len as usize), cx.buf(room as usize)) else {
            return false;
        };
        let calm = self.phase == Phase::Calm;
        let (often, longest) = self.work.deadlines;
        // Without a deadline, nested calls that wait for each other's slots would wait forever.
        let limited = parent.is_some() || !calm && self.rng.chance(often);
        let deadline = limited.then(|| Nanos(self.rng.log_between(1_000, longest.0)));
        let call = self.shared.lock().issue(Issue {
            kind,
            from: self.id,
            to: known.peer,
            session: known.name(self.id.port),
            at: cx.now(),
            deadline,
            answer_len,
            room: u32::try_from(response.capacity()).unwrap_or(u32::MAX),
            parts: (len > info.data_size, answer_len > info.data_size),
        });
        let param = self.draw_param(kind);
        if kind != Kind::Empty {
            Ask {
                call,
                answer_len,
                param,
            }
            .write(request.data_mut());
        }
        let options = CallOptions { deadline };
        let taken = cx.call_with(
            known.session,
            kind.req_type(),
            request,
            response,
            Tag(call),
            options,
        );
        let refused = taken.as_ref().err().map(|refused| refused.kind);
        self.note(cx, &EndpointFact::Calls { call, refused });
        match taken {
            Ok(id) => {
                self.on_taken(call, id, parent, cx);
                true
            }
            Err(refused) => {
                self.shared.lock().refuse(call);
                cx.recycle([refused.request, refused.response]);
                false
            }
        }
    }

    fn on_taken(&mut self, call: u64, id: CallId, parent: Option<usize>, cx: &mut Cx<'_>) {
        if let Some(key) = parent {
            self.nested.insert(call, key);
        }
        let (often, longest) = self.work.cancels;
        if self.phase == Phase::Chaos && self.rng.chance(often) {
            self.cancellable.insert(call, id);
            let after = Nanos(self.rng.log_between(1, longest.0));
            cx.timer(cx.now() + after, Alarm::Cancel.token(call));
        }
    }

    /// Length of the answer to ask for, in bytes. `largest`: the session's limit.
    fn draw_answer_len(&mut self, kind: Kind, largest: u64) -> u32 {
        let len = match kind {
            Kind::Empty => 0,
            Kind::TooMuch => largest + self.rng.between(1, TOO_MUCH),
            _ => {
                let most = match kind.has_little_room() {
                    true => self.work.sizes.room().min(largest),
                    false => largest,
                };
                u64::from(self.work.sizes.next(&mut self.rng, 0)).min(most)
            }
        };
        u32::try_from(len).unwrap_or(u32::MAX)
    }

    /// The handler's parameter for `kind`, in microseconds if it is a time.
    fn draw_param(&mut self, kind: Kind) -> u32 {
        let (computes, waits, _) = self.work.slow;
        let most = match kind {
            Kind::Slow => computes,
            Kind::Later | Kind::Lose => waits,
            _ => return self.rng.next_u32(),
        };
        let most = match (self.phase, self.work.sloth, kind) {
            // In the calm phase, handlers are fast, unless the plan tests slow ones (`sloth`). Even
            // then, no process may be declared failed.
            (Phase::Calm, Some(sloth), Kind::Slow) => sloth,
            (Phase::Calm, ..) => most.min(Nanos::from_micros(50)),
            _ => most,
        };
        u32::try_from(self.rng.between(0, most.0 / 1000)).unwrap_or(u32::MAX)
    }
}
