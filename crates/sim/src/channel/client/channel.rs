//! A channel's machine, driven over an endpoint and shared sessions. It issues the calls of its
//! plan.
//!
//! Invariant: every attempt that the machine hands out is, until it ends, a call of the endpoint,
//! whose tag has the attempt's number, or waits for its turn.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use dunlin_channel::{
    Action, AttemptId, CallEnd, CallId, Counters, Facts, LinkId, Machine, Member, Opened, Outcome,
    State, Terms, TrunkId,
};
use dunlin_core::{CloseReason, Nanos, Tag};

use super::super::desk::{Desk, Order};
use super::super::ledger::Shared;
use super::super::plan::{MOST_CHANNELS, Plan};
use super::around::Around;
use super::attempts::Attempt;
use super::picks::{Before, Picks};
use crate::world::net::PortId;
use crate::world::rng::Rng;

/// A connection to a server, which is a member of a trunk.
pub(super) struct Link {
    pub(super) server: usize,
    pub(super) trunk: TrunkId,
    pub(super) is_open: bool,
    is_draining: bool,
    /// Attempts that wait for their turn, by tag.
    pub(super) waiting: VecDeque<u64>,
}

pub(in crate::channel) struct Channel {
    /// The index among the channels of its client.
    index: usize,
    /// The number among all channels of the run.
    pub(super) number: usize,
    pub(super) port: PortId,
    pub(super) machine: Machine,
    desk: Desk,
    pub(super) ledger: Shared,
    pub(super) rng: Rng,
    pub(super) is_closed: bool,
    pub(super) links: BTreeMap<LinkId, Link>,
    listed: Vec<String>,
    /// The time since which an open link leads to a listed server that is not draining.
    ready: Option<Nanos>,
    /// Outcomes to report a second time, as a fault.
    pub(super) again: VecDeque<(AttemptId, Outcome)>,
    /// The attempts under way, by tag.
    pub(super) attempts: BTreeMap<u64, Attempt>,
    pub(super) names: BTreeMap<CallId, usize>,
    pub(super) tags: u64,
    /// When the next calls begin.
    pub(super) begin: VecDeque<Nanos>,
    pub(super) cancel: BTreeSet<(Nanos, usize, CallId)>,
    pub(super) plan: Plan,
    pub(super) picks: Picks,
}

/// The index of the channel in a tag.
pub(super) fn index_of(Tag(tag): Tag) -> usize {
    usize::try_from(tag >> 32).expect("a client has few channels")
}

impl Channel {
    pub(super) fn open(
        index: usize,
        port: PortId,
        plan: &Plan,
        (desk, ledger): (Desk, Shared),
        mut rng: Rng,
    ) -> Self {
        let seed = rng.next_u64();
        let mut at = plan.begin;
        let begin = (0..plan.calls).map(|_| {
            at += Nanos(rng.exponential(plan.gap.0));
            at
        });
        Self {
            index,
            number: port.0 * MOST_CHANNELS + index,
            machine: Machine::new(plan.channel, seed, Nanos::ZERO),
            port,
            desk,
            ledger,
            begin: begin.collect(),
            rng,
            is_closed: false,
            listed: Vec::new(),
            ready: None,
            again: VecDeque::new(),
            links: BTreeMap::new(),
            attempts: BTreeMap::new(),
            names: BTreeMap::new(),
            tags: 0,
            cancel: BTreeSet::new(),
            plan: plan.clone(),
            picks: Picks::new(plan),
        }
    }

    /// A turn of the client's thread.
    pub(super) fn turn(&mut self, around: &mut Around) {
        if self.again.len() > 4
            && let Some((id, outcome)) = self.again.pop_front()
        {
            self.machine.on_end(id, outcome, around.now);
        }
        self.begin_due(around.now);
        self.cancel_due(around.now);
        self.settle(around);
    }

    /// Checks that no call is late.
    pub(in crate::channel) fn check(&mut self, now: Nanos) {
        let is_ready = self.links.values().any(|link| self.may_be_picked(link));
        self.ready = is_ready.then(|| self.ready.unwrap_or(now));
        let (patience, ready) = (self.plan.channel.patience, self.ready);
        let mut ledger = self.ledger.borrow_mut();
        ledger.check(self.number, now, patience, ready);
        for attempt in self.attempts.values() {
            if let Some(issued) = &attempt.issued {
                ledger.check_attempt(attempt.name, (self.port.0, issued.line), now);
            }
        }
    }

    pub(super) fn may_be_picked(&self, link: &Link) -> bool {
        let mut mates = self
            .links
            .values()
            .filter(|mate| mate.server == link.server);
        let name = link.server.to_string();
        link.is_open && mates.all(|mate| !mate.is_draining) && self.listed.contains(&name)
    }

    pub(super) fn next_wakeup(&self, now: Nanos) -> Option<Nanos> {
        let machine = self.machine.next_wakeup();
        let begin = match self.names.len() < self.plan.in_flight {
            true => Some(now),
            false => self.begin.front().copied(),
        };
        let cancel = self.cancel.first().map(|(at, ..)| *at);
        machine.into_iter().chain(begin).chain(cancel).min()
    }

    pub(super) const fn is_closed(&self) -> bool {
        self.is_closed
    }

    pub(in crate::channel) fn counters(&self) -> Counters {
        *self.machine.counters()
    }

    /// Describes an address that does not serve although no fault is left, if there is one.
    pub(in crate::channel) fn ill(&self) -> Option<String> {
        if self.is_closed {
            return None;
        }
        let mut views = self.machine.addresses();
        let is_ill = |state| matches!(state, State::Connecting | State::Gone);
        let ill = views.find(|view| is_ill(view.state));
        ill.map(|view| format!("port {}: no fault is left, and {view:?}", self.port.0))
    }

