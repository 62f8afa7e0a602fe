//! Services of the poll API within limits. All request types have one handler, which looks up by
//! type the limits of the request's service and the program's own handler. So services without
//! limits pay nothing for this, and the endpoint itself has no code for it.
//!
//! Invariant: a request that is refused has not reached a handler, and its code proves that to the
//! client (rule W13).

use std::collections::VecDeque;
use std::fmt;

use dunlin_core::{
    BatchFn, CompletionFn, Cx, DispatchFn, Done, Facts, GivenUpFn, Nanos, Refuse, Register,
    Request, SessionEvent, SessionFn, Ticket, TimerFn, TimerToken,
};
use dunlin_nexus::{EndpointBuilder, EndpointError, Rpc};
use dunlin_service::poll;
use dunlin_transport::auto::Auto;
use dunlin_wire::{ErrorCode, ReqType};

use crate::error::ServeError;
use crate::limits::Limits;
use crate::phase::Phase;
use crate::thread::{
    Report, Seat, Vitals, begin_drain, end_drain, is_drained, next_look, same_number, vitals,
};

/// An endpoint of the poll API on which services are registered within limits
/// ([`ServerBuilder::poll_within`](crate::ServerBuilder::poll_within)). It takes what an
/// [`Rpc`] takes: `KvPoll::register`, handlers one by one, and the functions for other events.
#[derive(Debug)]
pub struct LimitedRpc<A> {
    rpc: Rpc<Auto, Guarded<A>>,
    limits: Limits,
}

/// The state of the endpoint: the program's state, and the limits of its services.
struct Guarded<A> {
    app: A,
    /// The handlers, by request type, each with the index of its gate.
    by_type: Vec<Option<(DispatchFn<A>, usize)>>,
    gates: Vec<Gate>,
    completion: CompletionFn<A>,
    session: SessionFn<A>,
    timer: TimerFn<A>,
    given_up: GivenUpFn<A>,
    /// A batch handler was registered, which gets requests that no gate has seen.
    has_batches: bool,
}

/// The limits of a service, and its calls on this thread.
struct Gate {
    limits: Limits,
    /// Calls that the service has kept, with the times at which they end, the earliest first. Some
    /// may have ended already.
    timed: VecDeque<(Ticket, Nanos)>,
    /// Calls that the service has kept and whose deadlines are the client's. Some may have ended
    /// already.
    untimed: Vec<Ticket>,
}

/// A thread of a server whose services of the poll API have limits.
pub(crate) struct OfLimited<A>(LimitedRpc<A>);

impl<A> LimitedRpc<A> {
    /// Registers a handler; see [`Rpc::on`]. Handlers that are registered before the first service
    /// have limits of their own.
    pub fn on(&mut self, req_type: ReqType, run: DispatchFn<A>) {
        let guarded = self.rpc.app_mut();
        if guarded.gates.is_empty() {
            guarded.gates.push(Gate::new(self.limits));
        }
        let index = usize::from(req_type.0);
        if guarded.by_type.len() <= index {
            guarded.by_type.resize(index + 1, None);
        }
        guarded.by_type[index] = Some((run, guarded.gates.len() - 1));
        self.rpc.on(req_type, pass);
    }

    /// Sets the continuation; see [`Rpc::on_completion`].
    pub fn on_completion(&mut self, run: CompletionFn<A>) {
        self.rpc.app_mut().completion = run;
        self.rpc
            .on_completion(|it, done, cx| (it.completion)(&mut it.app, done, cx));
    }

    /// Sets the function that gets sessions; see [`Rpc::on_session`].
    pub fn on_session(&mut self, run: SessionFn<A>) {
        self.rpc.app_mut().session = run;
        self.rpc
            .on_session(|it, event, cx| (it.session)(&mut it.app, event, cx));
    }

    /// Sets the function that timers call; see [`Rpc::on_timer`].
    pub fn on_timer(&mut self, run: TimerFn<A>) {
        self.rpc.app_mut().timer = run;
        self.rpc
            .on_timer(|it, token, cx| (it.timer)(&mut it.app, token, cx));
    }

    /// Sets the function that gets requests whose clients no longer wait; see [`Rpc::on_given_up`].
    /// It also gets those that have ended by the time-out of their service.
    pub fn on_given_up(&mut self, run: GivenUpFn<A>) {
        self.rpc.app_mut().given_up = run;
        self.rpc
            .on_given_up(|it, ticket, cx| (it.given_up)(&mut it.app, ticket, cx));
    }
}

impl<A> Register<A> for LimitedRpc<A> {
    fn register(&mut self, req_type: ReqType, run: DispatchFn<A>) {
        self.on(req_type, run);
    }

    fn register_batch(&mut self, _: ReqType, _: usize, _: BatchFn<A>) {
        self.rpc.app_mut().has_batches = true;
    }

    /// Begins a service, which has limits of its own.
    fn add_service(&mut self, name: &'static str) {
        let gate = Gate::new(self.limits);
        self.rpc.app_mut().gates.push(gate);
        self.rpc.add_service(name);
    }

    fn add_facts(&mut self, facts: Facts) {
        self.rpc.add_facts(facts);
    }
}

/// The handler of all types: passes a request on, unless that is beyond its service's limits.
fn pass<A>(guarded: &mut Guarded<A>, request: Request<'_>, cx: &mut Cx<'_>) {
    let entry = guarded.by_type.get(usize::from(request.req_type().0));
    let Some(&(run, gate)) = entry.and_then(Option::as_ref) else {
        return request.refuse(cx, ErrorCode::UNKNOWN_TYPE);
    };
    let gate = &mut guarded.gates[gate];
    match gate.admit(&request, cx) {
        Err(code) => request.refuse(cx, code),
        Ok(end) => {
            let ticket = request.ticket(cx);
            run(&mut guarded.app, request, cx);
            gate.after(ticket, end, cx);
        }
    }
}

