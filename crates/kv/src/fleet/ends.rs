//! Converts the ends of a server's client to the ends of the program's operations.

use dunlin_core::Cx;

use super::machine::Fleet;
use super::types::ServerId;
use crate::error::Error;

impl Fleet {
    /// Takes the ends of a server's operations. Also ends operations that wait for a session, if
    /// the server has left the list, or if the server or their partition is down and the program
    /// does not want them to wait.
    #[inline]
    pub(super) fn take_ends(&mut self, id: ServerId, cx: &mut Cx<'_>) {
        let Some(server) = self.servers.get(id) else {
            return;
        };
        let may_wait = server.client().may_wait();
        self.take(id, server.is_down());
        if may_wait && let Some(is_down) = self.end_waiting(id, cx) {
            self.take(id, is_down);
        }
    }

    fn take(&mut self, id: ServerId, is_down: bool) {
        while let Some(server) = self.servers.get_mut(id)
            && let Some(end) = server.drive().next_end()
        {
            let place = usize::try_from(end.token.0).expect("a place in memory");
            let job = self.jobs.remove(place);
            let job = job.expect("each operation of a client ends once");
            self.end(Some(id), job, end.result, is_down);
        }
    }

    /// Ends the operations that must not wait. Returns whether they end because of a failure;
    /// `None` if all may wait.
    fn end_waiting(&mut self, id: ServerId, cx: &mut Cx<'_>) -> Option<bool> {
        // Some of the waiting operations may be gets.
        let waits = self.waits(true);
        let server = self.servers.get_mut(id)?;
        let is_down = server.is_down();
        if !server.is_listed() || (is_down && !waits) {
            server.drive().end_all(Error::Unavailable, cx);
            return Some(is_down);
        }
        let is_stuck = !waits && server.drive().end_stuck(Error::Unavailable, cx);
        is_stuck.then_some(true)
    }
}
