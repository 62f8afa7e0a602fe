//! From the ends of a server's client to the ends of the program's operations.

use dunlin_core::Cx;

use super::machine::Fleet;
use super::types::{ServerId, WhenDown};
use crate::error::Error;

impl Fleet {
    /// Takes the ends of a server's operations. Operations that wait for a session end as well if
    /// the server is down, unless the program wants them to wait, or if it has left the list.
    #[inline]
    pub(super) fn take_ends(&mut self, id: ServerId, cx: &mut Cx<'_>) {
        let waits = self.options.when_down == WhenDown::Wait;
        let Some(server) = self.servers.get_mut(id) else {
            return;
        };
        if (server.is_down() && !waits) || !server.is_listed() {
            server.drive().end_waiting(Error::Unavailable, cx);
        }
        while let Some(server) = self.servers.get_mut(id)
            && let Some(end) = server.drive().next_end()
        {
            let place = usize::try_from(end.token.0).expect("a place in memory");
            let job = self.jobs.remove(place);
            let job = job.expect("each operation of a client ends once");
            self.end(Some(id), job, end.result);
        }
    }
}
