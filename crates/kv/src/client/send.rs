//! Calls that leave, and those that wait for a session, for the map, or for a place in the backlog.

use dunlin_channel::{Failures, Fault};
use dunlin_core::{CallErrorKind, CallOptions, Cx, Nanos, RpcError, Session};

use super::calls::{Call, Job, Route};
use super::machine::Client;
use crate::error::Error;
use crate::wire::{MAP, Map, set_tag};

/// The outcome of an attempt to issue a call.
enum Issued {
    Yes,
    /// It must wait.
    Later,
    No(Error),
}

impl Client {
    /// Issues a call, or has it wait.
    #[inline]
    pub(super) fn dispatch(&mut self, call: Call, cx: &mut Cx<'_>) {
        self.repeats.on_request();
        let place = self.calls.insert(call);
        self.try_place(place, cx);
    }

    /// Issues the call at a place, or has it wait.
    #[inline]
    pub(super) fn try_place(&mut self, place: u32, cx: &mut Cx<'_>) {
        match self.issue(place, cx) {
            Issued::Yes => {}
            Issued::Later => self.wait(place),
            Issued::No(error) => self.fail(place, error, cx),
        }
    }

    /// Has a call wait.
    pub(super) fn wait(&mut self, place: u32) {
        let deadline = self.calls.get_mut(place).deadline;
        self.next_deadline = self.next_deadline.min(deadline);
        self.waiting.push_back(place);
    }

    /// Has a failed call wait, if the rules and the budget of repeats allow another attempt: for
    /// another session, or for a server that is overloaded now. False: it is not repeated.
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

    /// Tries all calls that wait, if something has changed for them.
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
            let route = self.calls.get_mut(place).route;
            match self.is_stuck(route) {
                true => self.fail_or_miss(place, error, cx),
                false => self.waiting.push_back(place),
            }
        }
        self.waiting.len() < before
    }

    /// Whether the session with the endpoint of a key's partition is down.
    pub(crate) fn is_key_down(&self, key: &[u8]) -> bool {
        self.is_stuck(Route::Key(dunlin_store::route(key)))
    }

    /// Whether the session with the endpoint of a partition is down.
    fn is_stuck(&self, route: Route) -> bool {
        let endpoint = self
            .map
            .as_ref()
            .and_then(|map| map.endpoint(route.partition(map)));
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

    /// The session on which a call goes, and the tag that its request carries.
    fn way(&self, route: Route) -> Result<Option<(Session, u32)>, Error> {
        let Some(map) = &self.map else {
            return Ok(None);
        };
        let endpoint = map
            .endpoint(route.partition(map))
            .ok_or(Error::NoPartition)?;
        let session = self.lanes.open(endpoint, map.tag());
        Ok(session.map(|session| (session, map.tag())))
    }

    #[inline]
    fn issue(&mut self, place: u32, cx: &mut Cx<'_>) -> Issued {
        let call = self.calls.get_mut(place);
        let route = call.route;
        if call.deadline <= cx.now() {
            return Issued::No(Error::Unavailable);
        }
        if call.not_before > cx.now() {
            self.retry_at = self.retry_at.min(call.not_before);
            return Issued::Later;
        }
        let (session, tag) = match self.way(route) {
            Ok(Some(way)) => way,
            Ok(None) => return Issued::Later,
            Err(error) => return Issued::No(error),
        };
        let call = self.calls.get_mut(place);
        if let Some(request) = &mut call.request {
            set_tag(request.data_mut(), tag);
        }
        self.issue_on(session, place, cx)
    }

    #[inline]
    fn issue_on(&mut self, session: Session, place: u32, cx: &mut Cx<'_>) -> Issued {
        let tag = self.calls.tag(place);
        let call = self.calls.get_mut(place);
        let Ok(response) = cx.buf(call.room) else {
            return Issued::No(Error::NoBuffer);
        };
        let request = call
            .request
            .take()
            .expect("a call that is not issued has it");
        let options = CallOptions {
            deadline: Some(call.deadline.since(cx.now())),
        };
        let issued = cx.call_with(session, call.req_type, request, response, tag, options);
        let Err(refused) = issued else {
            return Issued::Yes;
        };
        call.request = Some(refused.request);
        cx.recycle([refused.response]);
        match refused.kind {
            CallErrorKind::Overloaded | CallErrorKind::NoSession => Issued::Later,
            CallErrorKind::TooLarge { .. } => Issued::No(Error::MessageTooLong),
            CallErrorKind::WrongEndpoint => {
                unreachable!("a client is driven by the endpoint that has its sessions")
            }
        }
    }

    /// Asks for the map over a session that has just opened, or whose server has another one.
    pub(super) fn greet(&mut self, session: Session, cx: &mut Cx<'_>) {
        if !self.lanes.on_connected(session) {
            return;
        }
        let Ok(request) = cx.buf(0) else {
            return self.give_up(session, cx);
        };
        let call = Call {
            job: Job::Greeting,
            route: Route::Partition(0),
            req_type: MAP,
            request: Some(request),
            room: Map::MAX_SIZE,
            is_read: true,
            deadline: cx.now() + self.options.deadline,
            failures: Failures::default(),
            not_before: Nanos::ZERO,
        };
        let place = self.calls.insert(call);
        if !matches!(self.issue_on(session, place, cx), Issued::Yes) {
            let call = self.calls.remove(place);
            cx.recycle(call.request);
            self.give_up(session, cx);
        }
    }

    /// Ends a session over which no greeting goes; the lane tries again after a pause.
    pub(super) fn give_up(&mut self, session: Session, cx: &mut Cx<'_>) {
        self.lanes.on_closed(session, cx.now(), &self.options);
        // If it has ended by itself, there is nothing to do.
        let _ = cx.disconnect(session);
    }
}
