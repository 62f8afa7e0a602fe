//! Calls that leave, and calls that wait for a session, for the map, or for a place in the backlog.

use dunlin_channel::{Failures, Fault};
use dunlin_core::{CallError, CallErrorKind, CallOptions, Cx, Nanos, RpcError, Session};
use dunlin_msgbuf::MsgBuf;

use super::calls::{Call, Job, Route};
use super::machine::Client;
use crate::error::Error;
use crate::wire::{MAP, Map, set_tag};

/// The reason why a call that the client is about to issue still has its request.
const HAS_REQUEST: &str = "the endpoint does not have a call that is not issued";

/// The outcome of an attempt to issue a call.
pub(super) enum Issued {
    Yes,
    /// The call must wait.
    Later,
    No(Error),
    /// The server accepts requests of at most this number of bytes.
    TooLarge(u32),
}

impl Client {
    /// Issues a call, or makes it wait.
    pub(super) fn dispatch(&mut self, call: Call, cx: &mut Cx<'_>) {
        self.repeats.on_request();
        let place = self.calls.insert(call);
        self.try_place(place, cx);
    }

    /// Issues the call at a place, or makes it wait.
    pub(super) fn try_place(&mut self, place: u32, cx: &mut Cx<'_>) {
        let issued = self.issue(place, cx);
        self.conclude(place, issued, cx);
    }

    /// Makes a call wait or fail that the endpoint has not taken.
    pub(super) fn conclude(&mut self, place: u32, issued: Issued, cx: &mut Cx<'_>) {
        match issued {
            Issued::Yes => {}
            Issued::Later => self.wait(place),
            Issued::No(error) => self.fail(place, error, cx),
            Issued::TooLarge(limit) => self.on_too_large(place, limit as usize, cx),
        }
    }

    /// Makes a call wait.
    pub(super) fn wait(&mut self, place: u32) {
        let deadline = self.calls.get_mut(place).deadline;
        self.next_deadline = self.next_deadline.min(deadline);
        self.waiting.push_back(place);
    }

    /// If the rules and the budget of repeats allow another attempt, makes a failed call wait: for
    /// another session, or until a server is no longer overloaded. False: the call is not repeated.
    pub(super) fn try_later(&mut self, place: u32, error: RpcError, cx: &mut Cx<'_>) -> bool {
        let may_repeat = self.may_repeat(place);
        let call = self.calls.get_mut(place);
        let fault = Fault::of(error);
        let when = self
            .repeats
            .on_failure(&mut call.failures, &fault, may_repeat, cx.now());
        let Some(when) = when else {
            return false;
        };
        call.not_before = when;
        match call.job {
            Job::Keys(..) => self.dissolve(place, cx),
            _ => self.wait(place),
        }
        self.retry_at = self.retry_at.min(when);
        true
    }

    /// Tries all waiting calls, if something has changed for them.
    pub(super) fn settle(&mut self, cx: &mut Cx<'_>) {
        if !std::mem::take(&mut self.is_stirred) {
            return;
        }
        self.group_all(cx);
        for _ in 0..self.waiting.len() {
            if let Some(place) = self.waiting.pop_front() {
                self.try_place(place, cx);
            }
        }
    }

    /// Ends the calls that wait for a partition without a session. True: there were some.
    pub(crate) fn end_stuck(&mut self, error: Error, cx: &mut Cx<'_>) -> bool {
        let before = self.waiting.len();
        for _ in 0..before {
            let Some(place) = self.waiting.pop_front() else {
                break;
            };
            match self.is_stuck(place) {
                true => self.fail_or_miss(place, error, cx),
                false => self.waiting.push_back(place),
            }
        }
        self.waiting.len() < before
    }

    /// Whether the session with the endpoint of a key's partition is down.
    pub(crate) fn is_key_down(&self, key: &[u8]) -> bool {
        let map = self.map.as_ref();
        map.is_some_and(|map| self.is_down(map, map.partition_with(key)))
    }

    /// Whether a waiting call has no session because its lane is down.
    fn is_stuck(&mut self, place: u32) -> bool {
        let (call, map) = (self.calls.get_mut(place), self.map.as_ref());
        let partition = map.map(|map| (map, call.partition(map)));
        partition.is_some_and(|(map, partition)| self.is_down(map, partition))
    }

