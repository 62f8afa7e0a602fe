//! The client, as a state machine without input and output of its own: it takes numbers of one
//! sequence from the server that serves now. The owner of an endpoint drives it
//! ([`Client::on_done`], [`Client::on_session`], [`Client::on_time`], [`Client::wish`]);
//! `Connection` does so for a nexus, and the simulator for its hosts.
//! Invariants: each operation that was begun has exactly one end. An operation whose answer does
//! not arrive is repeated until its deadline; a number that was given and lost leaves a gap. Each
//! request names the highest epoch that the client has seen, so no server with a lower epoch
//! answers it.
//!
//! | file | what it owns |
//! |---|---|
//! | `lane.rs` | the session: which server, greeting, pauses after failures |
//! | `calls.rs` | the operations under way |

mod calls;
mod lane;

use std::collections::VecDeque;
use std::ops::Range;

use dunlin_core::{
    CallErrorKind, CallOptions, Cx, Done, Nanos, RpcError, Session, SessionEvent, Tag,
};
use dunlin_msgbuf::MsgBuf;
use dunlin_wire::ErrorCode;

use crate::error::Error;
use crate::wire::{
    Answer, MAX_COUNT, Name, OPEN, Open, Opened, Status, TAKE, Take, halves, numbers_from,
};

use calls::{Call, Calls};
use lane::Lane;

/// The name of an operation, chosen by the program.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Token(pub u64);

/// Options of a client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClientOptions {
    /// The number of servers among which the client looks for the one that serves.
    pub servers: usize,
    /// Whether the server makes the sequence if it does not exist.
    pub create: bool,
    /// Whether requests name the upper four bytes that the client expects, so that most answers
    /// have four bytes (Spec-S0, RDMA §4.2.1).
    pub speculates: bool,
    /// The deadline of operations that are begun without one.
    pub deadline: Nanos,
    /// How long a server may take to answer the first request over a session.
    pub patience: Nanos,
    /// The pause after a round in which all servers have failed. It doubles with each further
    /// round.
    pub least_pause: Nanos,
    /// The longest pause.
    pub most_pause: Nanos,
    /// Distinguishes the clients of one endpoint.
    pub number: u8,
}

/// The end of an operation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct End {
    /// The operation.
    pub token: Token,
    /// Its numbers.
    pub result: Result<Range<u64>, Error>,
}

/// A client of one sequence.
#[derive(Debug)]
pub struct Client {
    options: ClientOptions,
    name: Name,
    lane: Lane,
    calls: Calls,
    /// Operations that wait for a session, in order.
    waiting: VecDeque<u32>,
    ends: VecDeque<End>,
    /// The highest epoch of any server.
    epoch: u32,
    /// The upper four bytes that the client expects of the next number.
    upper: u32,
    /// True if something has changed for waiting operations, so that the client tries them again.
    is_stirred: bool,
    /// No later than the earliest deadline of the waiting operations.
    next_deadline: Nanos,
    /// When waiting operations are tried again.
    retry_at: Nanos,
}

/// The mark of this client's tags; the tags of other calls of the endpoint must not have it.
const MARK: u64 = 0x5e90 << 48;
/// The place of a greeting in tags.
const GREETING: u32 = u32::MAX;

