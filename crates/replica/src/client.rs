//! A client of a cluster, as a state machine that the owner of an endpoint drives.
//!
//! It finds the leader: it asks the replica that led last, follows the address in a refusal, and
//! otherwise tries the next replica after a pause. A retried write keeps its name, so it is applied
//! once, even if several leaders receive it. Invariant: every operation ends once, at its deadline
//! at the latest; a write that ended at its deadline may still be applied later.
//!
//! | file | what it owns |
//! |---|---|
//! | `client/numbers.rs` | the numbers of writes |
//! | `client/operation.rs` | one operation, its name, and its bytes |
//! | `client/options.rs` | options, results and errors |
//! | `client/receive.rs` | ends of calls |
//! | `client/sent.rs` | operations in flight |

mod numbers;
mod operation;
mod options;
mod receive;
mod sent;

use std::collections::VecDeque;

use dunlin_core::{CallErrorKind, CallOptions, Cx, Nanos, Session, SessionEvent};

use crate::lanes::{Lanes, Pauses};
use crate::wire::{Name, OPERATE};
use numbers::Numbers;
pub use operation::Change;
use operation::{Kind, Operation};
pub use options::{ClientOptions, End, Error, Token};
use sent::Sent;

/// The name of the client in the cluster.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Identity {
    None,
    /// It has asked for a name.
    Opening,
    Open(u64),
}

/// A client of a cluster.
#[derive(Debug)]
pub struct Client {
    options: ClientOptions,
    lanes: Lanes,
    /// The lane to the replica that the client asks first.
    leader: usize,
    identity: Identity,
    numbers: Numbers,
    /// Operations that wait to be sent, in order.
    waiting: VecDeque<Operation>,
    sent: Sent,
    ends: VecDeque<End>,
    /// True if something has changed for waiting operations, so that the client tries them again.
    is_stirred: bool,
    /// The client sends no operation before this time.
    pause_until: Nanos,
}

impl Client {
    /// Makes a client of the replicas at these addresses, without a session.
    #[must_use]
    pub fn new(addresses: impl IntoIterator<Item = String>, options: ClientOptions) -> Self {
        let pauses = Pauses {
            least: options.least_pause,
            most: options.most_pause,
        };
        Self {
            lanes: Lanes::new(addresses, pauses),
            options,
            leader: 0,
            identity: Identity::None,
            numbers: Numbers::new(),
            waiting: VecDeque::new(),
            sent: Sent::default(),
            ends: VecDeque::new(),
            is_stirred: false,
            pause_until: Nanos::ZERO,
        }
    }

    /// Begins to read a key. Without a `deadline`, the deadline of the client's options applies.
    /// The end comes from [`Self::next_end`].
    ///
    /// # Errors
    /// The operation is not begun: [`Error::BadKey`].
    pub fn begin_get(
        &mut self,
        key: &[u8],
        token: Token,
        deadline: Option<Nanos>,
        cx: &mut Cx<'_>,
    ) -> Result<(), Error> {
        self.begin(Kind::Get, key, token, deadline, cx)
    }

    /// Begins to read items whose keys begin with `prefix`, in key order: at most `limit` of them,
    /// and only keys greater than `after` unless that is empty. The answer says whether there are
    /// more. The end comes from [`Self::next_end`].
    ///
    /// # Errors
    /// The operation is not begun: [`Error::BadKey`] or [`Error::BadLimit`].
    pub fn begin_range(
        &mut self,
        (prefix, after): (&[u8], &[u8]),
        limit: u32,
        token: Token,
        deadline: Option<Nanos>,
        cx: &mut Cx<'_>,
    ) -> Result<(), Error> {
        let after = after.to_vec();
        self.begin(Kind::Range { limit, after }, prefix, token, deadline, cx)
    }

    /// Begins to wait for changes of keys that begin with `prefix`, made by the log entry at an
    /// index or by later ones; index 0 means changes from now on.
    ///
    /// The operation ends when there is a change, or without one after a short wait. The program
    /// then goes on from the index that the answer names; it may use another client for this. The
    /// end comes from [`Self::next_end`].
    ///
    /// # Errors
    /// The operation is not begun: [`Error::BadKey`].
    pub fn begin_watch(
        &mut self,
        prefix: &[u8],
        from: u64,
        token: Token,
        deadline: Option<Nanos>,
        cx: &mut Cx<'_>,
    ) -> Result<(), Error> {
        self.begin(Kind::Watch(from), prefix, token, deadline, cx)
    }