    /// Whether the session with the endpoint of a partition is down.
    fn is_down(&self, map: &Map, partition: u16) -> bool {
        let endpoint = map.endpoint(partition);
        endpoint.is_some_and(|endpoint| self.lanes.is_down(endpoint))
    }

    /// Ends the calls that have waited until their deadline.
    pub(super) fn end_late(&mut self, cx: &mut Cx<'_>) {
        self.next_deadline = Nanos::MAX;
        for _ in 0..self.waiting.len() {
            let Some(place) = self.waiting.pop_front() else {
                break;
            };
            match self.calls.get_mut(place).deadline <= cx.now() {
                true => self.fail(place, Error::Unavailable, cx),
                false => self.wait(place),
            }
        }
        self.end_late_multis(cx.now());
    }

    /// Issues a call that has its request.
    fn issue(&mut self, place: u32, cx: &mut Cx<'_>) -> Issued {
        let call = self.calls.get_mut(place);
        if call.deadline <= cx.now() {
            return Issued::No(Error::Unavailable);
        }
        if call.not_before > cx.now() {
            self.retry_at = self.retry_at.min(call.not_before);
            return Issued::Later;
        }
        let Some(map) = &self.map else {
            return Issued::Later;
        };
        let partition = call.partition(map);
        if partition >= map.partitions() {
            return Issued::No(Error::NoPartition);
        }
        let Some(way) = self.lanes.way(partition) else {
            return Issued::Later;
        };
        let mut request = call.request.take().expect(HAS_REQUEST);
        set_tag(request.data_mut(), way.tag);
        self.issue_on(way.session, place, request, cx)
    }

    /// Gives a call with this request to the endpoint.
    fn issue_on(
        &mut self,
        session: Session,
        place: u32,
        request: MsgBuf,
        cx: &mut Cx<'_>,
    ) -> Issued {
        let tag = self.calls.tag(place);
        let call = self.calls.get_mut(place);
        let Ok(response) = cx.buf(call.room) else {
            call.request = Some(request);
            return Issued::No(Error::NoBuffer);
        };
        let options = CallOptions {
            deadline: Some(call.deadline.since(cx.now())),
        };
        match cx.call_with(session, call.req_type, request, response, tag, options) {
            Ok(_) => Issued::Yes,
            Err(refused) => self.on_refused_call(place, refused, cx),
        }
    }

    /// Handles a call that the endpoint has not taken.
    #[cold]
    #[inline(never)]
    pub(super) fn on_refused_call(
        &mut self,
        place: u32,
        refused: CallError,
        cx: &mut Cx<'_>,
    ) -> Issued {
        self.take_back(place, refused.request);
        cx.recycle([refused.response]);
        match refused.kind {
            CallErrorKind::Overloaded | CallErrorKind::NoSession => Issued::Later,
            CallErrorKind::TooLarge { limit } => Issued::TooLarge(limit),
            CallErrorKind::WrongEndpoint => {
                unreachable!("a client is driven by the endpoint that has its sessions")
            }
        }
    }

    /// Takes the request of a call back from the endpoint.
    pub(super) fn take_back(&mut self, place: u32, request: MsgBuf) {
        let options = &self.options;
        let keyed = |job, request, deadline| options.keyed(job, request, deadline);
        self.calls.take_back(place, request, keyed);
    }

    /// Asks for the map over a session that has just opened, or whose server has a new map.
    pub(super) fn greet(&mut self, session: Session, cx: &mut Cx<'_>) {
        if !self.lanes.on_connected(session) {
            return;
        }
        let Ok(request) = cx.buf(0) else {
            return self.give_up(session, cx);
        };
        let call = Call {
            job: Job::Greeting,
            request: None,
            room: Map::MAX_SIZE,
            deadline: cx.now() + self.options.deadline,
            failures: Failures::default(),
            not_before: Nanos::ZERO,
            route: Route::Partition(0),
            req_type: MAP,
            is_read: true,
        };
        let place = self.calls.insert(call);
        if !matches!(self.issue_on(session, place, request, cx), Issued::Yes) {
            let call = self.calls.remove(place);
            cx.recycle(call.request);
            self.give_up(session, cx);
        }
    }

    /// Ends a session over which no greeting can be sent; the lane tries again after a pause.
    pub(super) fn give_up(&mut self, session: Session, cx: &mut Cx<'_>) {
        self.lanes.on_closed(session, cx.now(), &self.options);
        // If it has already ended, there is nothing to do.
        let _ = cx.disconnect(session);
    }
}
