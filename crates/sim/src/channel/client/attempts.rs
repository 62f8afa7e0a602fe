//! The attempts of a channel: each is a call of the endpoint, or waits for its turn on the sessions
//! that the channel shares with others. Called by `channel.rs` and by the client.

use dunlin_channel::{AttemptId, CallId, Fault, LinkId, Outcome};
use dunlin_core::{CallErrorKind, CallOptions, CloseReason, Done, Nanos, RpcError, Session, Tag};
use dunlin_wire::{ErrorCode, Ran};

use super::super::desk::Line;
use super::super::server::{CALL, index};
use super::around::Around;
use super::channel::{Channel, Link};
use super::late::is_lost;

pub(super) struct Attempt {
    pub(super) id: AttemptId,
    pub(super) name: usize,
    pub(super) link: LinkId,
    deadline: Option<Nanos>,
    /// `None`: it waits for its turn.
    pub(super) issued: Option<Issued>,
    pub(super) is_cancelled: bool,
}

/// A call of the endpoint.
#[derive(Clone, Copy)]
pub(super) struct Issued {
    pub(super) call: dunlin_core::CallId,
    pub(super) line: Line,
}

impl Channel {
    pub(super) fn send(
        &mut self,
        id: AttemptId,
        call: CallId,
        (link, deadline): (LinkId, Option<Nanos>),
        around: &mut Around,
    ) {
        let Some(name) = self.names.get(&call).copied() else {
            return self.violate(format!("a call that has ended is sent: {call:?}"));
        };
        let live = self.attempts.values().filter(|it| it.name == name).count();
        let most = usize::from(self.plan.channel.retry.attempts);
        let mut ledger = self.ledger.borrow_mut();
        ledger.send(name, (live, most), deadline, around.now);
        drop(ledger);
        let Some(entry) = self.links.get(&link).filter(|link| link.is_open) else {
            return self.violate(format!("a request goes over {link:?}, which is not open"));
        };
        if !self.may_be_picked(entry) {
            self.violate(format!(
                "a request goes to a server that drains or left: {link:?}"
            ));
        }
        let attempt = Attempt {
            id,
            name,
            link,
            deadline,
            issued: None,
            is_cancelled: false,
        };
        self.tags += 1;
        let tag = self.tags;
        let (trunk, member) = (entry.trunk, self.member(link));
        let waits = !entry.waiting.is_empty() || !around.trunks.takes(trunk, member);
        self.attempts.insert(tag, attempt);
        match waits {
            true => {
                let entry = self.links.get_mut(&link).expect("it is open");
                entry.waiting.push_back(tag);
                self.on_wait(link, around);
            }
            false => self.issue(tag, around),
        }
    }

    fn on_wait(&self, link: LinkId, around: &mut Around) {
        let (trunk, member) = (self.links[&link].trunk, self.member(link));
        around.turns.on_wait(trunk, member);
        let (lines, now) = (&mut around.lines, around.now);
        around.trunks.on_wait(trunk, member, lines, now);
    }

    /// It is the turn of a link: issues the attempt that waits longest.
    pub(super) fn on_turn(&mut self, link: LinkId, around: &mut Around) {
        let Some(entry) = self.links.get_mut(&link) else {
            return self.violate(format!("it is the turn of {link:?}, which has ended"));
        };
        let (trunk, next) = (entry.trunk, entry.waiting.pop_front());
        around.turns.on_turn(trunk, self.member(link));
        if let Some(next) = next {
            self.issue(next, around);
        }
        if self
            .links
            .get(&link)
            .is_some_and(|it| !it.waiting.is_empty())
        {
            self.on_wait(link, around);
        }
    }

