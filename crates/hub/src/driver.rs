//! One channel over an endpoint: carries out the actions of its machine, and passes events to it.
//!
//! Invariants: until its end is reported, every attempt that the machine hands out either is a call
//! of the endpoint or waits in the backlog of its link. A link has at most as many calls of the
//! endpoint as its session's window. The endpoint transmits all of those without delay, so a
//! request in the backlog has provably not left, while any other request of a lost link may have
//! run.
//!
//! Called by `thread.rs`.

mod held;
mod links;

use std::collections::BTreeMap;
use std::sync::Arc;

use dunlin_channel::{Action, AttemptId, CallEnd, CallId, Fault, LinkId, Machine, Outcome, Terms};
use dunlin_core::{CallErrorKind, CallOptions, Done, Nanos, RpcError, Session, Tag};
use dunlin_mailbox::Slot;
use dunlin_msgbuf::{AllocError, MAX_MESSAGE, MsgBuf};
use dunlin_nexus::Rpc;
use dunlin_transport::auto::Auto;
use dunlin_wire::Ran;

use crate::board::Board;
use crate::error::ChannelError;
use crate::inbox::Inbox;
use crate::letter::{self, Mailbox};
use crate::plan::Plan;
use crate::resolve::{LookUp, Sources};
use held::Held;
use links::Links;

/// The parts of the thread that its channels use.
pub(crate) struct Around<'a> {
    pub(crate) rpc: &'a mut Rpc<Auto, Inbox>,
    pub(crate) mailbox: &'a Mailbox,
    /// The links of all channels.
    pub(crate) sessions: &'a mut BTreeMap<Session, (u32, LinkId)>,
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
    /// `None`: it waits in the backlog of its link.
    issued: Option<dunlin_core::CallId>,
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
    /// The version of the machine that the board shows.
    shown: Option<u64>,
    /// The time at which the next task that waits for the board must be woken.
    wait: Option<Nanos>,
    wants_names: bool,
}

