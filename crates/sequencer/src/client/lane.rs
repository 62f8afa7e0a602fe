//! The client's session with the serving server, or its search for that server.
//!
//! ```text
//! Down ──wish──▶ Wanted ──▶ Connecting ──connected──▶ Greeting ──opened──▶ Open
//!   ▲──────────────┴────────────┴──closed, refused, no answer──┴─────────────┘
//! ```
//! After a failure, the client tries the next server. After a round in which all servers have
//! failed, it pauses, longer each time.

use dunlin_core::{Nanos, Session};

use super::ClientOptions;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// From this time on a session is wanted.
    Down(Nanos),
    /// The owner knows that a session is wanted.
    Wanted,
    Connecting(Session),
    Greeting(Session),
    /// The number of the sequence.
    Open(Session, u16),
}

#[derive(Debug)]
pub(super) struct Lane {
    state: State,
    /// The place of the server.
    server: usize,
    servers: usize,
    failures: usize,
}

impl Lane {
    pub(super) fn new(servers: usize) -> Self {
        Self {
            state: State::Down(Nanos::ZERO),
            server: 0,
            servers: servers.max(1),
            failures: 0,
        }
    }

    pub(super) fn wish(&mut self, now: Nanos) -> Option<usize> {
        match self.state {
            State::Down(at) if at <= now => {
                self.state = State::Wanted;
                Some(self.server)
            }
            _ => None,
        }
    }

    pub(super) const fn next_wish(&self) -> Nanos {
        match self.state {
            State::Down(at) => at,
            _ => Nanos::MAX,
        }
    }

    pub(super) fn on_connecting(&mut self, session: Session) {
        if self.state == State::Wanted {
            self.state = State::Connecting(session);
        }
    }

    /// Notes that a session is ready for its greeting. False: it is not this client's session.
    pub(super) fn on_connected(&mut self, session: Session) -> bool {
        let is_it = self.state == State::Connecting(session);
        if is_it {
            self.state = State::Greeting(session);
        }
        is_it
    }

    pub(super) fn on_opened(&mut self, session: Session, sequence: u16) {
        if self.state == State::Greeting(session) {
            self.state = State::Open(session, sequence);
            self.failures = 0;
        }
    }

    /// Notes that the server has begun another epoch. True: the client must send another greeting.
    pub(super) fn on_moved(&mut self, session: Session) -> bool {
        let is_open = matches!(self.state, State::Open(own, _) if own == session);
        if is_open {
            self.state = State::Greeting(session);
        }
        is_open
    }

    pub(super) fn on_failure(&mut self, now: Nanos, options: &ClientOptions) {
        self.failures += 1;
        self.server = (self.server + 1) % self.servers;
        let round = self.failures / self.servers;
        let is_over = self.failures.is_multiple_of(self.servers);
        let pause = match is_over {
            true => {
                let factor = 1 << (round - 1).min(16);
                options.least_pause.times(factor).min(options.most_pause)
            }
            false => Nanos::ZERO,
        };
        self.state = State::Down(now + pause);
    }

    pub(super) fn has(&self, session: Session) -> bool {
        match self.state {
            State::Down(_) | State::Wanted => false,
            State::Connecting(own) | State::Greeting(own) | State::Open(own, _) => own == session,
        }
    }

    /// The session with the serving server, and the number of the sequence.
    #[inline]
    pub(super) const fn open(&self) -> Option<(Session, u16)> {
        match self.state {
            State::Open(session, sequence) => Some((session, sequence)),
            _ => None,
        }
    }
}
