//! Notices: what happened to sessions and kept requests, until the loop tells the user, and which
//! sessions have ended, until the control plane asks.

use std::collections::VecDeque;

use crate::handle::Ticket;
use crate::session::lifecycle::{Closed, SessionEvent};

/// Events that the user and the control plane do not know yet, in order.
#[derive(Debug, Default)]
pub(crate) struct Notices {
    sessions: VecDeque<SessionEvent>,
    /// Kept requests whose clients do not wait any more.
    given_up: VecDeque<Ticket>,
    closed: VecDeque<Closed>,
}

impl Notices {
    /// The user has something to learn.
    pub(crate) fn is_waiting(&self) -> bool {
        !(self.sessions.is_empty() && self.given_up.is_empty())
    }

    pub(crate) fn on_session(&mut self, event: SessionEvent) {
        self.sessions.push_back(event);
    }

    pub(crate) fn on_given_up(&mut self, ticket: Ticket) {
        self.given_up.push_back(ticket);
    }

    pub(crate) fn on_closed(&mut self, closed: Closed) {
        self.closed.push_back(closed);
    }

    pub(crate) fn pop_session(&mut self) -> Option<SessionEvent> {
        self.sessions.pop_front()
    }

    pub(crate) fn pop_given_up(&mut self) -> Option<Ticket> {
        self.given_up.pop_front()
    }

    pub(crate) fn pop_closed(&mut self) -> Option<Closed> {
        self.closed.pop_front()
    }
}

#[cfg(test)]
mod tests;
