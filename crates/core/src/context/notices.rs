//! Notices: events of sessions and kept requests that the loop has not yet passed to the user, and
//! reports that the control plane has not yet taken.

use std::collections::VecDeque;

use crate::handle::RequestId;
use crate::session::lifecycle::{Report, SessionEvent};
use crate::session::table::Sessions;

/// Events that the user and the control plane have yet to receive, in order.
#[derive(Debug, Default)]
pub(crate) struct Notices {
    sessions: VecDeque<SessionEvent>,
    /// Kept requests whose clients no longer wait.
    given_up: VecDeque<RequestId>,
    reports: VecDeque<Report>,
}

impl Notices {
    /// Whether there are events for the user.
    pub(crate) fn is_waiting(&self) -> bool {
        !(self.sessions.is_empty() && self.given_up.is_empty())
    }

    pub(crate) fn on_session(&mut self, event: SessionEvent) {
        self.sessions.push_back(event);
    }

    pub(crate) fn on_given_up(&mut self, request: RequestId) {
        self.given_up.push_back(request);
    }

    pub(crate) fn on_report(&mut self, report: Report) {
        self.reports.push_back(report);
    }

    /// Reports a challenge for a session of this endpoint to the control plane; drops other bytes
    /// (rule C13). While the control plane has not taken all reports, the endpoint ignores
    /// challenges; the peer will send them again.
    #[cold]
    #[inline(never)]
    pub(crate) fn on_challenge(&mut self, sessions: &Sessions, bytes: &[u8]) {
        if !self.has_reports()
            && let Some(challenged) = sessions.challenged(bytes)
        {
            self.on_report(Report::Challenged(challenged));
        }
    }

    pub(crate) fn pop_session(&mut self) -> Option<SessionEvent> {
        self.sessions.pop_front()
    }

    pub(crate) fn pop_given_up(&mut self) -> Option<RequestId> {
        self.given_up.pop_front()
    }

    /// Whether there are reports for the control plane.
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