    /// Number of attempts that have not ended.
    pub(in crate::channel) fn under_way(&self) -> usize {
        self.attempts.len()
    }

    // Events of links.

    /// The name of a link among all channels of the client.
    pub(super) fn member(&self, link: LinkId) -> Member {
        let channel = u32::try_from(self.index).expect("a client has few channels");
        (channel, link)
    }

    pub(super) fn on_opened(&mut self, link: LinkId, facts: &Facts, now: Nanos) {
        let Some(entry) = self.links.get_mut(&link) else {
            return;
        };
        let said = facts.said.expect("the stage announces each server");
        entry.is_open = true;
        entry.is_draining = said.serving.draining;
        let opened = Opened {
            server: said.process,
            endpoint: facts.endpoint.into(),
            endpoints: said.serving.endpoints.into(),
            window: facts.window,
            draining: said.serving.draining,
        };
        self.machine.on_opened(link, &opened, now);
    }

    /// Handles a link that could not be opened, or that is lost.
    pub(super) fn on_closed(&mut self, link: LinkId, reason: CloseReason, around: &mut Around) {
        let Some(entry) = self.links.remove(&link) else {
            return;
        };
        around.turns.on_leave(entry.trunk, self.member(link));
        self.machine.on_closed(link, reason, around.now);
        self.end_waiting(entry, reason, around.now);
    }

    pub(super) fn on_draining(&mut self, link: LinkId, now: Nanos) {
        if let Some(entry) = self.links.get_mut(&link).filter(|link| link.is_open) {
            entry.is_draining = true;
            self.machine.on_serving(link, true, 1, now);
        }
    }

    pub(super) fn on_names(&mut self, names: Option<&[String]>, now: Nanos) {
        match names {
            Some(names) => {
                self.listed = names.to_vec();
                let names = names.iter().map(String::as_str);
                self.machine.on_addresses(names, now);
            }
            None => self.machine.on_lookup_failed(now),
        }
    }

    /// The program drops the channel, and makes no further call.
    pub(super) fn close(&mut self, now: Nanos) {
        self.is_closed = true;
        self.plan.in_flight = 0;
        self.begin.clear();
        self.machine.close(now);
    }

    // Calls.

    fn begin_due(&mut self, now: Nanos) {
        while self.begin.front().is_some_and(|at| *at <= now) {
            self.begin.pop_front();
            self.begin_call(now);
        }
        while self.names.len() < self.plan.in_flight {
            self.begin_call(now);
        }
    }

    fn begin_call(&mut self, now: Nanos) {
        let (rng, plan) = (&mut self.rng, &self.plan);
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
        let name = ledger.begin(self.number, terms, now);
        drop(ledger);
        self.names.insert(call, name);
        if rng.chance(plan.cancels) {
            let at = now + Nanos(rng.exponential(5_000_000));
            self.cancel.insert((at, name, call));
        }
    }

    /// Carries out the machine's actions.
    pub(super) fn settle(&mut self, around: &mut Around) {
        while let Some(action) = self.machine.poll(around.now) {
            match action {
                Action::Connect { link, address, .. } => self.connect(link, address, around),
                Action::Disconnect { link } => self.disconnect(link, around),
                Action::Send {
                    attempt,
                    call,
                    link,
                    deadline,
                } => {
                    self.send(attempt, call, (link, deadline), around);
                }
                Action::Cancel { attempt } => self.cancel_attempt(attempt, around),
                Action::End { call, end } => {
                    let name = self.names.remove(&call);
                    self.end(name.expect("the machine has named it"), end, around.now);
                }
                Action::LookUp => self.order(Order::LookUp(self.index)),
            }
        }
    }

    fn end(&self, name: usize, end: CallEnd, now: Nanos) {
        let goes_on = |attempt: &Attempt| attempt.name == name && !attempt.is_cancelled;
        if self.attempts.values().any(goes_on) {
            self.violate(format!(
                "call {name} has ended, but an attempt at it continues"
            ));
        }
        let patience = self.plan.channel.patience;
        self.ledger.borrow_mut().end(name, end, now, patience);
    }

    fn order(&self, order: Order) {
        self.desk.borrow_mut().push((self.port, order));
    }

    fn connect(&mut self, link: LinkId, address: dunlin_channel::AddressId, around: &mut Around) {
        let mut views = self.machine.addresses();
        let view = views.find(|view| view.id == address);
        let name = view.map(|view| Box::<str>::from(view.name));
        drop(views);
        let name = name.expect("it is connected to");
        let server = name.parse().expect("names are numbers");
        let member = self.member(link);
        let Ok((trunk, facts)) = around.trunks.join((name, 0), member, &mut around.lines);
        let entry = Link {
            server,
            trunk,
            is_open: false,
            is_draining: false,
            waiting: VecDeque::new(),
        };
        self.links.insert(link, entry);
        if let Some(facts) = facts {
            self.on_opened(link, &facts, around.now);
        }
    }

    fn disconnect(&mut self, link: LinkId, around: &mut Around) {
        let Some(entry) = self.links.remove(&link) else {
            return;
        };
        let is_used = self.attempts.values().any(|attempt| attempt.link == link);
        if is_used && !self.is_closed {
            self.violate(format!("{link:?} is disconnected with calls under way"));
        }
        let member = self.member(link);
        around.turns.on_leave(entry.trunk, member);
        around.trunks.leave(entry.trunk, member, &mut around.lines);
        self.end_waiting(entry, CloseReason::Disconnected, around.now);
    }

    pub(super) fn violate(&self, what: String) {
        self.ledger.borrow_mut().violate(what);
    }
}
