//! One channel over an endpoint: carries out the actions of its machine, and passes events to it.
//!
//! Invariants: until its end is reported, every attempt that the machine hands out either is a call
//! of the endpoint or waits for its link's turn in a trunk. A session has at most as many calls of
//! the endpoint as its window. The endpoint transmits these calls without delay, so a request that
//! waits has provably not left, while any other request of a lost link may have run.
//!
//! Called by `thread.rs`.

mod attempts;
mod held;
mod links;

use std::sync::Arc;

use dunlin_channel::{
    Action, AttemptId, CallEnd, CallId, Counters, Fault, LinkId, Machine, Outcome, Terms,
};
use dunlin_core::{Done, Nanos, Session, Tag};
use dunlin_mailbox::Slot;
use dunlin_msgbuf::MsgBuf;
use dunlin_nexus::Rpc;
use dunlin_transport::auto::Auto;

use crate::board::Board;
use crate::error::ChannelError;
use crate::inbox::Inbox;
use crate::letter::{self, Mailbox};
use crate::plan::Plan;
use crate::resolve::{LookUp, Sources};
use crate::trunks::Trunks;
use held::Held;
use links::Links;

/// The parts of the thread that its channels use.
pub(crate) struct Around<'a> {
    pub(crate) rpc: &'a mut Rpc<Auto, Inbox>,
    pub(crate) mailbox: &'a Mailbox,
    /// The sessions, which all channels share.
    pub(crate) trunks: &'a mut Trunks,
    pub(crate) now: Nanos,
}

/// A call that has not ended.
#[derive(Debug)]
struct Seat {
    id: CallId,
    slot: Slot,
    response: Option<MsgBuf>,
}

/// An attempt whose end has not been reported.
#[derive(Clone, Copy, Debug)]
struct Attempt {
    id: AttemptId,
    call: CallId,
    link: LinkId,
    deadline: Option<Nanos>,
    /// `None`: it waits for its link's turn.
    issued: Option<Issued>,
}

/// A call of the endpoint.
#[derive(Clone, Copy, Debug)]
struct Issued {
    call: dunlin_core::CallId,
    session: Session,
}

#[derive(Debug)]
pub(crate) struct Driver {
    id: u32,
    sources: Sources,
    machine: Machine,
    board: Arc<Board>,
    /// Calls that have not ended, by their index.
    seats: Vec<Option<Seat>>,
    /// Attempts whose end has not been reported, by their index.
    attempts: Vec<Option<Attempt>>,
    held: Held,
    links: Links,
    /// An event has come since the counters were shown.
    is_uncounted: bool,
    /// The version of the machine that the board shows.
    shown: Option<u64>,
    /// The time at which the next task that waits for the board must be woken.
    wait: Option<Nanos>,
    wants_names: bool,
    /// The endpoint for calls that name none; `None`: any.
    endpoint: Option<u16>,
    /// Number of endpoints of a server that the channel uses for calls that name none.
    endpoints_per_server: u32,
    /// Whether an idempotent call may have two attempts at once.
    hedges: bool,
}

impl Driver {
    pub(crate) fn new(id: u32, plan: Plan, board: Arc<Board>, seed: u64, now: Nanos) -> Self {
        let (config, endpoint) = (plan.config, plan.endpoint);
        let mut machine = Machine::new(config, seed, now);
        let sources = plan.sources();
        // Calls go to fixed addresses before the first look-up has ended.
        let are_fixed = sources.known().next().is_some();
        if are_fixed {
            machine.on_addresses(sources.known(), now);
        }
        Self {
            id,
            links: Links::new(),
            sources,
            machine,
            board,
            seats: Vec::new(),
            attempts: Vec::new(),
            held: Held::new(),
            is_uncounted: false,
            shown: None,
            wait: None,
            wants_names: are_fixed,
            endpoint,
            endpoints_per_server: config.endpoints_per_server,
            hedges: config.hedge.is_some(),
        }
    }

    /// The time at which [`Self::settle`] has something to do, if no event comes before.
    pub(crate) fn next_wakeup(&self) -> Nanos {
        let times = [self.machine.next_wakeup(), self.wait];
        times.into_iter().flatten().min().unwrap_or(Nanos::MAX)
    }

    /// Takes the look-ups that must begin now.
    pub(crate) fn take_look_ups(&mut self) -> Vec<LookUp> {
        match std::mem::take(&mut self.wants_names) {
            true => self.sources.begin(),
            false => Vec::new(),
        }
    }

    // Events from callers.

    /// Begins a call. `None`: it has ended already.
    pub(crate) fn on_call(
        &mut self,
        slot: Slot,
        terms: Terms,
        around: &mut Around<'_>,
    ) -> Option<CallId> {
        let terms = Terms {
            endpoint: terms.endpoint.or(self.endpoint.map(u32::from)),
            ..terms
        };
        let Ok(id) = self.machine.on_call(terms, around.now) else {
            letter::end(around.mailbox, slot, Err(ChannelError::Full));
            return None;
        };
        let seat = Seat {
            id,
            slot,
            response: None,
        };
        put(&mut self.seats, id.index(), seat);
        Some(id)
    }

    /// A call has ended at its deadline, before it was posted.
    pub(crate) const fn on_late(&mut self) {
        self.machine.on_late();
    }

    /// The caller has dropped its call.
    pub(crate) fn on_drop(&mut self, id: CallId, around: &mut Around<'_>) {
        if let Some(seat) = self.take_seat(id) {
            around.rpc.cx_again().recycle(seat.response);
        }
        self.machine.on_cancel(id, around.now);
    }

