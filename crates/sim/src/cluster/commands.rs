//! The queue of commands from an endpoint to its control thread, which takes them in order after a
//! short delay. Called by `ways` and `control`.

use std::collections::VecDeque;

use dunlin_control::{Command, ConnectTicket, SessionKey};
use dunlin_core::Nanos;

use crate::world::net::Fd;
use crate::world::rng::Rng;

/// Longest time until the control thread takes a command.
const DELAY: Nanos = Nanos::from_micros(50);

/// The queue of commands.
#[derive(Debug)]
pub(super) struct Commands {
    rng: Rng,
    /// The time of the endpoint's iteration.
    now: Nanos,
    queue: VecDeque<(Nanos, Command<Fd>)>,
}

impl Commands {
    pub(super) const fn new(rng: Rng) -> Self {
        Self {
            rng,
            now: Nanos::ZERO,
            queue: VecDeque::new(),
        }
    }

    /// Sets the time at which the next commands are given.
    pub(super) const fn on_time(&mut self, now: Nanos) {
        self.now = now;
    }

    pub(super) fn push(&mut self, command: Command<Fd>) {
        let last = self.queue.back().map_or(Nanos::ZERO, |(due, _)| *due);
        let delay = Nanos(self.rng.log_between(500, DELAY.0));
        self.queue.push_back((last.max(self.now + delay), command));
    }

    /// The session that the last command creates, if that command grants this request.
    pub(super) fn granted(&self, request: ConnectTicket) -> Option<SessionKey> {
        match self.queue.back() {
            Some((_, Command::Accept { ticket, key, .. })) if *ticket == request => Some(*key),
            _ => None,
        }
    }

    /// The next command that the control thread has taken by now.
    pub(super) fn next(&mut self, now: Nanos) -> Option<Command<Fd>> {
        let due = self.next_due() <= now;
        let first = due.then(|| self.queue.pop_front()).flatten();
        first.map(|(_, command)| command)
    }

    pub(super) fn next_due(&self) -> Nanos {
        self.queue.front().map_or(Nanos::MAX, |(due, _)| *due)
    }
}
