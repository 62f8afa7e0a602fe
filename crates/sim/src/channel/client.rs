//! A client: a channel's machine, driven over an endpoint. It issues the calls of its plan.
//!
//! Invariant: every attempt that the machine hands out is, until it ends, a call of the endpoint,
//! whose tag is the attempt's number. Called by the world, and by `stage`, which stands in for a
//! nexus. `client/drops.rs` has the callers that drop their calls, `client/picks.rs` the judge of
//! picks, `client/load.rs` the functions for drills, and `client/late.rs` a planted bug.

mod drops;
mod late;
mod load;
mod picks;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use dunlin_channel::{
    Action, AttemptId, CallEnd, CallId, Counters, Fault, LinkId, Machine, Opened, Outcome, State,
    Terms,
};
use dunlin_core::{CallOptions, CloseReason, Cx, Done, HandleError, Nanos, RpcError, Session, Tag};

use dunlin_wire::ErrorCode;

use self::late::{Late, is_lost};
use self::picks::{Before, Picks};
use super::bug::Bug;
use super::desk::{Desk, Order};
use super::ledger::Shared;
use super::plan::{self, Plan};
use super::server::{CALL, index};
use crate::world::net::{NetHandle, PortId, SimEndpoint, SimTransport, take_reports};
use crate::world::rng::Rng;

/// Completions that the machine has not received yet.
#[derive(Default)]
pub(super) struct Inbox {
    done: Vec<Done>,
}

struct Attempt {
    id: AttemptId,
    name: usize,
    link: LinkId,
    call: dunlin_core::CallId,
    is_cancelled: bool,
}

/// An open session.
struct Link {
    session: Session,
    server: usize,
    is_draining: bool,
}

pub(super) struct Client {
    rpc: SimEndpoint<Inbox>,
    machine: Machine,
    port: PortId,
    desk: Desk,
    ledger: Shared,
    rng: Rng,
    now: Nanos,
    is_closed: bool,
    connecting: BTreeMap<LinkId, usize>,
    links: BTreeMap<LinkId, Link>,
    listed: Vec<String>,
    /// The endpoint's usual longest time before it asks for a late answer. Set while a server
    /// drains, because the endpoint then asks more often.
    calm: Option<Nanos>,
    /// The time since which an open link leads to a listed server that is not draining.
    ready: Option<Nanos>,
    /// Outcomes to report a second time, as a fault.
    again: VecDeque<(AttemptId, Outcome)>,
    /// Completions that a planted bug holds back.
    late: Late,
    /// The attempts under way, by tag.
    attempts: BTreeMap<u64, Attempt>,
    names: BTreeMap<CallId, usize>,
    tags: u64,
    /// When the next calls begin.
    begin: VecDeque<Nanos>,
    cancel: BTreeSet<(Nanos, usize, CallId)>,
    plan: Plan,
    picks: Picks,
}

