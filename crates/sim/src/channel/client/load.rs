//! The load of a drill: a client that makes calls until it stops, and hurries while a server
//! drains.

use dunlin_core::Nanos;

use super::Client;

/// The longest time after which a client asks for late answers while a server drains.
const HURRY: Nanos = Nanos::from_millis(20);

impl Client {
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

    /// Makes the endpoint ask for late answers more often while a server drains, as a hub does.
    pub(super) fn hurry(&mut self) {
        let drains = self.links.values().any(|link| link.is_draining);
        match (drains, self.calm) {
            (true, None) => self.calm = Some(self.rpc.cx().ask_within(HURRY)),
            (false, Some(calm)) => {
                self.rpc.cx().ask_within(calm);
                self.calm = None;
            }
            _ => {}
        }
    }
}
