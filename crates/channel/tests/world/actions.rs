//! Carries out the machine's actions, and reports links and attempts to it.

use std::collections::VecDeque;

use dunlin_core::{CallErrorKind, CloseReason, Nanos, RpcError};
use dunlin_wire::Ran;

use crate::draw::Draw;
use crate::driver::{Attempt, BACKLOG, Call, Event, Link};
use crate::plan::ACTIONS;
use crate::state::{self, World};
use dunlin_channel::{
    Action, AddressId, AttemptId, CallEnd, CallId, Fault, Full, LinkId, Opened, Outcome, Terms,
};

impl World {
    pub(crate) fn begin_call(&mut self) {
        let rng = &mut self.rng;
        let deadline = rng.percent(self.plan.deadlines);
        let key = rng.next_u64();
        let terms = Terms {
            idempotent: rng.percent(self.plan.idempotent),
            once: key.is_multiple_of(4),
            deadline: deadline.then(|| self.now + rng.micros(0, 400_000)),
            key: Some(key),
            endpoint: rng.percent(self.plan.endpoints).then(|| rng.below(3)),
        };
        let full = self.driver.machine.on_call(terms, self.now);
        let Ok(id) = full else {
            assert_eq!(full, Err(Full));
            return;
        };
        let call = self.driver.calls.len();
        let default = self.plan.config.deadline.map(|span| self.now + span);
        self.driver.by_id.insert(id, call);
        self.driver.calls.push(Call {
            id,
            terms: Terms {
                deadline: terms.deadline.or(default),
                ..terms
            },
            runs: 0,
            handed: 0,
            sends: 0,
            refusals: 0,
            is_cancelled: false,
            end: None,
            idle: Some(self.now),
            is_free: true,
            is_over: false,
            answered_by: None,
        });
        if self.rng.percent(self.plan.cancels) {
            let after = self.rng.micros(0, 20_000);
            match self.rng.percent(30) {
                true => self.driver.cancel(call, self.now),
                false => self.schedule(self.now + after, state::Event::Cancel(call)),
            }
        }
    }

    pub(crate) fn on_action(&mut self, action: Action) -> Result<(), String> {
        match action {
            Action::Connect {
                link,
                address,
                endpoint,
            } => self.connect(link, address, endpoint),
            Action::Disconnect { link } => self.disconnect(link)?,
            Action::Send {
                attempt,
                call,
                link,
                deadline,
            } => {
                self.send(attempt, call, link, deadline)?;
            }
            Action::Cancel { attempt } => self.cancel_attempt(attempt)?,
            Action::End { call, end } => self.end_call(call, end)?,
            Action::LookUp => {
                let after = self.rng.micros(100, 200_000);
                self.on_driver_at(self.now + after, Event::LookedUp);
            }
        }
        Ok(())
    }

    fn on_driver_at(&mut self, at: Nanos, event: Event) {
        self.schedule(at, state::Event::Driver(event));
    }

    fn connect(&mut self, link: LinkId, address: AddressId, endpoint: Option<u32>) {
        let mut views = self.driver.machine.addresses();
        let name = views.find(|view| view.id == address);
        let name = name.expect("it is connected to").name;
        let server = self.servers.iter().position(|server| server.name == name);
        let server = server.expect("names are those of servers");
        drop(views);
        let entry = Link {
            address,
            server,
            process: 0,
            endpoint: endpoint.unwrap_or_else(|| self.rng.below(self.servers[server].endpoints)),
            is_open: false,
            is_draining: false,
            backlog: VecDeque::new(),
            under_way: 0,
        };
        self.driver.links.insert(link, entry);
        let after = self.rng.micros(100, 5_000);
        self.on_driver_at(self.now + after, Event::Opens(link));
    }

    fn disconnect(&mut self, link: LinkId) -> Result<(), String> {
        let all = self.driver.attempts.iter();
        let there = all.filter(|(_, attempt)| attempt.link == link);
        let there: Vec<AttemptId> = there.map(|(id, _)| *id).collect();
        if !there.is_empty() && !self.driver.is_closed {
            return Err("attempts are under way there".to_owned());
        }
        for attempt in there {
            let error = RpcError::SessionClosed(CloseReason::Disconnected, Ran::Unknown);
            let end = Outcome::Failed(Fault::Sent(error));
            self.on_driver_at(self.now, Event::Ends(attempt, end));
        }
        self.driver
            .links
            .remove(&link)
            .ok_or("there is no such link")?;
        Ok(())
    }

    fn send(
        &mut self,
        attempt: AttemptId,
        call: CallId,
        link: LinkId,
        deadline: Option<Nanos>,
    ) -> Result<(), String> {
        self.judge_send(call, link, deadline)?;
        let call = self.driver.by_id[&call];
        let entry = self.driver.links.get_mut(&link).expect("judged");
        let window = self.servers[entry.server].window;
        self.driver.attempts.insert(
            attempt,
            Attempt {
                call,
                link,
                address: entry.address,
                process: entry.process,
                server: entry.server,
                is_sent: entry.under_way < window,
                is_dropped: false,
                is_cancelled: false,
            },
        );
        if entry.under_way < window {
            entry.under_way += 1;
            self.transmit(attempt)?;
        } else if entry.backlog.len() < BACKLOG {
            entry.backlog.push_back(attempt);
        } else {
            let full = Outcome::Failed(Fault::NotTaken(CallErrorKind::Overloaded));
            self.on_driver_at(self.now, Event::Ends(attempt, full));
        }
        Ok(())
    }