impl ClientOptions {
    /// One server, which does not create sequences, and five seconds for an operation.
    pub const DEFAULT: Self = Self {
        servers: 1,
        create: false,
        speculates: false,
        deadline: Nanos::from_secs(5),
        patience: Nanos::from_secs(1),
        least_pause: Nanos::from_millis(1),
        most_pause: Nanos::from_millis(200),
        number: 0,
    };
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl Client {
    /// Makes a client without a session.
    #[must_use]
    pub fn new(name: Name, options: ClientOptions) -> Self {
        Self {
            lane: Lane::new(options.servers),
            options,
            name,
            calls: Calls::default(),
            waiting: VecDeque::new(),
            ends: VecDeque::new(),
            epoch: 0,
            upper: 0,
            is_stirred: false,
            next_deadline: Nanos::MAX,
            retry_at: Nanos::MAX,
        }
    }

    /// The number of operations that have not ended.
    #[must_use]
    pub fn under_way(&self) -> usize {
        self.calls.live()
    }

    /// The epoch of the last server that this client has found; 0 if none.
    #[must_use]
    pub const fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Takes the next end of an operation.
    #[inline]
    pub fn next_end(&mut self) -> Option<End> {
        self.ends.pop_front()
    }

    /// A server with which the client wants a session, by its index. The owner begins to connect,
    /// and passes the session to [`Self::on_connecting`], or calls [`Self::on_refused`].
    pub fn wish(&mut self, now: Nanos) -> Option<usize> {
        self.lane.wish(now)
    }

    /// Notes the session that the owner is making for a wish.
    pub fn on_connecting(&mut self, session: Session) {
        self.lane.on_connecting(session);
    }

    /// Notes that a wish cannot be granted now.
    pub fn on_refused(&mut self, now: Nanos) {
        self.lane.on_failure(now, &self.options);
    }

    /// Takes an event of a session. Ignores events of sessions that are not the client's.
    pub fn on_session(&mut self, event: SessionEvent, cx: &mut Cx<'_>) {
        match event {
            SessionEvent::Connected(session) if self.lane.on_connected(session) => {
                self.greet(session, cx);
            }
            SessionEvent::Closed { session, .. } if self.lane.has(session) => {
                self.lane.on_failure(cx.now(), &self.options);
            }
            _ => {}
        }
        self.settle(cx);
    }

    /// Begins to take `count` numbers. Without a `deadline`, the deadline of the client's options
    /// applies. [`Self::next_end`] returns the end.
    ///
    /// # Errors
    /// [`Error::BadCount`]; then the operation is not begun.
    #[inline]
    pub fn begin(
        &mut self,
        count: u32,
        token: Token,
        deadline: Option<Nanos>,
        cx: &mut Cx<'_>,
    ) -> Result<(), Error> {
        if !(1..=MAX_COUNT).contains(&count) {
            return Err(Error::BadCount);
        }
        let deadline = deadline.unwrap_or_else(|| cx.now() + self.options.deadline);
        let place = self.calls.insert(Call {
            token,
            count,
            deadline,
            upper: 0,
        });
        self.issue(place, cx);
        Ok(())
    }

    /// Takes the end of a call of the endpoint. Returns it if the call is not this client's.
    #[inline]
    pub fn on_done(&mut self, done: Done, cx: &mut Cx<'_>) -> Option<Done> {
        let Some(place) = self.place(done.tag) else {
            return Some(done);
        };
        match done.result {
            _ if place == GREETING => self.on_greeted(&done, cx),
            Ok(()) => self.on_answer(place, &done.response, done.session, cx),
            Err(error) => self.on_failure(place, error, cx),
        }
        cx.recycle([done.request, done.response]);
        // The endpoint has room for a call again.
        self.is_stirred |= !self.waiting.is_empty();
        None
    }

    /// Does the work that is due: ends waiting operations whose deadline has passed, and tries the
    /// others again. The owner calls it before it waits, and when [`Self::next_wakeup`] has come.
    pub fn on_time(&mut self, cx: &mut Cx<'_>) {
        let now = cx.now();
        if now >= self.next_deadline {
            self.end_late(now);
        }
        if now >= self.retry_at {
            self.retry_at = Nanos::MAX;
            self.is_stirred = true;
        }
        self.settle(cx);
    }

    /// The time at which [`Self::on_time`] or [`Self::wish`] has work; [`Nanos::MAX`] if never.
    #[must_use]
    pub fn next_wakeup(&self) -> Nanos {
        match self.is_stirred || !self.ends.is_empty() {
            true => Nanos::ZERO,
            false => {
                let own = self.next_deadline.min(self.retry_at);
                own.min(self.lane.next_wish())
            }
        }
    }

    fn tag(&self, place: u32) -> Tag {
        Tag(MARK | u64::from(self.options.number) << 32 | u64::from(place))
    }

    #[inline]
    fn place(&self, tag: Tag) -> Option<u32> {
        let (mark, place) = halves(tag.0);
        (mark == halves(self.tag(0).0).0).then_some(place)
    }

    /// Issues an operation, or makes it wait.
    #[inline]
    fn issue(&mut self, place: u32, cx: &mut Cx<'_>) {
        let Some((session, sequence)) = self.lane.open() else {
            return self.wait(place);
        };
        let (speculates, upper) = (self.options.speculates, self.upper);
        let (tag, now) = (self.tag(place), cx.now());
        let call = self.calls.get_mut(place);
        if call.deadline <= now {
            return self.finish(place, Err(Error::DeadlinePassed));
        }
        call.upper = upper;
        let take = Take {
            sequence,
            epoch: self.epoch,
            count: call.count,
            expected: speculates.then_some(upper),
        };
        let options = CallOptions {
            deadline: Some(call.deadline.since(now)),
        };
        let (Ok(request), Ok(response)) = (cx.copy(&take.encode()), cx.buf(Answer::MAX_SIZE))
        else {
            return self.finish(place, Err(Error::NoBuffer));
        };
        if let Err(refused) = cx.call_with(session, TAKE, request, response, tag, options) {
            cx.recycle([refused.request, refused.response]);
            match refused.kind {
                CallErrorKind::TooLarge { .. } => self.finish(place, Err(Error::Incompatible)),
                _ => self.wait(place),
            }
        }
    }

    fn wait(&mut self, place: u32) {
        let deadline = self.calls.get_mut(place).deadline;
        self.next_deadline = self.next_deadline.min(deadline);
        self.waiting.push_back(place);
    }

    /// Makes an operation wait for another session, or for a server that is overloaded now.
    fn try_later(&mut self, place: u32, cx: &Cx<'_>) {
        self.wait(place);
        self.retry_at = self.retry_at.min(cx.now() + self.options.least_pause);
    }

    #[inline]
    fn finish(&mut self, place: u32, result: Result<Range<u64>, Error>) {
        let token = self.calls.remove(place).token;
        self.ends.push_back(End { token, result });
    }

    #[inline]
    fn on_answer(&mut self, place: u32, response: &MsgBuf, session: Session, cx: &mut Cx<'_>) {
        let call = *self.calls.get_mut(place);
        let Ok(answer) = Answer::decode(response.data()) else {
            return self.finish(place, Err(Error::Incompatible));
        };
        match answer.first(call.upper) {
            Ok(first) => {
                self.upper = halves(first).0;
                let numbers = numbers_from(first, call.count);
                self.finish(place, numbers.ok_or(Error::Incompatible));
            }
            Err(status) => self.on_refusal(place, status, session, cx),
        }
    }

    fn on_refusal(&mut self, place: u32, status: Status, session: Session, cx: &mut Cx<'_>) {
        if let Some(error) = Error::of_status(status) {
            return self.finish(place, Err(error));
        }
        match status {
            Status::Busy => {}
            Status::Moved if self.lane.on_moved(session) => self.greet(session, cx),
            Status::Moved => {}
            _ => self.leave(session, cx),
        }
        self.try_later(place, cx);
    }

    /// Handles a call that has ended without an answer.
    fn on_failure(&mut self, place: u32, error: RpcError, cx: &mut Cx<'_>) {
        match error {
            RpcError::Rejected(ErrorCode::UNDECODABLE | ErrorCode::UNKNOWN_TYPE, _) => {
                self.finish(place, Err(Error::Incompatible));
            }
            RpcError::DeadlinePassed(_) => self.finish(place, Err(Error::DeadlinePassed)),
            _ => self.try_later(place, cx),
        }
    }

    /// Asks for the sequence's number, over a session that has just opened or whose server has
    /// begun another epoch.
    fn greet(&mut self, session: Session, cx: &mut Cx<'_>) {
        let open = Open {
            known_epoch: self.epoch,
            create: self.options.create,
            name: self.name.as_str().as_bytes(),
        };
        let (tag, options) = (
            self.tag(GREETING),
            CallOptions {
                deadline: Some(self.options.patience),
            },
        );
        let (Ok(request), Ok(response)) = (cx.copy(&open.encode()), cx.buf(Opened::SIZE)) else {
            return self.leave(session, cx);
        };
        if let Err(refused) = cx.call_with(session, OPEN, request, response, tag, options) {
            cx.recycle([refused.request, refused.response]);
            self.leave(session, cx);
        }
    }

    fn on_greeted(&mut self, done: &Done, cx: &mut Cx<'_>) {
        let session = done.session;
        if !self.lane.has(session) {
            return;
        }
        match (done.result, Opened::decode(done.response.data())) {
            (Ok(()), Ok(Ok(opened))) if opened.epoch >= self.epoch => {
                self.epoch = opened.epoch;
                self.upper = halves(opened.next).0;
                self.lane.on_opened(session, opened.sequence);
                self.is_stirred = true;
            }
            (Ok(()), Ok(Err(status))) => match Error::of_status(status) {
                Some(error) => {
                    self.end_waiting(error);
                    self.leave(session, cx);
                }
                None => self.leave(session, cx),
            },
            (Err(RpcError::Rejected(ErrorCode::UNKNOWN_TYPE | ErrorCode::UNDECODABLE, _)), _)
            | (Ok(()), Err(_)) => {
                // Another of the servers may speak this protocol.
                if self.options.servers <= 1 {
                    self.end_waiting(Error::Incompatible);
                }
                self.leave(session, cx);
            }
            _ => self.leave(session, cx),
        }
    }

    /// Ends a session whose server cannot help. The client then tries the next server.
    fn leave(&mut self, session: Session, cx: &mut Cx<'_>) {
        if self.lane.has(session) {
            self.lane.on_failure(cx.now(), &self.options);
            // If it has already ended, there is nothing to do.
            let _ = cx.disconnect(session);
        }
    }

    /// Tries all waiting operations, if something has changed for them.
    fn settle(&mut self, cx: &mut Cx<'_>) {
        if !std::mem::take(&mut self.is_stirred) {
            return;
        }
        for _ in 0..self.waiting.len() {
            if let Some(place) = self.waiting.pop_front() {
                self.issue(place, cx);
            }
        }
    }

    fn end_late(&mut self, now: Nanos) {
        self.next_deadline = Nanos::MAX;
        for _ in 0..self.waiting.len() {
            let Some(place) = self.waiting.pop_front() else {
                return;
            };
            match self.calls.get_mut(place).deadline <= now {
                true => self.finish(place, Err(Error::DeadlinePassed)),
                false => self.wait(place),
            }
        }
    }

    fn end_waiting(&mut self, error: Error) {
        while let Some(place) = self.waiting.pop_front() {
            self.finish(place, Err(error));
        }
    }
}