    /// A task waits for a change of the board, or until `until`.
    pub(crate) fn on_wait(&mut self, until: Nanos) {
        self.wait = Some(self.wait.map_or(until, |wait| wait.min(until)));
    }

    /// A look-up of a source has ended.
    pub(crate) fn on_names(&mut self, source: usize, found: Option<Vec<String>>, now: Nanos) {
        match self.sources.on_end(source, found) {
            true => self.machine.on_addresses(self.sources.known(), now),
            false => self.machine.on_lookup_failed(now),
        }
        self.show();
    }

    // Events from the endpoint.

    /// A call of the endpoint has ended.
    pub(crate) fn on_done(&mut self, index: usize, done: Done, around: &mut Around<'_>) {
        let attempt = self.attempts.get(index).copied().flatten();
        let Some(attempt) = attempt else {
            return around.rpc.cx_again().recycle([done.request, done.response]);
        };
        let (outcome, response) = match done.result {
            Ok(()) => (Outcome::Answered, Some(done.response)),
            Err(error) => {
                around.rpc.cx_again().recycle([done.response]);
                (Outcome::Failed(Fault::of(error)), None)
            }
        };
        self.return_request(attempt.call, done.request, around);
        let seat = self.seats.get_mut(attempt.call.index());
        let seat = seat.and_then(Option::as_mut);
        // A hedged call may get two answers; it keeps the first.
        let seat = seat.filter(|seat| seat.id == attempt.call && seat.response.is_none());
        match (seat, response) {
            (Some(seat), Some(response)) => seat.response = Some(response),
            (_, response) => around.rpc.cx_again().recycle(response),
        }
        if !self.hold(index, &attempt, around) {
            self.on_ended(index, &attempt, outcome, around);
        }
    }

    /// Ends an attempt whose request no server still holds.
    fn on_ended(
        &mut self,
        index: usize,
        attempt: &Attempt,
        outcome: Outcome,
        around: &mut Around<'_>,
    ) {
        self.attempts[index] = None;
        self.return_place(index, attempt.call, around);
        self.machine.on_end(attempt.id, outcome, around.now);
        self.give_back(attempt, around);
        self.spread(attempt.link, around);
    }

    /// Carries out the machine's actions.
    pub(crate) fn settle(&mut self, around: &mut Around<'_>) {
        while let Some(action) = self.machine.poll(around.now) {
            match action {
                Action::Connect {
                    link,
                    address,
                    endpoint,
                } => self.connect(link, address, endpoint, around),
                Action::Disconnect { link } => self.disconnect(link, around),
                Action::Send {
                    attempt,
                    call,
                    link,
                    deadline,
                } => {
                    let attempt = Attempt {
                        id: attempt,
                        call,
                        link,
                        deadline,
                        issued: None,
                    };
                    self.send(attempt, around);
                }
                Action::Cancel { attempt } => self.cancel(attempt, around),
                Action::End { call, end } => self.end(call, end, around),
                Action::LookUp => self.wants_names = true,
            }
        }
        if self.shown != Some(self.machine.version()) {
            self.show();
        }
        if self.wait.is_some_and(|wait| wait <= around.now) {
            self.wait = self.board.on_time(around.now);
        }
    }

    /// Ends every call and every session.
    pub(crate) fn close(&mut self, around: &mut Around<'_>) {
        self.machine.close(around.now);
        self.settle(around);
        self.board.close();
    }

    /// Whether this is the first event since the counters were shown.
    pub(crate) const fn must_be_counted(&mut self) -> bool {
        !std::mem::replace(&mut self.is_uncounted, true)
    }

    /// Shows the counters; returns the counts since this was called last.
    pub(crate) fn count(&mut self) -> Counters {
        self.is_uncounted = false;
        let [now, before] = self.board.count(*self.machine.counters());
        now.since(&before)
    }

    /// Whether no attempt is left whose request a server may still hold.
    pub(crate) fn is_idle(&self) -> bool {
        self.attempts.iter().all(Option::is_none)
    }

    /// Closes the board only: the thread has panicked, which may have left the machine
    /// inconsistent.
    pub(crate) fn abandon(&self) {
        self.board.close();
    }

    // Parts of the functions above.

    fn take_seat(&mut self, id: CallId) -> Option<Seat> {
        let seat = self.seats.get_mut(id.index())?;
        seat.take_if(|seat| seat.id == id)
    }

    fn end(&mut self, id: CallId, end: CallEnd, around: &mut Around<'_>) {
        let Some(seat) = self.take_seat(id) else {
            return;
        };
        let end = match end {
            CallEnd::Answered(_) => Ok(seat.response.expect("it came before its end")),
            CallEnd::Failed(failure) => Err(ChannelError::of(failure, || self.state().reasons())),
        };
        letter::end(around.mailbox, seat.slot, end);
    }
}

/// Puts a thing at its index.
fn put<T>(places: &mut Vec<Option<T>>, index: usize, thing: T) {
    if index >= places.len() {
        // Begins with as few places as possible: a program may have thousands of channels.
        if index >= places.capacity() {
            let more = (index + 1).max(2 * places.len()) - places.len();
            places.reserve_exact(more);
        }
        places.resize_with(index + 1, || None);
    }
    places[index] = Some(thing);
}

/// The channel and the index of the attempt in a tag.
#[expect(clippy::cast_possible_truncation, reason = "each is a half")]
pub(crate) const fn place_of(tag: Tag) -> (u32, usize) {
    ((tag.0 >> 32) as u32, tag.0 as u32 as usize)
}
