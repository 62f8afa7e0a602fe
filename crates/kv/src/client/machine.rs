//! The client's state, and the methods that the owner of its endpoint calls. Ends of calls are in
//! `receive.rs`.

use std::collections::VecDeque;

use dunlin_channel::Repeats;
use dunlin_core::{Cx, Nanos, Session, SessionEvent};

use super::calls::Calls;
use super::end::{End, Ends};
use super::lanes::{Lanes, LinkState};
use super::multi::Multis;
#[cfg(feature = "mutants")]
use super::options::Mutant;
use super::options::Options;
use crate::wire::Map;

/// A client of one server. An endpoint has one client or one [`Fleet`](crate::Fleet), because two
/// would take the ends of each other's calls.
#[derive(Debug)]
pub struct Client {
    pub(super) options: Options,
    pub(super) map: Option<Map>,
    pub(super) lanes: Lanes,
    pub(super) calls: Calls,
    pub(super) multis: Multis,
    /// Calls that wait for a session or for the map, in order.
    pub(super) waiting: VecDeque<u32>,
    pub(super) ends: Ends,
    /// True if something has changed for waiting calls, so that the client tries them again.
    pub(super) is_stirred: bool,
    /// No later than the earliest deadline of the waiting calls.
    pub(super) next_deadline: Nanos,
    /// When failed calls are tried again; [`Nanos::MAX`] if there are none.
    pub(super) retry_at: Nanos,
    pub(super) repeats: Repeats,
    /// The key and item of the latest get, for a planted bug.
    #[cfg(feature = "mutants")]
    pub(super) read: Option<(Vec<u8>, super::end::Item)>,
}

impl Client {
    /// Makes a client without a session.
    #[must_use]
    pub fn new(options: Options) -> Self {
        Self::numbered(options, 0)
    }

    /// Makes one of several clients of an endpoint, each of which has a distinct number.
    pub(crate) fn numbered(options: Options, number: u16) -> Self {
        Self {
            lanes: Lanes::new(options.first_endpoint),
            options,
            map: None,
            calls: Calls::new(number),
            multis: Multis::default(),
            waiting: VecDeque::new(),
            ends: Ends::default(),
            is_stirred: false,
            next_deadline: Nanos::MAX,
            retry_at: Nanos::MAX,
            repeats: Repeats::new(options.retry, options.seed ^ u64::from(number) << 48),
            #[cfg(feature = "mutants")]
            read: None,
        }
    }

    /// The server's map, once it is known.
    #[must_use]
    pub const fn map(&self) -> Option<&Map> {
        self.map.as_ref()
    }

    /// The number of operations that have not ended, and of greetings in flight.
    #[must_use]
    pub fn under_way(&self) -> usize {
        self.calls.live() + self.multis.live()
    }

    /// Takes the next end of an operation.
    pub fn next_end(&mut self) -> Option<End> {
        self.ends.pop()
    }

    /// An endpoint with which the client wants a session. The owner begins to connect, and passes
    /// the session to [`Self::on_connecting`]; if it cannot connect, it calls [`Self::on_refused`].
    pub fn wish(&mut self, now: Nanos) -> Option<u16> {
        self.lanes.wish(now)
    }

    /// Notes the session that the owner is making for a wish.
    pub fn on_connecting(&mut self, endpoint: u16, session: Session) {
        self.takes(endpoint, session);
    }

    /// Notes that a wish cannot be granted now.
    pub fn on_refused(&mut self, endpoint: u16, now: Nanos) {
        self.lanes.on_refused(endpoint, now, &self.options);
    }

    /// Takes an event of a session. Ignores events of sessions that are not the client's.
    pub fn on_session(&mut self, event: SessionEvent, cx: &mut Cx<'_>) {
        match event {
            SessionEvent::Connected(session) => self.greet(session, cx),
            SessionEvent::Closed { session, .. } => {
                self.lanes.on_closed(session, cx.now(), &self.options);
            }
            SessionEvent::Accepted(_) => {}
        }
        self.settle(cx);
    }

    /// Ends waiting calls whose deadline has passed, and tries the others again when it is time.
    /// The owner calls it before it waits, and when [`Self::next_wakeup`] has come.
    pub fn on_time(&mut self, cx: &mut Cx<'_>) {
        if cx.now() >= self.next_deadline {
            self.end_late(cx);
        }
        if cx.now() >= self.retry_at {
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
                own.min(self.lanes.next_wish())
            }
        }
    }

    // For the client of several servers.

    /// The state of the session with the endpoint that is asked first.
    #[inline]
    pub(crate) fn link(&self) -> LinkState {
        self.lanes.link()
    }

    /// Notes the session that the owner is making for a wish. False: the client does not want it.
    pub(crate) fn takes(&mut self, endpoint: u16, session: Session) -> bool {
        self.lanes.on_connecting(endpoint, session)
    }

    /// Whether this is the session with the endpoint that is asked first.
    pub(crate) fn is_link(&self, session: Session) -> bool {
        self.lanes.is_first(session)
    }

    /// Whether this is the endpoint that is asked first.
    pub(crate) const fn is_first(&self, endpoint: u16) -> bool {
        endpoint == self.options.first_endpoint
    }

    /// Whether operations may wait for a session.
    #[inline]
    pub(crate) fn may_wait(&self) -> bool {
        !self.waiting.is_empty() || self.multis.live() > 0
    }

    /// Whether any session is open.
    pub(crate) fn is_open(&self) -> bool {
        self.lanes.any_open()
    }

    /// Ends all sessions.
    pub(crate) fn close(&mut self, cx: &mut Cx<'_>) {
        for session in self.lanes.sessions() {
            // If it has already ended, there is nothing to do.
            let _ = cx.disconnect(session);
        }
    }

    #[cfg(feature = "mutants")]
    pub(super) fn shows(&self, mutant: Mutant) -> bool {
        self.options.mutant == Some(mutant)
    }
}