    fn transmit(&mut self, attempt: AttemptId) -> Result<(), String> {
        self.driver.machine.on_issued(attempt);
        let after = self.rng.micros(10, 500);
        self.on_driver_at(self.now + after, Event::Arrives(attempt));
        match self.driver.attempts.get_mut(&attempt) {
            Some(entry) => {
                entry.is_sent = true;
                let call = entry.call;
                self.judge_transmit(call)
            }
            None => Ok(()),
        }
    }

    fn cancel_attempt(&mut self, attempt: AttemptId) -> Result<(), String> {
        let is_dropped = self.rng.percent(50);
        let entry = self.driver.attempts.get_mut(&attempt);
        let entry = entry.ok_or("it has ended, or never began")?;
        if std::mem::replace(&mut entry.is_cancelled, true) {
            return Err("it is cancelled a second time".to_owned());
        }
        entry.is_dropped = is_dropped || !entry.is_sent;
        if !entry.is_sent {
            let link = self.driver.links.get_mut(&entry.link);
            if let Some(link) = link {
                link.backlog.retain(|other| *other != attempt);
            }
            let gone = Outcome::Failed(Fault::NotSent(RpcError::Cancelled(Ran::Unknown)));
            self.on_driver_at(self.now, Event::Ends(attempt, gone));
        }
        Ok(())
    }

    fn end_call(&mut self, id: CallId, end: CallEnd) -> Result<(), String> {
        self.judge_end(id, end)?;
        let call = self.driver.by_id.remove(&id).expect("judged");
        self.driver.calls[call].end = Some(end);
        Ok(())
    }

    pub(crate) fn on_driver(&mut self, event: Event) -> Result<(), String> {
        match event {
            Event::Opens(link) => self.on_opens(link)?,
            Event::Lost(link, reason) => self.on_lost(link, reason)?,
            Event::Draining(link) => {
                if let Some(entry) = self.driver.links.get_mut(&link) {
                    entry.is_draining = true;
                    self.driver.machine.on_serving(link, true, 0, self.now);
                }
            }
            Event::Arrives(attempt) => self.on_arrives(attempt)?,
            Event::Ends(attempt, outcome) => self.on_ends(attempt, outcome)?,
            Event::EndsAgain(attempt, outcome) => {
                self.driver.machine.on_end(attempt, outcome, self.now);
            }
            Event::LookedUp if self.rng.percent(20) => {
                self.driver.machine.on_lookup_failed(self.now);
            }
            Event::LookedUp => {
                let listed = self.servers.iter().filter(|server| server.is_listed);
                let mut names: Vec<String> = listed.map(|server| server.name.clone()).collect();
                // An address that is listed twice must count as one.
                names.extend(names.first().cloned());
                let words = names.iter().map(String::as_str);
                self.driver.machine.on_addresses(words, self.now);
                self.driver.listed = names;
            }
        }
        Ok(())
    }

    fn on_opens(&mut self, link: LinkId) -> Result<(), String> {
        let Some(entry) = self.driver.links.get_mut(&link) else {
            return Ok(());
        };
        let at = entry.server;
        let server = &self.servers[at];
        let takes = server.is_up && !server.is_stopped && !server.is_draining;
        if !takes || entry.endpoint >= server.endpoints {
            self.driver.links.remove(&link);
            let reason = CloseReason::Refused;
            self.driver.machine.on_closed(link, reason, self.now);
            return Ok(());
        }
        entry.is_open = true;
        entry.process = server.process(at);
        let opened = Opened {
            server: entry.process,
            endpoint: entry.endpoint,
            endpoints: server.endpoints,
            window: u32::try_from(server.window).expect("it is small"),
            draining: false,
        };
        self.driver.machine.on_opened(link, &opened, self.now);
        self.spread(link)
    }

    /// Reports the loss of a link and of the attempts over it, in either order.
    fn on_lost(&mut self, link: LinkId, reason: CloseReason) -> Result<(), String> {
        if !self.driver.links.contains_key(&link) {
            return Ok(());
        }
        let all = self.driver.attempts.iter();
        let ended: Vec<(AttemptId, bool)> = all
            .filter(|(_, attempt)| attempt.link == link)
            .map(|(id, attempt)| (*id, attempt.is_sent))
            .collect();
        self.driver.links.remove(&link);
        let is_first = self.rng.percent(50);
        if is_first {
            self.driver.machine.on_closed(link, reason, self.now);
        }
        for (attempt, is_sent) in ended {
            let error = match reason {
                CloseReason::PeerFailed => RpcError::PeerFailed(Ran::Unknown),
                reason => RpcError::SessionClosed(reason, Ran::Unknown),
            };
            let fault = match is_sent {
                true => Fault::Sent(error),
                false => Fault::NotSent(error),
            };
            self.on_ends(attempt, Outcome::Failed(fault))?;
            // The machine may now use the link that is gone, unless it knows already.
            self.settle_actions()?;
        }
        if !is_first {
            self.driver.machine.on_closed(link, reason, self.now);
        }
        Ok(())
    }