    /// Begins to change a key. Without a `deadline`, the deadline of the client's options applies.
    /// The end comes from [`Self::next_end`].
    ///
    /// # Errors
    /// The operation is not begun: [`Error::BadKey`], [`Error::TooLong`], [`Error::BadLifetime`] or
    /// [`Error::BadSteps`].
    pub fn begin_change(
        &mut self,
        key: &[u8],
        change: Change,
        token: Token,
        deadline: Option<Nanos>,
        cx: &mut Cx<'_>,
    ) -> Result<(), Error> {
        self.begin(Kind::Change(change), key, token, deadline, cx)
    }

    fn begin(
        &mut self,
        kind: Kind,
        key: &[u8],
        token: Token,
        deadline: Option<Nanos>,
        cx: &mut Cx<'_>,
    ) -> Result<(), Error> {
        let deadline = deadline.unwrap_or_else(|| cx.now() + self.options.deadline);
        let expected = self.options.expected_value;
        let mut operation = Operation::new(kind, key, token, deadline, expected)?;
        // Mostly, no operation waits, and this one leaves at once.
        if self.waiting.is_empty()
            && cx.now() >= self.pause_until
            && let Some((lane, session)) = self.way()
            && self.has_name(&mut operation, cx.now())
        {
            self.send(operation, lane, session, cx);
            return Ok(());
        }
        self.waiting.push_back(operation);
        self.is_stirred = true;
        self.settle(cx);
        Ok(())
    }

    /// Takes the next end of an operation.
    pub fn next_end(&mut self) -> Option<End> {
        self.ends.pop_front()
    }

    /// The number of operations that have not ended, including the client's own request for a name.
    #[must_use]
    pub fn under_way(&self) -> usize {
        self.waiting.len() + self.sent.len()
    }

    /// The number of calls that the client has made.
    #[must_use]
    pub const fn calls(&self) -> u64 {
        self.sent.calls()
    }

    /// An address to which the client wants a session. The owner begins to connect, and passes the
    /// session to [`Self::on_connecting`]; if it cannot connect, it calls [`Self::on_refused`].
    pub fn wish(&mut self, now: Nanos) -> Option<String> {
        self.lanes.wish(now)
    }

    /// Notes the session that the owner is making for a wish.
    pub fn on_connecting(&mut self, address: &str, session: Session) {
        self.lanes.on_connecting(address, session);
    }

    /// Notes that a wish cannot be granted now.
    pub fn on_refused(&mut self, address: &str, now: Nanos) {
        self.lanes.on_refused(address, now);
    }

    /// Takes an event of a session. Ignores events of sessions that are not the client's.
    pub fn on_session(&mut self, event: SessionEvent, cx: &mut Cx<'_>) {
        match event {
            SessionEvent::Connected(session) => {
                self.is_stirred |= self.lanes.on_connected(session);
            }
            SessionEvent::Closed { session, .. } => self.lanes.on_closed(session, cx.now()),
            SessionEvent::Accepted(_) => {}
        }
        self.settle(cx);
    }

    /// Does the work that is due. The owner calls it before it waits, and when
    /// [`Self::next_wakeup`] has come.
    pub fn on_time(&mut self, cx: &mut Cx<'_>) {
        let now = cx.now();
        if self.waiting.iter().any(|it| it.deadline <= now) {
            let late = self.take_waiting(|it| it.deadline <= now);
            late.into_iter().for_each(|it| self.end_late(it));
        }
        self.is_stirred |= !self.waiting.is_empty() && now >= self.pause_until;
        self.settle(cx);
    }