    fn issue(&mut self, tag: u64, around: &mut Around) {
        let attempt = &self.attempts[&tag];
        let (id, name, link) = (attempt.id, attempt.name, attempt.link);
        let (trunk, member) = (self.links[&link].trunk, self.member(link));
        let Some(line) = around.trunks.on_attempt(trunk, member) else {
            self.attempts.remove(&tag);
            let gone = Fault::NotTaken(CallErrorKind::NoSession);
            return self.on_end(id, name, Outcome::Failed(gone), around.now);
        };
        around.turns.on_attempt(trunk, member);
        let session = around.lines.session(line);
        let session = session.expect("a session with room is open");
        match self.call(tag, session, around) {
            Ok(call) => {
                self.machine.on_issued(id);
                let attempt = self.attempts.get_mut(&tag).expect("it is issued");
                attempt.issued = Some(Issued { call, line });
            }
            Err(fault) => {
                self.attempts.remove(&tag);
                self.give_back(link, line, around);
                self.on_end(id, name, Outcome::Failed(fault), around.now);
            }
        }
    }

    fn call(
        &self,
        tag: u64,
        session: Session,
        around: &mut Around,
    ) -> Result<dunlin_core::CallId, Fault> {
        let Attempt { name, deadline, .. } = self.attempts[&tag];
        let rpc = around.lines.rpc();
        let request = rpc.cx().copy(&(name as u64).to_le_bytes());
        let (Ok(request), Ok(response)) = (request, rpc.buf(8)) else {
            self.violate("there is no memory for a request".to_owned());
            return Err(Fault::NotTaken(CallErrorKind::Overloaded));
        };
        let options = CallOptions {
            deadline: deadline.map(|end| end.since(around.now)),
        };
        let (channel, _) = self.member(self.attempts[&tag].link);
        let tag = Tag(u64::from(channel) << 32 | tag);
        let taken = rpc.call_with(session, CALL, request, response, tag, options);
        taken.map_err(|refused| Fault::NotTaken(refused.kind))
    }

    /// Gives back the room of an attempt.
    fn give_back(&self, link: LinkId, line: Line, around: &mut Around) {
        let member = self.member(link);
        if let Some(entry) = self.links.get(&link) {
            around.turns.on_attempt_end(entry.trunk, member);
        }
        around
            .trunks
            .on_attempt_end(member, line, &mut around.lines);
    }

    pub(super) fn on_done(&mut self, done: Done, around: &mut Around) {
        let tag = done.tag.0 & u64::from(u32::MAX);
        let Some(attempt) = self.attempts.remove(&tag) else {
            return self.violate(format!("no attempt has the tag {:?}", done.tag));
        };
        let Some(issued) = attempt.issued else {
            return self.violate(format!("{:?} ends, but was not issued", attempt.id));
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
            Err(error) => {
                if is_lost(error) && !around.lines.is_lost(issued.line) && !self.is_closed {
                    let Issued { line, .. } = issued;
                    self.violate(format!(
                        "call {} is lost with {line:?}, but its server has not failed",
                        attempt.name
                    ));
                }
                Outcome::Failed(Fault::of(error))
            }
        };
        self.give_back(attempt.link, issued.line, around);
        self.on_end(attempt.id, attempt.name, outcome, around.now);
        if self.rng.chance(self.plan.cancels) {
            self.drop_call(attempt.name, around.now);
        }
    }

    pub(super) fn end_waiting(&mut self, link: Link, reason: CloseReason, now: Nanos) {
        for tag in link.waiting {
            self.never_sent(tag, RpcError::SessionClosed(reason, Ran::No), now);
        }
    }

    /// Ends an attempt that waited for its turn.
    pub(super) fn never_sent(&mut self, tag: u64, error: RpcError, now: Nanos) {
        let attempt = self.attempts.remove(&tag).expect("it waits");
        if let Some(link) = self.links.get_mut(&attempt.link) {
            link.waiting.retain(|waiting| *waiting != tag);
        }
        let outcome = Outcome::Failed(Fault::NotSent(error));
        self.on_end(attempt.id, attempt.name, outcome, now);
    }

    fn on_end(&mut self, id: AttemptId, name: usize, outcome: Outcome, now: Nanos) {
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
            self.ledger.borrow_mut().idle(name, now, ends);
        }
        if self.rng.one_in(5) {
            self.again.push_back((id, outcome));
        }
        self.machine.on_end(id, outcome, now);
    }
}
