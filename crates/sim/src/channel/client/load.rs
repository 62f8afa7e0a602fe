//! The load of a drill: a channel that makes calls until it stops.

use super::channel::Channel;

impl Channel {
    /// Whether calls may go to this server.
    pub(in crate::channel) fn is_ready(&self, server: usize) -> bool {
        let mut links = self.links.values();
        links.any(|link| link.server == server && self.may_be_picked(link))
    }

    /// Begins no further calls.
    pub(in crate::channel) fn stop(&mut self) {
        self.plan.in_flight = 0;
        self.begin.clear();
    }

    /// The number of planned calls that have not begun.
    pub(in crate::channel) fn to_begin(&self) -> usize {
        self.begin.len()
    }

    /// Number of calls that have not ended.
    pub(in crate::channel) fn calls(&self) -> usize {
        self.names.len()
    }
}