impl Client {
    pub(super) fn boot(
        net: &NetHandle,
        port: PortId,
        plan: &Plan,
        (desk, ledger): (Desk, Shared),
        mut rng: Rng,
    ) -> Self {
        let seed = rng.next_u64();
        let app = Inbox::default();
        let mut rpc = SimTransport::endpoint(net, port, app, plan::endpoint(), seed);
        rpc.on_completion(|app, done, _: &mut Cx<'_>| app.done.push(done));
        let mut at = plan.begin;
        let begin = (0..plan.calls).map(|_| {
            at += Nanos(rng.exponential(plan.gap.0));
            at
        });
        Self {
            rpc,
            machine: Machine::new(plan.channel, seed, Nanos::ZERO),
            port,
            desk,
            ledger,
            begin: begin.collect(),
            rng,
            now: Nanos::ZERO,
            is_closed: false,
            connecting: BTreeMap::new(),
            listed: Vec::new(),
            calm: None,
            ready: None,
            again: VecDeque::new(),
            late: Late::default(),
            links: BTreeMap::new(),
            attempts: BTreeMap::new(),
            names: BTreeMap::new(),
            tags: 0,
            cancel: BTreeSet::new(),
            plan: plan.clone(),
            picks: Picks::new(plan),
        }
    }

    pub(super) fn run_once(&mut self) {
        self.rpc.run_once();
        self.now = self.now.max(self.rpc.now());
        take_reports(&mut self.rpc);
        let mut ended = std::mem::take(&mut self.rpc.app_mut().done);
        if self.plan.bug == Some(Bug::LateEndOfLost) {
            self.late.delay_lost(&mut ended, self.now);
        }
        for done in ended {
            self.on_done(done);
        }
        if self.again.len() > 4
            && let Some((id, outcome)) = self.again.pop_front()
        {
            self.machine.on_end(id, outcome, self.now);
        }
        self.begin_due();
        self.cancel_due();
        self.settle();
    }

    /// Checks that no call is late.
    pub(super) fn check(&mut self, now: Nanos) {
        let is_ready = self.links.values().any(|link| self.may_be_picked(link));
        self.ready = is_ready.then(|| self.ready.unwrap_or(now));
        let (patience, ready) = (self.plan.channel.patience, self.ready);
        let mut ledger = self.ledger.borrow_mut();
        ledger.check(self.port.0, now, patience, ready);
        for attempt in self.attempts.values() {
            ledger.check_attempt(attempt.name, self.port.0, attempt.link, now);
        }
    }

    fn may_be_picked(&self, link: &Link) -> bool {
        let mut mates = self
            .links
            .values()
            .filter(|mate| mate.server == link.server);
        let name = link.server.to_string();
        mates.all(|mate| !mate.is_draining) && self.listed.contains(&name)
    }

    pub(super) fn next_wakeup(&mut self) -> Nanos {
        let machine = self.machine.next_wakeup();
        let begin = match self.names.len() < self.plan.in_flight {
            true => Some(self.now),
            false => self.begin.front().copied(),
        };
        let cancel = self.cancel.first().map(|(at, ..)| *at);
        let own = machine.into_iter().chain(begin).chain(cancel).min();
        self.rpc.next_wakeup().min(own.unwrap_or(Nanos::MAX))
    }

    pub(super) fn rpc(&mut self) -> &mut SimEndpoint<Inbox> {
        &mut self.rpc
    }

    pub(super) fn counters(&self) -> Counters {
        *self.machine.counters()
    }

    /// Describes an address that does not serve although no fault is left, if there is one.
    pub(super) fn ill(&self) -> Option<String> {
        let mut views = self.machine.addresses();
        let is_ill = |state| matches!(state, State::Connecting | State::Gone);
        let ill = views.find(|view| is_ill(view.state));
        ill.map(|view| format!("port {}: no fault is left, and {view:?}", self.port.0))
    }

    /// Number of attempts that have not ended.
    pub(super) fn under_way(&self) -> usize {
        self.attempts.len()
    }

    // Events from the stage.

    /// Handles the opening of a link, which the client may no longer want.
    pub(super) fn on_opened(&mut self, link: LinkId, session: Session, opened: &Opened) {
        let Some(server) = self.connecting.remove(&link) else {
            self.end_session(session);
            return self.order(Order::Disconnected(session));
        };
        let entry = Link {
            session,
            server,
            is_draining: false,
        };
        self.links.insert(link, entry);
        self.machine.on_opened(link, opened, self.now);
    }

    /// Handles a link that could not be opened, or that is lost.
    pub(super) fn on_closed(&mut self, link: LinkId, reason: CloseReason) {
        self.connecting.remove(&link);
        if let Some(entry) = self.links.remove(&link) {
            self.rpc.lifecycle().close(entry.session, reason);
        }
        self.hurry();
        self.machine.on_closed(link, reason, self.now);
    }

    pub(super) fn on_draining(&mut self, link: LinkId) {
        if let Some(entry) = self.links.get_mut(&link) {
            entry.is_draining = true;
        }
        self.hurry();
        self.machine.on_serving(link, true, 1, self.now);
    }

    pub(super) fn on_names(&mut self, names: Option<&[String]>) {
        match names {
            Some(names) => {
                self.listed = names.to_vec();
                let names = names.iter().map(String::as_str);
                self.machine.on_addresses(names, self.now);
            }
            None => self.machine.on_lookup_failed(self.now),
        }
    }

    pub(super) fn close(&mut self) {
        self.is_closed = true;
        self.machine.close(self.now);
    }

    // Calls.

    fn begin_due(&mut self) {
        while self.begin.front().is_some_and(|at| *at <= self.now) {
            self.begin.pop_front();
            self.begin_call();
        }
        while self.names.len() < self.plan.in_flight {
            self.begin_call();
        }
    }

    fn begin_call(&mut self) {
        let (now, rng, plan) = (self.now, &mut self.rng, &self.plan);
        let own = rng
            .chance(plan.deadlines)
            .then(|| now + Nanos(rng.exponential(50_000_000)));
        let key = plan.draw_key(rng);
        let terms = Terms {
            idempotent: rng.chance(plan.idempotent),
            once: plan.notices && key.is_multiple_of(4),
            deadline: own.or(plan.channel.deadline.map(|span| now + span)),
            key: Some(key),
            endpoint: None,
        };
        let before = Before::of(&self.machine);
        let Ok(call) = self.machine.on_call(terms, now) else {
            return;
        };
        let mut ledger = self.ledger.borrow_mut();
        let times = (now, ledger.calm());
        if let Err(what) = self.picks.on_call(&before, &self.machine, key, times) {
            ledger.violate(what);
        }
        let name = ledger.begin(self.port.0, terms, now);
        drop(ledger);
        self.names.insert(call, name);
        if rng.chance(plan.cancels) {
            let at = now + Nanos(rng.exponential(5_000_000));
            self.cancel.insert((at, name, call));
        }
    }

    /// Carries out the machine's actions.
    fn settle(&mut self) {
        while let Some(action) = self.machine.poll(self.now) {
            match action {
                Action::Connect { link, address, .. } => self.connect(link, address),
                Action::Disconnect { link } => self.disconnect(link),
                Action::Send {
                    attempt,
                    call,
                    link,
                    deadline,
                } => {
                    self.send(attempt, call, link, deadline);
                }
                Action::Cancel { attempt } => self.cancel_attempt(attempt),
                Action::End { call, end } => {
                    let name = self.names.remove(&call);
                    self.end(name.expect("the machine has named it"), end);
                }
                Action::LookUp => self.order(Order::LookUp),
            }
        }
    }

    fn end(&self, name: usize, end: CallEnd) {
        let goes_on = |attempt: &Attempt| attempt.name == name && !attempt.is_cancelled;
        if self.attempts.values().any(goes_on) {
            self.violate(format!(
                "call {name} has ended, but an attempt at it continues"
            ));
        }
        let patience = self.plan.channel.patience;
        self.ledger.borrow_mut().end(name, end, self.now, patience);
    }

    fn order(&self, order: Order) {
        self.desk.borrow_mut().push((self.port, order));
    }

    fn connect(&mut self, link: LinkId, address: dunlin_channel::AddressId) {
        let mut views = self.machine.addresses();
        let view = views.find(|view| view.id == address);
        let server = view.and_then(|view| view.name.parse().ok());
        let server = server.expect("names are numbers");
        self.connecting.insert(link, server);
        self.order(Order::Connect(link, server));
    }

    fn disconnect(&mut self, link: LinkId) {
        self.connecting.remove(&link);
        let Some(Link { session, .. }) = self.links.remove(&link) else {
            return;
        };
        self.hurry();
        let is_used = self.attempts.values().any(|attempt| attempt.link == link);
        if is_used && !self.is_closed {
            self.violate(format!("{link:?} is disconnected with calls under way"));
        }
        self.end_session(session);
        self.order(Order::Disconnected(session));
    }

    /// Ends a session, unless it has already ended.
    fn end_session(&mut self, session: Session) {
        if self.rpc.disconnect(session) == Err(HandleError::WrongEndpoint) {
            self.violate(format!("{session:?} is of another endpoint"));
        }
    }

    fn send(&mut self, id: AttemptId, call: CallId, link: LinkId, deadline: Option<Nanos>) {
        let Some(name) = self.names.get(&call).copied() else {
            return self.violate(format!("a call that has ended is sent: {call:?}"));
        };
        let live = self.attempts.values().filter(|it| it.name == name).count();
        let most = usize::from(self.plan.channel.retry.attempts);
        let now = self.now;
        let mut ledger = self.ledger.borrow_mut();
        ledger.send(name, (live, most), deadline, now);
        drop(ledger);
        let Some(entry) = self.links.get(&link) else {
            return self.violate(format!("a request goes over {link:?}, which is not open"));
        };
        let session = entry.session;
        if !self.may_be_picked(entry) {
            self.violate(format!(
                "a request goes to a server that drains or left: {link:?}"
            ));
        }
        let bufs = (
            self.rpc.cx().copy(&(name as u64).to_le_bytes()),
            self.rpc.buf(8),
        );
        let (Ok(request), Ok(response)) = bufs else {
            return self.violate("there is no memory for a request".to_owned());
        };
        self.tags += 1;
        let options = CallOptions {
            deadline: deadline.map(|end| end.since(self.now)),
        };
        let taken = self
            .rpc
            .call_with(session, CALL, request, response, Tag(self.tags), options);
        match taken {
            Ok(call) => {
                self.machine.on_issued(id);
                self.attempts.insert(
                    self.tags,
                    Attempt {
                        id,
                        name,
                        link,
                        call,
                        is_cancelled: false,
                    },
                );
            }
            Err(refused) => {
                let fault = Fault::NotTaken(refused.kind);
                self.on_end(id, name, Outcome::Failed(fault));
            }
        }
    }

    fn on_done(&mut self, done: Done) {
        let Some(attempt) = self.attempts.remove(&done.tag.0) else {
            return self.violate(format!("no attempt has the tag {:?}", done.tag));
        };
        let outcome = match done.result {
            Ok(()) => {
                let answer = done.response.data().first_chunk();
                let answer = answer.map(|name| index(u64::from_le_bytes(*name)));
                if answer != Some(attempt.name) {
                    self.violate(format!("call {} has another's answer", attempt.name));
                }
                Outcome::Answered
            }
            Err(error) => Outcome::Failed(Fault::of(error)),
        };
        self.on_end(attempt.id, attempt.name, outcome);
        if self.rng.chance(self.plan.cancels) {
            self.drop_call(attempt.name);
        }
    }

    fn on_end(&mut self, id: AttemptId, name: usize, outcome: Outcome) {
        let shutting_down = Fault::Sent(RpcError::rejected(ErrorCode::SHUTTING_DOWN, true));
        let is_free = match outcome {
            Outcome::Answered => false,
            Outcome::Failed(Fault::NotTaken(_) | Fault::NotSent(_)) => {
                self.ledger.borrow_mut().take_back(name);
                true
            }
            Outcome::Failed(fault) if fault == shutting_down => {
                self.ledger.borrow_mut().take_back(name);
                true
            }
            Outcome::Failed(_) => false,
        };
        if matches!(outcome, Outcome::Answered | Outcome::Failed(Fault::Sent(_))) {
            self.ledger.borrow_mut().leave(name);
        }
        if self.attempts.values().all(|attempt| attempt.name != name) {
            let is_lost = matches!(outcome, Outcome::Failed(Fault::Sent(error)) if is_lost(error));
            let ends = (is_free, is_lost);
            self.ledger.borrow_mut().idle(name, self.now, ends);
        }
        if self.rng.one_in(5) {
            self.again.push_back((id, outcome));
        }
        self.machine.on_end(id, outcome, self.now);
    }

    fn violate(&self, what: String) {
        self.ledger.borrow_mut().violate(what);
    }
}