impl Driver {
    pub(crate) fn new(id: u32, plan: Plan, board: Arc<Board>, seed: u64, now: Nanos) -> Self {
        let mut machine = Machine::new(plan.config, seed, now);
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
            shown: None,
            wait: None,
            wants_names: are_fixed,
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
        around.rpc.cx_again().recycle([done.request]);
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

    /// Ends an attempt of which no server holds anything any more.
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
        self.links.on_done(attempt.link);
        self.issue_waiting(attempt.link, around);
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

    /// Closes the board only: the thread has panicked, which may have left the machine
    /// inconsistent.
    pub(crate) fn abandon(&self) {
        self.board.close();
    }

    // Inside.

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

    /// Issues an attempt, or lets it wait until other attempts on its link have ended.
    fn send(&mut self, attempt: Attempt, around: &mut Around<'_>) {
        let index = attempt.id.index();
        put(&mut self.attempts, index, attempt);
        if self.links.takes(attempt.link) {
            self.issue(index, around);
        } else {
            self.links.wait(attempt.link, attempt.id);
        }
    }

    fn issue(&mut self, index: usize, around: &mut Around<'_>) {
        let attempt = self.attempts[index].expect("it was put there");
        let issued = self.try_issue(index, &attempt, around);
        match issued {
            Ok(issued) => {
                self.take_place(index, attempt.call, around);
                self.machine.on_issued(attempt.id);
                self.links.on_issue(attempt.link);
                self.attempts[index] = Some(Attempt {
                    issued: Some(issued),
                    ..attempt
                });
            }
            Err(fault) => {
                self.attempts[index] = None;
                self.machine
                    .on_end(attempt.id, Outcome::Failed(fault), around.now);
            }
        }
    }

    fn try_issue(
        &self,
        index: usize,
        attempt: &Attempt,
        around: &mut Around<'_>,
    ) -> Result<dunlin_core::CallId, Fault> {
        let gone = Fault::NotTaken(CallErrorKind::NoSession);
        let session = self.links.session(attempt.link).ok_or(gone)?;
        let seat = self.seats.get(attempt.call.index());
        let seat = seat.and_then(Option::as_ref);
        let seat = seat.filter(|seat| seat.id == attempt.call);
        let slot = seat
            .ok_or(Fault::NotSent(RpcError::Cancelled(Ran::No)))?
            .slot;
        let left = attempt.deadline.map(|end| end.since(around.now));
        let rpc = &mut *around.rpc;
        let (req_type, request, room) = around.mailbox.with(slot, |letter| {
            let room = letter.room;
            let (req_type, front, message) = letter.request(left);
            let request = rpc.buf(front.size() + message.len());
            let request = request.map(|mut buf| {
                front.write(buf.data_mut()).copy_from_slice(message);
                buf
            });
            (req_type, request, room)
        });
        let request = request.map_err(|error| no_memory(&error))?;
        let response = match rpc.buf(room) {
            Ok(response) => response,
            Err(error) => {
                rpc.cx_again().recycle([request]);
                return Err(no_memory(&error));
            }
        };
        let options = CallOptions { deadline: left };
        let tag = tag_of(self.id, index);
        let taken = rpc.call_with(session, req_type, request, response, tag, options);
        taken.map_err(|refused| {
            rpc.cx_again().recycle([refused.request, refused.response]);
            Fault::NotTaken(refused.kind)
        })
    }

    /// Issues waiting attempts of a link while it has room.
    fn issue_waiting(&mut self, link: LinkId, around: &mut Around<'_>) {
        while self.links.takes(link)
            && let Some(next) = self.links.next_waiting(link)
        {
            self.issue(next.index(), around);
        }
    }

    /// Moves attempts that wait for other links to the same server to this link, while it has room.
    fn spread(&mut self, link: LinkId, around: &mut Around<'_>) {
        while let Some(next) = self.links.waiting_beside(link)
            && let Some(to) = self.machine.move_waiting(next)
        {
            let attempt = self.attempts[next.index()].expect("it waits");
            self.links.stop_waiting(attempt.link, next);
            self.send(
                Attempt {
                    link: to,
                    ..attempt
                },
                around,
            );
        }
    }

    fn cancel(&mut self, id: AttemptId, around: &mut Around<'_>) {
        let attempt = self.attempts.get_mut(id.index());
        let Some(attempt) = attempt.filter(|at| at.is_some_and(|at| at.id == id)) else {
            return;
        };
        match attempt.and_then(|attempt| attempt.issued) {
            // The endpoint reports its end as it does for other calls, or has done so already.
            Some(issued) => {
                let (index, call) = (id.index(), attempt.expect("it was issued").call);
                self.take_place(index, call, around);
                let _ = around.rpc.cx().cancel(issued);
            }
            None => self.never_sent(id, RpcError::Cancelled(Ran::No), around.now),
        }
    }

    /// Ends an attempt that waited for its link.
    fn never_sent(&mut self, id: AttemptId, error: RpcError, now: Nanos) {
        let place = self.attempts.get_mut(id.index());
        let attempt = place.and_then(|place| place.take_if(|attempt| attempt.id == id));
        if let Some(attempt) = attempt {
            self.links.stop_waiting(attempt.link, id);
            self.machine
                .on_end(id, Outcome::Failed(Fault::NotSent(error)), now);
        }
    }
}

/// Puts a thing at its index.
fn put<T>(places: &mut Vec<Option<T>>, index: usize, thing: T) {
    if index >= places.len() {
        places.resize_with(index + 1, || None);
    }
    places[index] = Some(thing);
}

fn no_memory(error: &AllocError) -> Fault {
    Fault::NotTaken(match error {
        AllocError::TooLarge => CallErrorKind::TooLarge {
            limit: u32::try_from(MAX_MESSAGE).unwrap_or(u32::MAX),
        },
        AllocError::Limit | AllocError::NoMemory | AllocError::TooManyRegions => {
            CallErrorKind::Overloaded
        }
    })
}

/// The tag of an attempt's call: the channel, and the attempt's index there.
fn tag_of(channel: u32, index: usize) -> Tag {
    Tag(u64::from(channel) << 32 | index as u64)
}

/// The channel and the index of the attempt in a tag.
#[expect(clippy::cast_possible_truncation, reason = "each is a half")]
pub(crate) const fn place_of(tag: Tag) -> (u32, usize) {
    ((tag.0 >> 32) as u32, tag.0 as u32 as usize)
}
