//! Lanes: the client's sessions, one to each endpoint of the server that it needs.
//!
//! ```text
//! Down ──wish──▶ Wanted ──▶ Connecting ──connected──▶ Greeting ──map──▶ Open
//!   ▲──────────────┴────────────┴─────closed, refused──┴──────────────────┘
//! ```
//! A lane that goes down pauses before the next wish; each failure in a row makes the pause longer.
//! A lane whose endpoint is no longer in the server's map stays down.

use dunlin_core::{Nanos, Session};
use dunlin_store::route;

use super::options::Options;
use crate::wire::share;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// From this time on a session is wanted.
    Down(Nanos),
    /// The owner knows that a session is wanted.
    Wanted,
    Connecting(Session),
    Greeting(Session),
    /// The server's map has this tag.
    Open(Session, u32),
}

/// The state of the lane to the endpoint that is asked first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LinkState {
    Down,
    /// A session was wished for, or is not open yet.
    Coming,
    Open,
}

#[derive(Clone, Copy, Debug)]
struct Lane {
    endpoint: u16,
    state: State,
    failures: u32,
    /// Whether the map has its endpoint, or it is the first lane.
    is_needed: bool,
    /// The tag of the server's map when the session was wished for, or the tag that came over it.
    tag: Option<u32>,
    /// Whether the last session with the server under the current map was lost or could not be
    /// made.
    is_down: bool,
}

/// The way to a partition: a session with its endpoint, over which the server has confirmed the
/// current map.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way {
    pub(super) session: Session,
    /// The tag of the map, which requests carry.
    pub(super) tag: u32,
}

/// The lanes. The first leads to the endpoint that is asked first, and stays under every map.
#[derive(Debug)]
pub(super) struct Lanes {
    lanes: Vec<Lane>,
    /// For each partition, the index of its lane in `lanes`, which never changes for a lane.
    of_partitions: Vec<u16>,
    /// The way to each partition, computed from the states of the lanes.
    ways: Vec<Option<Way>>,
    /// The tag of the current map.
    tag: Option<u32>,
}

impl Lane {
    const fn new(endpoint: u16) -> Self {
        Self {
            endpoint,
            state: State::Down(Nanos::ZERO),
            failures: 0,
            is_needed: true,
            tag: None,
            is_down: false,
        }
    }

    /// When the lane wants a session; `None`: it has one, or is not needed.
    const fn due(&self) -> Option<Nanos> {
        match self.state {
            State::Down(at) if self.is_needed => Some(at),
            _ => None,
        }
    }

    const fn session(&self) -> Option<Session> {
        match self.state {
            State::Down(_) | State::Wanted => None,
            State::Connecting(session) | State::Greeting(session) | State::Open(session, _) => {
                Some(session)
            }
        }
    }

    /// Notes that the lane has no session. `tag` is the tag of the current map.
    fn fail(&mut self, tag: Option<u32>, now: Nanos, options: &Options) {
        let factor = 1 << self.failures.min(16);
        let pause = options.least_pause.times(factor).min(options.most_pause);
        self.failures += 1;
        self.is_down |= self.tag == tag;
        self.state = State::Down(now + pause);
    }
}

impl Lanes {
    /// Makes the lane to the endpoint that is asked first.
    pub(super) fn new(first: u16) -> Self {
        Self {
            lanes: vec![Lane::new(first)],
            of_partitions: Vec::new(),
            ways: Vec::new(),
            tag: None,
        }
    }

    /// Takes a new map: each of its endpoints needs a lane, and no other does. Failures under
    /// another map say nothing about the server that has this one.
    pub(super) fn need(&mut self, endpoints: impl Iterator<Item = u16>, tag: u32) {
        self.tag = Some(tag);
        for lane in self.lanes.iter_mut().skip(1) {
            lane.is_needed = false;
            lane.is_down = false;
        }
        self.of_partitions.clear();
        for endpoint in endpoints {
            let place = self.place_for(endpoint);
            self.lanes[place].is_needed = true;
            let place = u16::try_from(place).expect("a place for each endpoint");
            self.of_partitions.push(place);
        }
        self.find_ways();
    }

    /// The index of the lane to an endpoint. Makes the lane if there is none.
    fn place_for(&mut self, endpoint: u16) -> usize {
        let mut lanes = self.lanes.iter();
        let place = lanes.position(|lane| lane.endpoint == endpoint);
        place.unwrap_or_else(|| {
            self.lanes.push(Lane::new(endpoint));
            self.lanes.len() - 1
        })
    }

    /// Whether this is the session to the endpoint that is asked first.
    pub(super) fn is_first(&self, session: Session) -> bool {
        self.lanes[0].session() == Some(session)
    }

    /// The state of the lane to the endpoint that is asked first.
    #[inline]
    pub(super) fn link(&self) -> LinkState {
        match self.lanes[0].state {
            State::Down(_) => LinkState::Down,
            State::Wanted | State::Connecting(_) | State::Greeting(_) => LinkState::Coming,
            State::Open(..) => LinkState::Open,
        }
    }

