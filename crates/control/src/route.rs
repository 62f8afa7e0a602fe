//! The route to one remote nexus: it dials the nexus's addresses in turn, again and again while an
//! attempt wants it, and moves from TCP to the UNIX socket if the nexus is on this host (rule C3).
//!
//! ```text
//! Down ─wanted─▶ Dialling ──up──▶ Up ◀──── unix up, same process ────┐
//!   ▲              │    └──up, same host──▶ Upgrading ─unix gone─▶ Up (tcp)
//!   └── not wanted │                          │
//!     Backoff ◀────┴──── connection gone ─────┘
//! ```
//! A route has one connection that sessions use, or none. Owned and called by `plane`.

use std::net::SocketAddr;

use dunlin_core::Nanos;
use dunlin_core::ordered::Set;
use dunlin_wire::control::AttemptId;

use super::types::LinkId;

/// Names a route.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct RouteId(pub(super) u64);

/// The state of a route.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RouteState {
    /// No attempt needs the route.
    Down,
    /// A TCP connection is being made or greeted.
    Dialling(LinkId),
    /// The TCP connection is up; a UNIX connection is being made or greeted.
    Upgrading { tcp: LinkId, unix: LinkId },
    /// Sessions can be made over this connection.
    Up(LinkId),
    /// The route will be dialled again at this time.
    Backoff(Nanos),
}

/// One remote nexus.
#[derive(Clone, Debug)]
pub(super) struct Route {
    pub(super) addrs: Vec<SocketAddr>,
    pub(super) state: RouteState,
    /// Number of attempts that have not ended.
    pub(super) attempts: usize,
    /// The attempts that wait for their turn, oldest first.
    pub(super) waiting: Set<AttemptId>,
    /// Since the last success, the nexus has refused a connection because it has too many.
    pub(super) full: bool,
    next_addr: usize,
    retries: u32,
}

/// The next step after the end of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum AfterLoss {
    /// The route did not depend on the connection.
    Nothing,
    /// The TCP connection stays in use.
    StayWith(LinkId),
    /// The route will be dialled again, after the backoff of this many retries; the UNIX connection
    /// that is being made, if there is one, must be closed.
    Redial { retries: u32, close: Option<LinkId> },
}

impl Route {
    pub(super) fn new(addrs: Vec<SocketAddr>) -> Self {
        Self {
            addrs,
            state: RouteState::Down,
            attempts: 0,
            waiting: Set::new(),
            full: false,
            next_addr: 0,
            retries: 0,
        }
    }

    /// Whether an attempt waits for a connection, and the route may dial one now.
    pub(super) fn wants_dial(&self, now: Nanos) -> bool {
        let ready = match self.state {
            RouteState::Down => true,
            RouteState::Backoff(until) => now >= until,
            _ => false,
        };
        ready && self.attempts > 0
    }

    /// Notes that a connection is being made; returns the address to dial.
    pub(super) fn on_dial(&mut self, link: LinkId) -> Option<SocketAddr> {
        let turn = self.next_addr.checked_rem(self.addrs.len())?;
        self.next_addr = turn + 1;
        self.state = RouteState::Dialling(link);
        self.addrs.get(turn).copied()
    }

    /// Notes that a UNIX connection to the same process is being made.
    pub(super) fn on_upgrade(&mut self, tcp: LinkId, unix: LinkId) {
        debug_assert_eq!(self.state, RouteState::Dialling(tcp));
        self.full = false;
        self.state = RouteState::Upgrading { tcp, unix };
    }

    /// Uses a connection on which both sides have sent Hello. Returns the connection that it
    /// replaces.
    pub(super) fn on_up(&mut self, link: LinkId) -> Option<LinkId> {
        let replaced = match self.state {
            RouteState::Upgrading { tcp, unix } if unix == link => Some(tcp),
            _ => None,
        };
        self.state = RouteState::Up(link);
        self.full = false;
        self.retries = 0;
        replaced
    }

    /// Handles the end of a connection.
    pub(super) fn on_lost(&mut self, link: LinkId) -> AfterLoss {
        let close = match self.state {
            RouteState::Upgrading { tcp, unix } if unix == link => {
                self.state = RouteState::Up(tcp);
                self.retries = 0;
                return AfterLoss::StayWith(tcp);
            }
            RouteState::Upgrading { tcp, unix } if tcp == link => Some(unix),
            RouteState::Dialling(current) | RouteState::Up(current) if current == link => None,
            _ => return AfterLoss::Nothing,
        };
        self.state = RouteState::Down;
        let retries = self.retries;
        self.retries = self.retries.saturating_add(1);
        AfterLoss::Redial { retries, close }
    }

    /// When the plane must look at the route next.
    pub(super) fn next_wakeup(&self) -> Nanos {
        match self.state {
            RouteState::Backoff(until) => until,
            _ => Nanos::MAX,
        }
    }
}
