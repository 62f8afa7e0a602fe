//! Notices: what happened to sessions and kept requests, until the loop tells the user, and
//! reports for the control plane, until it asks.

use std::collections::VecDeque;

use crate::handle::Ticket;
use crate::session::lifecycle::{Report, SessionEvent};

/// Events that the user and the control plane do not know yet, in order.
#[derive(Debug, Default)]
pub(crate) struct Notices {
    sessions: VecDeque<SessionEvent>,
    /// Kept requests whose clients do not wait any more.
    given_up: VecDeque<Ticket>,
    reports: VecDeque<Report>,
}

impl Notices {
    /// Whether the user has something to learn.
    pub(crate) fn is_waiting(&self) -> bool {
        !(self.sessions.is_empty() && self.given_up.is_empty())
    }

    pub(crate) fn on_session(&mut self, event: SessionEvent) {
        self.sessions.push_back(event);
    }

    pub(crate) fn on_given_up(&mut self, ticket: Ticket) {
        self.given_up.push_back(ticket);
    }

    pub(crate) fn on_report(&mut self, report: Report) {
        self.reports.push_back(report);
    }

    pub(crate) fn pop_session(&mut self) -> Option<SessionEvent> {
        self.sessions.pop_front()
    }

    pub(crate) fn pop_given_up(&mut self) -> Option<Ticket> {
        self.given_up.pop_front()
    }

    /// Whether the control plane has something to learn.
    #[inline]
    pub(crate) fn has_reports(&self) -> bool {
        !self.reports.is_empty()
    }

    pub(crate) fn pop_report(&mut self) -> Option<Report> {
        self.reports.pop_front()
    }
}

#[cfg(test)]
mod tests;
