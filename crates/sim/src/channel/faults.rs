//! The faults of a run, and how the world recovers from them. Called by `run`.

use dunlin_core::{CloseReason, Nanos};

use super::plan::FAILURE;
use super::server;
use super::stage::{Event, Stage};
use crate::world::Act;
use crate::world::net::{HostId, PortId};
use crate::world::rng::Rng;

/// A fault of a server. A time that is `None` is drawn.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fault {
    /// The server ends, and starts again after this time.
    Crash(usize, Option<Nanos>),
    Start(usize),
    /// The server's host stops for this time.
    Stop(usize, Option<Nanos>),
    Continue(usize),
    /// The server drains for at most the first time, ends, and restarts after the second time.
    Drain(usize, [Option<Nanos>; 2]),
    /// Checks every millisecond whether a draining server has no more sessions, or this time has
    /// come. If so, the server ends.
    Drained(usize, Nanos, Option<Nanos>),
    List(usize, bool),
}

impl Fault {
    pub(super) fn draw(servers: usize, rng: &mut Rng) -> Self {
        let server = rng.index(servers);
        match rng.below(6) {
            0 => Self::Crash(server, None),
            1 => Self::Stop(server, None),
            2 | 3 => Self::Drain(server, [None; 2]),
            4 => Self::List(server, false),
            _ => Self::List(server, true),
        }
    }
}

impl Stage {
    pub(super) fn strike(&mut self, fault: Fault) {
        self.note_fault(self.world.now());
        match fault {
            Fault::Crash(server, down) => self.crash(server, down),
            Fault::Start(server) => self.world.act(Act::Boot(PortId(server))),
            Fault::Stop(server, span) => self.stop(server, span),
            Fault::Continue(server) => {
                self.paused[server] = false;
                self.world.act(Act::Resume(HostId(server)));
            }
            Fault::Drain(server, times) => self.drain(server, times),
            Fault::Drained(server, limit, away) => self.drained(server, limit, away),
            Fault::List(server, is_listed) => self.listed[server] = is_listed,
        }
    }

    fn crash(&mut self, server: usize, down: Option<Nanos>) {
        self.lose_all(server, Nanos::from_millis(2), CloseReason::PeerFailed);
        self.world.act(Act::Crash(PortId(server)));
        let down = down.unwrap_or_else(|| self.draw_micros(100, 400_000));
        let at = self.world.now() + down;
        self.schedule(at, Event::Strike(Fault::Start(server)));
    }

    /// Stops a server. Its clients give it up if it stops for as long as the failure timeout.
    fn stop(&mut self, server: usize, span: Option<Nanos>) {
        if std::mem::replace(&mut self.paused[server], true) {
            return;
        }
        self.world.act(Act::Pause(HostId(server)));
        let span = span.unwrap_or_else(|| self.draw_micros(1_000, 800_000));
        if span >= FAILURE {
            self.lose_all(server, FAILURE, CloseReason::PeerFailed);
        }
        let at = self.world.now() + span;
        self.note_fault(at);
        self.schedule(at, Event::Strike(Fault::Continue(server)));
    }

    fn note_fault(&self, end: Nanos) {
        self.world.cluster.ledger.borrow_mut().strike(end);
    }

    fn drain(&mut self, server: usize, [most, away]: [Option<Nanos>; 2]) {
        let now = self.world.now();
        let limit = now + most.unwrap_or_else(|| self.draw_micros(1_000, 500_000));
        let Some(rpc) = self.server(server).filter(|rpc| !rpc.app().is_draining()) else {
            return;
        };
        server::drain(rpc);
        self.tell_drain(server, 50_000);
        self.schedule(now, Event::Strike(Fault::Drained(server, limit, away)));
    }

    /// Begins a drain that lasts until no client has a session. Clients learn of it as fast as over
    /// a control connection.
    pub(super) fn drain_in_order(&mut self, server: usize) {
        if let Some(rpc) = self.server(server) {
            server::drain(rpc);
        }
        self.tell_drain(server, 500);
    }

    /// Notifies each client of a server, within a time, that the server drains.
    fn tell_drain(&mut self, server: usize, most_us: u64) {
        let now = self.world.now();
        for at in self.open_at(server) {
            let after = Nanos::from_micros(self.rng.log_between(10, most_us));
            self.schedule(now + after, Event::Draining(at));
        }
    }

    /// Ends a server whose drain is over, and restarts it at this time.
    pub(super) fn replace(&mut self, server: usize, at: Nanos) {
        self.world.act(Act::Crash(PortId(server)));
        self.schedule(at, Event::Strike(Fault::Start(server)));
    }

    fn drained(&mut self, server: usize, limit: Nanos, away: Option<Nanos>) {
        let now = self.world.now();
        let Some(rpc) = self.server(server) else {
            return;
        };
        if rpc.app().is_draining() && (rpc.session_count() == 0 || now >= limit) {
            return self.crash(server, away);
        }
        if rpc.app().is_draining() {
            let again = now + Nanos::from_millis(1);
            self.schedule(again, Event::Strike(Fault::Drained(server, limit, away)));
        }
    }

    fn draw_micros(&mut self, low: u64, high: u64) -> Nanos {
        Nanos::from_micros(self.rng.log_between(low, high))
    }

    fn open_at(&self, server: usize) -> Vec<usize> {
        let all = self.sessions.iter().enumerate();
        all.filter(|(_, made)| made.server == server && made.is_open)
            .map(|(at, _)| at)
            .collect()
    }

    /// Notes that within a time, every client of a server must learn that its session is gone.
    /// After that, no attempt at a call may continue at that server.
    fn lose_all(&mut self, server: usize, within: Nanos, reason: CloseReason) {
        let now = self.world.now();
        for at in self.open_at(server) {
            let after = Nanos(self.rng.below(within.0));
            self.schedule(now + after, Event::Lost(at, reason));
            let made = self.sessions[at];
            let mut ledger = self.world.cluster.ledger.borrow_mut();
            ledger.fail((made.client.0, made.line), now + within);
        }
    }

    /// Makes every server run, stop refusing, and return to the list.
    pub(super) fn heal(&mut self) {
        self.paused.fill(false);
        self.listed.fill(true);
        let servers = self.listed.len();
        for server in 0..servers {
            if self
                .server(server)
                .is_some_and(|rpc| rpc.app().is_draining())
            {
                self.lose_all(server, Nanos::from_millis(2), CloseReason::PeerFailed);
                self.world.act(Act::Crash(PortId(server)));
            }
        }
        self.world.act(Act::Heal);
        for server in 0..servers {
            if let Some(rpc) = self.server(server) {
                rpc.app_mut().heal();
            }
        }
    }
}
