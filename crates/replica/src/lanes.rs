//! Lanes: sessions with other processes, one for each address.
//!
//! ```text
//! Down ──wish──▶ Wanted ──▶ Connecting ──connected──▶ Open
//!   ▲──────────────┴────closed, refused─────┴───────────┘
//! ```
//! A lane that goes down pauses before the next wish; each failure in a row makes the pause longer.
//! Called by `replica` and `client`; the owner of the endpoint grants the wishes.

use dunlin_core::{Nanos, Session};

/// The pauses of lanes that go down: the first one, which doubles with each failure, and the
/// longest.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pauses {
    pub(crate) least: Nanos,
    pub(crate) most: Nanos,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// From this time on a session is wanted.
    Down(Nanos),
    /// The owner knows that a session is wanted.
    Wanted,
    Connecting(Session),
    Open(Session),
}

#[derive(Debug)]
struct Lane {
    address: String,
    state: State,
    failures: u32,
}

#[derive(Debug)]
pub(crate) struct Lanes {
    lanes: Vec<Lane>,
    pauses: Pauses,
}

impl Lane {
    const fn to(address: String) -> Self {
        Self {
            address,
            state: State::Down(Nanos::ZERO),
            failures: 0,
        }
    }

    const fn nowhere() -> Self {
        Self {
            address: String::new(),
            state: State::Down(Nanos::MAX),
            failures: 0,
        }
    }

    const fn session(&self) -> Option<Session> {
        match self.state {
            State::Down(_) | State::Wanted => None,
            State::Connecting(session) | State::Open(session) => Some(session),
        }
    }

    fn fail(&mut self, now: Nanos, pauses: Pauses) {
        let factor = 1 << self.failures.min(16);
        self.failures += 1;
        self.state = match self.address.is_empty() {
            true => State::Down(Nanos::MAX),
            false => State::Down(now + pauses.least.times(factor).min(pauses.most)),
        };
    }
}

impl Lanes {
    /// Makes lanes to some addresses.
    pub(crate) fn new(addresses: impl IntoIterator<Item = String>, pauses: Pauses) -> Self {
        Self {
            lanes: addresses.into_iter().map(Lane::to).collect(),
            pauses,
        }
    }

    /// Adds a lane without an address.
    pub(crate) fn add(&mut self) {
        self.lanes.push(Lane::nowhere());
    }

    /// Gives a lane an address. If it has a session with another address, it returns that session,
    /// and the caller ends it.
    pub(crate) fn lead(&mut self, lane: usize, address: &str) -> Option<Session> {
        let lane = &mut self.lanes[lane];
        if lane.address == address {
            return None;
        }
        let session = lane.session();
        *lane = Lane::to(address.to_owned());
        session
    }

    /// Takes a lane's address away, so that another owner can use the lane. Returns its session,
    /// which the caller ends.
    pub(crate) fn clear(&mut self, lane: usize) -> Option<Session> {
        let session = self.lanes[lane].session();
        self.lanes[lane] = Lane::nowhere();
        session
    }

    /// Takes a lane's address away. Its session stays until it ends, for calls in flight.
    pub(crate) fn stop(&mut self, lane: usize) {
        let lane = &mut self.lanes[lane];
        lane.address.clear();
        if lane.session().is_none() {
            lane.state = State::Down(Nanos::MAX);
        }
    }

    pub(crate) const fn len(&self) -> usize {
        self.lanes.len()
    }

    /// The lane to an address.
    pub(crate) fn find(&self, address: &[u8]) -> Option<usize> {
        let is_it = |lane: &Lane| lane.address.as_bytes() == address;
        self.lanes.iter().position(is_it)
    }

    /// The session of a lane, if it is open.
    pub(crate) fn open(&self, lane: usize) -> Option<Session> {
        match self.lanes.get(lane)?.state {
            State::Open(session) => Some(session),
            _ => None,
        }
    }

    /// An address for which a session is wanted now.
    pub(crate) fn wish(&mut self, now: Nanos) -> Option<String> {
        let is_due = |lane: &&mut Lane| matches!(lane.state, State::Down(at) if at <= now);
        let lane = self.lanes.iter_mut().find(is_due)?;
        lane.state = State::Wanted;
        Some(lane.address.clone())
    }

    /// When the next wish is due.
    pub(crate) fn next_wish(&self) -> Nanos {
        let due = self.lanes.iter().filter_map(|lane| match lane.state {
            State::Down(at) => Some(at),
            _ => None,
        });
        due.min().unwrap_or(Nanos::MAX)
    }

    /// Notes that a session is being made. False: no lane wants it any more.
    pub(crate) fn on_connecting(&mut self, address: &str, session: Session) -> bool {
        let Some(lane) = self.wanted(address) else {
            return false;
        };
        lane.state = State::Connecting(session);
        true
    }

    pub(crate) fn on_refused(&mut self, address: &str, now: Nanos) {
        let pauses = self.pauses;
        if let Some(lane) = self.wanted(address) {
            lane.fail(now, pauses);
        }
    }

    /// Notes that a session is ready. False: no lane has this session.
    pub(crate) fn on_connected(&mut self, session: Session) -> bool {
        let Some(lane) = self.of(session) else {
            return false;
        };
        lane.state = State::Open(session);
        lane.failures = 0;
        true
    }

    pub(crate) fn on_closed(&mut self, session: Session, now: Nanos) {
        let pauses = self.pauses;
        if let Some(lane) = self.of(session) {
            lane.fail(now, pauses);
        }
    }

    fn wanted(&mut self, address: &str) -> Option<&mut Lane> {
        let is_it = |lane: &&mut Lane| lane.address == address && lane.state == State::Wanted;
        self.lanes.iter_mut().find(is_it)
    }

    fn of(&mut self, session: Session) -> Option<&mut Lane> {
        let is_it = |lane: &&mut Lane| lane.session() == Some(session);
        self.lanes.iter_mut().find(is_it)
    }
}

#[cfg(test)]
mod tests;