    fn on_arrives(&mut self, attempt: AttemptId) -> Result<(), String> {
        let Some(entry) = self.driver.attempts.get(&attempt).cloned() else {
            return Ok(());
        };
        let server = &self.servers[entry.server];
        if server.process(entry.server) != entry.process || !server.is_up {
            // The link will break, which ends the attempt.
            return Ok(());
        }
        if server.is_stopped {
            // The request runs when the server goes on, whatever the client has done meanwhile.
            return self.run_late(attempt, &entry);
        }
        if entry.is_dropped {
            let error = RpcError::rejected(dunlin_wire::ErrorCode::CANCELLED, true);
            let end = Outcome::Failed(Fault::Sent(error));
            self.on_driver_at(self.now + Nanos(1000), Event::Ends(attempt, end));
            return Ok(());
        }
        let (outcome, takes, runs) = self.serve(entry.server);
        if runs {
            self.run_handler(entry.call)?;
        }
        self.on_driver_at(self.now + takes, Event::Ends(attempt, outcome));
        Ok(())
    }

    /// Runs a request at a stopped server now, because the judge's laws do not depend on when it
    /// runs.
    fn run_late(&mut self, attempt: AttemptId, entry: &Attempt) -> Result<(), String> {
        self.run_handler(entry.call)?;
        // An answer comes only if the server goes on before the client gives up.
        let after = self.rng.micros(1_000, 2_000_000);
        self.on_driver_at(self.now + after, Event::Ends(attempt, Outcome::Answered));
        Ok(())
    }

    fn run_handler(&mut self, call: usize) -> Result<(), String> {
        let call = &mut self.driver.calls[call];
        call.runs += 1;
        match call.runs > 1 && !call.terms.idempotent {
            true => Err(format!("{:?} runs twice", call.id)),
            false => Ok(()),
        }
    }

    fn on_ends(&mut self, attempt: AttemptId, outcome: Outcome) -> Result<(), String> {
        let Some(entry) = self.driver.attempts.remove(&attempt) else {
            return Ok(());
        };
        self.judge_attempt_end(attempt, &entry, &outcome);
        if entry.is_sent {
            self.send_next(entry.link)?;
        } else if let Some(link) = self.driver.links.get_mut(&entry.link) {
            link.backlog.retain(|other| *other != attempt);
        }
        self.driver.machine.on_end(attempt, outcome, self.now);
        // If no attempt waits for this link, it has room for one that waits for another link.
        self.spread(entry.link)?;
        if self.rng.percent(5) {
            let after = self.rng.micros(0, 20_000);
            self.on_driver_at(self.now + after, Event::EndsAgain(attempt, outcome));
        }
        Ok(())
    }

    /// Sends the next waiting attempt, because a place in the link's window is free.
    fn send_next(&mut self, link: LinkId) -> Result<(), String> {
        let Some(entry) = self.driver.links.get_mut(&link) else {
            return Ok(());
        };
        entry.under_way -= 1;
        match entry.backlog.pop_front() {
            Some(next) => {
                entry.under_way += 1;
                self.transmit(next)
            }
            None => Ok(()),
        }
    }

    /// Moves attempts that wait for other links of the same server to one that has room.
    fn spread(&mut self, link: LinkId) -> Result<(), String> {
        while let Some(next) = self.driver.waiting_beside(link)
            && let Some(to) = self.driver.machine.move_waiting(next)
        {
            let attempt = self.driver.attempts.get_mut(&next).expect("it waits");
            let from = std::mem::replace(&mut attempt.link, to);
            let links = &mut self.driver.links;
            let entry = links.get_mut(&to).ok_or("it is moved to no link")?;
            attempt.process = entry.process;
            entry.under_way += 1;
            if !entry.is_open || entry.under_way > self.servers[entry.server].window {
                return Err(format!("{next:?} is moved to {to:?}, which has no room"));
            }
            let from = links.get_mut(&from).ok_or("it is moved from no link")?;
            from.backlog.retain(|other| *other != next);
            self.transmit(next)?;
        }
        Ok(())
    }

    /// Carries the machine's actions out until it has none.
    pub(crate) fn settle_actions(&mut self) -> Result<(), String> {
        while let Some(action) = self.driver.poll(self.now) {
            self.actions += 1;
            if self.actions > ACTIONS {
                return Err(format!("{ACTIONS} actions, and no end"));
            }
            self.on_action(action)
                .map_err(|what| format!("{} ns: {action:?}: {what}", self.now.0))?;
        }
        Ok(())
    }
}