    /// Whether a session with an endpoint of the current map is open.
    pub(super) fn any_open(&self) -> bool {
        let is_open =
            |lane: &Lane| matches!(lane.state, State::Open(_, tag) if Some(tag) == self.tag);
        self.lanes.iter().any(is_open)
    }

    /// Whether the client has no session with an endpoint of the map, and will not have one soon.
    pub(super) fn is_down(&self, endpoint: u16) -> bool {
        let mut lanes = self.lanes.iter();
        lanes.any(|lane| lane.endpoint == endpoint && lane.is_down)
    }

    /// The sessions of all lanes.
    pub(super) fn sessions(&self) -> Vec<Session> {
        self.lanes.iter().filter_map(Lane::session).collect()
    }

    /// An endpoint whose lane wants a session now.
    pub(super) fn wish(&mut self, now: Nanos) -> Option<u16> {
        let is_due = |lane: &&mut Lane| lane.due().is_some_and(|at| at <= now);
        let lane = self.lanes.iter_mut().find(is_due)?;
        lane.state = State::Wanted;
        lane.tag = self.tag;
        Some(lane.endpoint)
    }

    /// The time at which the next wish is due.
    pub(super) fn next_wish(&self) -> Nanos {
        let due = self.lanes.iter().filter_map(Lane::due);
        due.min().unwrap_or(Nanos::MAX)
    }

    /// Notes the session that is being made for a wish. False: no lane wants it.
    pub(super) fn on_connecting(&mut self, endpoint: u16, session: Session) -> bool {
        let is_it = |lane: &&mut Lane| lane.endpoint == endpoint && lane.state == State::Wanted;
        let lane = self.lanes.iter_mut().find(is_it);
        lane.map(|lane| lane.state = State::Connecting(session))
            .is_some()
    }

    pub(super) fn on_refused(&mut self, endpoint: u16, now: Nanos, options: &Options) {
        let is_it = |lane: &&mut Lane| lane.endpoint == endpoint && lane.state == State::Wanted;
        if let Some(lane) = self.lanes.iter_mut().find(is_it) {
            lane.fail(self.tag, now, options);
        }
    }

    /// Notes that a session is ready for its greeting. False: it is not this client's session.
    pub(super) fn on_connected(&mut self, session: Session) -> bool {
        self.change(session, |lane, _| lane.state = State::Greeting(session))
    }

    /// Notes that the server has answered the greeting.
    pub(super) fn on_greeted(&mut self, session: Session, tag: u32) {
        self.change(session, |lane, _| {
            lane.state = State::Open(session, tag);
            lane.failures = 0;
            lane.tag = Some(tag);
            lane.is_down = false;
        });
    }

    /// Notes that a server has another map than the one in its session's greeting. True: the client
    /// must send another greeting.
    pub(super) fn on_map_changed(&mut self, session: Session) -> bool {
        let mut was_open = false;
        self.change(session, |lane, _| {
            was_open = matches!(lane.state, State::Open(..));
            if was_open {
                lane.state = State::Greeting(session);
            }
        });
        was_open
    }

    pub(super) fn on_closed(&mut self, session: Session, now: Nanos, options: &Options) {
        self.change(session, |lane, tag| lane.fail(tag, now, options));
    }

    /// The way to a partition, if it is open.
    pub(super) fn way(&self, partition: u16) -> Option<Way> {
        self.ways.get(usize::from(partition)).copied().flatten()
    }

    /// The way to the partition of a key. `hash` is the hash that routes the key, if the caller has
    /// it; the key is hashed only if there are several partitions.
    #[inline]
    pub(super) fn way_of_key(&self, key: &[u8], hash: Option<u64>) -> Option<Way> {
        match &self.ways[..] {
            [only] => *only,
            ways => {
                let hash = hash.unwrap_or_else(|| route(key));
                *ways.get(usize::from(share(hash, ways.len())))?
            }
        }
    }

    /// Changes the lane with this session; the function also gets the tag of the current map.
    /// False: there is no such lane.
    fn change(&mut self, session: Session, to: impl FnOnce(&mut Lane, Option<u32>)) -> bool {
        let is_it = |lane: &&mut Lane| lane.session() == Some(session);
        let Some(lane) = self.lanes.iter_mut().find(is_it) else {
            return false;
        };
        to(lane, self.tag);
        self.find_ways();
        true
    }

    /// Recomputes the ways, after a lane or the map has changed.
    fn find_ways(&mut self) {
        self.ways.clear();
        for place in &self.of_partitions {
            self.ways.push(match self.lanes[usize::from(*place)].state {
                State::Open(session, tag) if Some(tag) == self.tag => Some(Way { session, tag }),
                _ => None,
            });
        }
    }
}