impl Gate {
    const fn new(limits: Limits) -> Self {
        Self {
            limits,
            timed: VecDeque::new(),
            untimed: Vec::new(),
        }
    }

    /// Lets a request pass. If the service has a time-out, returns the time at which the request
    /// ends, should its handler keep it.
    fn admit(&mut self, request: &Request<'_>, cx: &Cx<'_>) -> Result<Option<Nanos>, ErrorCode> {
        let Ok((context, message)) = poll::message_of(request, cx) else {
            return Err(ErrorCode::UNDECODABLE);
        };
        if self.limits.are_exceeded_by(message.len()) {
            return Err(ErrorCode::TOO_LARGE);
        }
        if self.limits.are_reached_by(self.calls()) {
            self.timed.retain(|(ticket, _)| is_kept(*ticket, cx));
            self.untimed.retain(|ticket| is_kept(*ticket, cx));
            if self.limits.are_reached_by(self.calls()) {
                return Err(ErrorCode::OVERLOADED);
            }
        }
        let span = self.limits.time().filter(|_| context.deadline.is_none());
        Ok(span.map(|span| cx.now() + span))
    }

    fn calls(&self) -> usize {
        self.timed.len() + self.untimed.len()
    }

    /// The handler has returned.
    fn after(&mut self, ticket: Ticket, end: Option<Nanos>, cx: &Cx<'_>) {
        let is_counted = end.is_some() || self.limits.count_calls();
        match end {
            _ if !is_counted || !is_kept(ticket, cx) => {}
            // All calls of a service have the same time, so this one ends last.
            Some(end) => self.timed.push_back((ticket, end)),
            None => self.untimed.push(ticket),
        }
    }

    /// Removes and returns the first call whose time is over. Also removes the calls before it,
    /// which have ended.
    fn take_late(&mut self, cx: &Cx<'_>) -> Option<Ticket> {
        while let Some((ticket, end)) = self.timed.front().copied() {
            let is_kept = is_kept(ticket, cx);
            if is_kept && end > cx.now() {
                break;
            }
            self.timed.pop_front();
            if is_kept {
                return Some(ticket);
            }
        }
        None
    }

    /// The time at which the first call ends, if it has not ended already.
    fn next_end(&self) -> Option<Nanos> {
        self.timed.front().map(|(_, end)| *end)
    }
}

/// Whether a request has no answer, and its client waits for one.
fn is_kept(ticket: Ticket, cx: &Cx<'_>) -> bool {
    cx.is_cancelled(ticket) == Ok(false)
}

impl<A> Guarded<A> {
    fn new(app: A) -> Self {
        Self {
            app,
            by_type: Vec::new(),
            gates: Vec::new(),
            completion: |_, done: Done, cx| cx.recycle([done.request, done.response]),
            session: |_, _: SessionEvent, _| {},
            timer: |_, _: TimerToken, _| {},
            given_up: |_, _: Ticket, _| {},
            has_batches: false,
        }
    }

    /// Ends calls that take too long. The program gets them through the same function as the calls
    /// that clients give up.
    fn end_late(&mut self, cx: &mut Cx<'_>) {
        for gate in &mut self.gates {
            while let Some(ticket) = gate.take_late(cx) {
                ticket.refuse(cx, ErrorCode::TIMED_OUT);
                (self.given_up)(&mut self.app, ticket, cx);
            }
        }
    }

    /// The time at which the next call may have taken too long.
    fn next_end(&self) -> Nanos {
        let ends = self.gates.iter().filter_map(Gate::next_end);
        ends.min().unwrap_or(Nanos::MAX)
    }
}

impl<A> OfLimited<A> {
    /// Makes an endpoint whose services have these limits each; `on` registers them.
    pub(crate) fn new(
        app: A,
        limits: Limits,
        builder: EndpointBuilder<Auto>,
        on: fn(&mut LimitedRpc<A>),
    ) -> Result<Self, EndpointError> {
        let rpc = builder.build(Guarded::new(app))?;
        let mut limited = LimitedRpc { rpc, limits };
        on(&mut limited);
        Ok(Self(limited))
    }

    /// Runs an iteration, which blocks at most until `limit`.
    fn turn(&mut self, limit: Nanos) {
        let rpc = &mut self.0.rpc;
        rpc.iterate(|guarded| limit.min(guarded.next_end()));
        if rpc.app().next_end() != Nanos::MAX {
            let (guarded, mut cx) = rpc.with();
            guarded.end_late(&mut cx);
        }
    }
}

impl<A> Seat for OfLimited<A> {
    fn run(&mut self, phase: &Phase) -> Report {
        phase.wake_after(self.0.rpc.waker());
        while phase.is_serving() {
            self.turn(Nanos::MAX);
        }
        let mut report = begin_drain(&mut self.0.rpc);
        while !phase.is_over() && !is_drained(&self.0.rpc) {
            let until = next_look(&mut self.0.rpc);
            while self.0.rpc.now() < until {
                self.turn(until);
            }
        }
        end_drain(&self.0.rpc, &mut report);
        report
    }

    fn mistake(&mut self) -> Option<ServeError> {
        let rpc = &self.0.rpc;
        let batches = rpc.app().has_batches.then_some(ServeError::LimitsOfPolls);
        batches.or_else(|| same_number(rpc))
    }

    fn vitals(&mut self) -> Vitals {
        vitals(&self.0.rpc)
    }
}

impl<A> fmt::Debug for Guarded<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guarded")
            .field("services", &self.gates.len())
            .finish_non_exhaustive()
    }
}