    /// The time at which [`Self::on_time`] or [`Self::wish`] has work; [`Nanos::MAX`] if never.
    #[must_use]
    pub fn next_wakeup(&self) -> Nanos {
        if !self.ends.is_empty() {
            return Nanos::ZERO;
        }
        let deadlines = self.waiting.iter().map(|it| it.deadline);
        let due = deadlines.min().unwrap_or(Nanos::MAX);
        let pause = match self.is_stirred && !self.waiting.is_empty() {
            true => self.pause_until,
            false => Nanos::MAX,
        };
        due.min(pause).min(self.lanes.next_wish())
    }

    /// Moves out the waiting operations for which `is_wanted` returns true.
    fn take_waiting(&mut self, is_wanted: impl Fn(&Operation) -> bool) -> Vec<Operation> {
        let all = std::mem::take(&mut self.waiting).into_iter();
        let (taken, rest): (Vec<_>, Vec<_>) = all.partition(is_wanted);
        self.waiting = rest.into();
        taken
    }

    /// Sends the operations that can be sent now.
    fn settle(&mut self, cx: &mut Cx<'_>) {
        if !self.is_stirred || cx.now() < self.pause_until {
            return;
        }
        self.is_stirred = false;
        for _ in 0..self.waiting.len() {
            if cx.now() < self.pause_until {
                return;
            }
            let Some((lane, session)) = self.way() else {
                return;
            };
            let Some(mut operation) = self.waiting.pop_front() else {
                return;
            };
            match self.has_name(&mut operation, cx.now()) {
                true => self.send(operation, lane, session, cx),
                false => self.waiting.push_back(operation),
            }
        }
    }

    /// The lane for operations: the lane to the leader, or else any open one.
    #[inline]
    fn way(&mut self) -> Option<(usize, Session)> {
        match self.lanes.open(self.leader) {
            Some(session) => Some((self.leader, session)),
            None => self.other_way(),
        }
    }

    #[cold]
    fn other_way(&mut self) -> Option<(usize, Session)> {
        let count = self.lanes.len();
        let lanes = (0..count).map(|offset| (self.leader + offset) % count);
        let mut open = lanes.filter_map(|lane| Some((lane, self.lanes.open(lane)?)));
        let (lane, session) = open.next()?;
        self.leader = lane;
        Some((lane, session))
    }

    /// Gives a write its name if it has none. False: the write must wait, because the client has no
    /// name yet or its window is full.
    fn has_name(&mut self, operation: &mut Operation, now: Nanos) -> bool {
        if !operation.is_change() || operation.name.is_some() {
            return true;
        }
        match self.identity {
            Identity::None => {
                self.identity = Identity::Opening;
                let deadline = now + self.options.deadline;
                self.waiting.push_back(Operation::opening(deadline));
                self.is_stirred = true;
                false
            }
            Identity::Opening => false,
            Identity::Open(client) => {
                operation.name = self.numbers.take().map(|number| (client, number));
                operation.name.is_some()
            }
        }
    }

    fn send(&mut self, mut operation: Operation, lane: usize, session: Session, cx: &mut Cx<'_>) {
        let name = operation.name.map(|(client, number)| Name {
            client,
            number,
            first: self.numbers.first(),
        });
        let request = operation.encode(name, cx);
        let response = cx.buf(operation.room);
        let (Ok(request), Ok(response), true) = (request, response, self.sent.has_room()) else {
            return self.try_later(operation, cx);
        };
        let left = operation.deadline.since(cx.now());
        let options = CallOptions {
            deadline: Some(left.min(operation.attempt(lane, self.options.attempt))),
        };
        let tag = self.sent.next_tag();
        match cx.call_with(session, OPERATE, request, response, tag, options) {
            Ok(_) => {
                operation.attempts += 1;
                operation.lane = lane;
                self.sent.add(tag, operation);
            }
            Err(refused) => {
                cx.recycle([refused.request, refused.response]);
                match refused.kind {
                    CallErrorKind::TooLarge { .. } => self.end_failed(operation, Error::TooLong),
                    _ => self.try_later(operation, cx),
                }
            }
        }
    }

    /// Makes an operation, and all others with it, wait for a pause.
    fn try_later(&mut self, mut operation: Operation, cx: &mut Cx<'_>) {
        operation.is_redirected = false;
        self.waiting.push_front(operation);
        self.pause_until = cx.now() + self.options.pause;
        self.is_stirred = true;
    }
}
