//! All trunks of a thread: makes their sessions when the first channel needs them, ends them after
//! the last one, and brings the events of a session to the channels that share it.
//!
//! Invariant: every open or opening session belongs to one trunk; at most one trunk that is not
//! broken leads to each endpoint of each server.

use std::collections::BTreeMap;
use std::time::Duration;

use dunlin_core::{CloseReason, Nanos, Session};
use dunlin_nexus::{ConnectError, ConnectOptions, PeerServing, Rpc};
use dunlin_transport::auto::Auto;

use crate::error::AddressError;
use crate::inbox::Inbox;
use crate::trunk::{Destination, Facts, Member, Said, Trunk};

/// The timeout of one attempt to connect, after which the reason for its failure is known. The
/// patience of calls does not shorten it: a distant server may need more time than a call has.
const ATTEMPT: Duration = Duration::from_secs(1);

/// The longest time between two questions for a late answer while a server drains. A drain takes as
/// long as its last answer, and if that is lost on the way, the server waits until this side asks.
const HURRY: Nanos = Nanos::from_millis(20);

/// The number of a trunk. Numbers are not used again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct TrunkId(u64);

/// The endpoint of a thread, which has its sessions.
type Endpoint = Rpc<Auto, Inbox>;

#[derive(Debug, Default)]
pub(crate) struct Trunks {
    all: BTreeMap<TrunkId, Trunk<Session>>,
    by_place: BTreeMap<Destination, TrunkId>,
    by_session: BTreeMap<Session, TrunkId>,
    /// Trunks that may have room for an attempt that waits.
    roomy: Vec<TrunkId>,
    /// The time at which trunks that could not open a session try again.
    grow_at: Option<Nanos>,
    made: u64,
    /// While a server drains: the endpoint's usual limit for the time between two questions for a
    /// late answer.
    calm: Option<Nanos>,
}

/// The loss of a trunk, for its members.
#[derive(Debug)]
pub(crate) struct Loss {
    pub(crate) members: Vec<Member>,
    pub(crate) reason: CloseReason,
    pub(crate) error: AddressError,
    /// The number of endpoints that serve, if the server has announced it.
    pub(crate) endpoints: Option<u16>,
}

impl Trunks {
    // Questions.

    /// The number of endpoints of a server that serve, if the server has announced that to any
    /// channel.
    pub(crate) fn endpoints_of(&self, server: &str) -> Option<u16> {
        let from = (Box::<str>::from(server), 0);
        let of_server = self.by_place.range(from..);
        let of_server = of_server.take_while(|((name, _), _)| &**name == server);
        let said = |id: &TrunkId| Some(self.all.get(id)?.said()?.serving.endpoints);
        of_server.filter_map(|(_, id)| said(id)).next()
    }

    /// The number of sessions.
    pub(crate) fn sessions(&self) -> usize {
        self.by_session.len()
    }

    pub(crate) fn members_of(&self, session: Session) -> Vec<Member> {
        let trunk = self
            .by_session
            .get(&session)
            .and_then(|id| self.all.get(id));
        trunk.map(Trunk::members).unwrap_or_default()
    }

    /// The time at which [`Self::next_turn`] has something to do, if no event comes before.
    pub(crate) fn next_wakeup(&self) -> Nanos {
        self.grow_at.unwrap_or(Nanos::MAX)
    }

    /// Whether the member's next attempt may begin now.
    pub(crate) fn takes(&self, id: TrunkId, member: Member) -> bool {
        self.all.get(&id).is_some_and(|it| it.takes(member))
    }

    // Events of members.

    /// Adds a member to the trunk that leads to `place`, and begins the trunk if there is none.
    /// Returns facts if the trunk is open already.
    pub(crate) fn join(
        &mut self,
        place: Destination,
        member: Member,
        endpoint: &mut Endpoint,
    ) -> Result<(TrunkId, Option<Facts>), ConnectError> {
        let id = match self.by_place.get(&place) {
            Some(id) => *id,
            None => self.begin(place, endpoint)?,
        };
        let trunk = self.all.get_mut(&id).expect("a place leads to a trunk");
        trunk.on_join(member);
        Ok((id, trunk.facts()))
    }

    fn begin(
        &mut self,
        place: Destination,
        endpoint: &mut Endpoint,
    ) -> Result<TrunkId, ConnectError> {
        let session = connect(&place, endpoint)?;
        let id = TrunkId(self.made);
        self.made += 1;
        self.by_session.insert(session, id);
        self.by_place.insert(place.clone(), id);
        self.all.insert(id, Trunk::new(place, session));
        Ok(id)
    }

    /// Removes a member; the trunk ends with the last one.
    pub(crate) fn leave(&mut self, id: TrunkId, member: Member, endpoint: &mut Endpoint) {
        if let Some(trunk) = self.all.get_mut(&id) {
            trunk.on_leave(member);
            self.on_room(id);
            self.end_useless(id, endpoint);
        }
    }

    /// A member has an attempt that waits for its turn. If no session has room, opens another one.
    pub(crate) fn on_wait(
        &mut self,
        id: TrunkId,
        member: Member,
        endpoint: &mut Endpoint,
        now: Nanos,
    ) {
        if let Some(trunk) = self.all.get_mut(&id) {
            trunk.on_wait(member);
            self.grow(id, endpoint, now);
        }
    }

    /// Opens a further session if no session has room for a member that waits.
    fn grow(&mut self, id: TrunkId, endpoint: &mut Endpoint, now: Nanos) {
        let trunk = self.all.get_mut(&id);
        let Some(trunk) = trunk.filter(|it| it.must_grow(now)) else {
            return;
        };
        if let Ok(session) = connect(trunk.place(), endpoint) {
            trunk.on_line(session);
            self.by_session.insert(session, id);
        } else {
            trunk.on_no_growth(now);
            let again = trunk.grow_from();
            self.grow_by(again);
        }
    }

    fn grow_by(&mut self, at: Nanos) {
        self.grow_at = Some(self.grow_at.map_or(at, |it| it.min(at)));
    }

    /// The member whose turn it is in any trunk. A trunk in which none has a turn, but one still
    /// waits, opens a further session.
    pub(crate) fn next_turn(&mut self, endpoint: &mut Endpoint, now: Nanos) -> Option<Member> {
        if self.grow_at.take_if(|at| *at <= now).is_some() {
            self.roomy = self.all.keys().copied().collect();
        }
        while let Some(id) = self.roomy.last().copied() {
            let member = self.all.get_mut(&id).and_then(Trunk::next_turn);
            if member.is_some() {
                return member;
            }
            self.roomy.pop();
            self.grow(id, endpoint, now);
        }
        None
    }

    // Events of attempts.

    /// Begins an attempt of a member; returns the session for it. `None`: the trunk has no room, or
    /// is broken.
    pub(crate) fn on_attempt(&mut self, id: TrunkId, member: Member) -> Option<Session> {
        self.all.get_mut(&id)?.on_attempt(member)
    }

    /// An attempt has ended.
    pub(crate) fn on_attempt_end(
        &mut self,
        member: Member,
        session: Session,
        endpoint: &mut Endpoint,
    ) {
        let id = self.by_session.get(&session).copied();
        if let Some(id) = id
            && let Some(trunk) = self.all.get_mut(&id)
        {
            trunk.on_attempt_end(member, session);
            self.on_room(id);
            self.end_useless(id, endpoint);
        }
    }

    // Events of sessions.

    /// A session is open. Returns the members, and facts for them, if it is the first of its trunk.
    pub(crate) fn on_connected(
        &mut self,
        session: Session,
        endpoint: &Endpoint,
    ) -> Option<(Vec<Member>, Facts)> {
        let id = *self.by_session.get(&session)?;
        let trunk = self.all.get_mut(&id)?;
        let window = endpoint.session_info(session).ok()?.window;
        let is_first = trunk.on_open(session, window);
        let facts = trunk.facts().filter(|_| is_first);
        let news = facts.map(|facts| (trunk.members(), facts));
        self.on_room(id);
        news
    }

    /// The server of a session has announced its services, perhaps before the session is open.
    pub(crate) fn on_serving(&mut self, said: &PeerServing, endpoint: &mut Endpoint) {
        let id = self.by_session.get(&said.session);
        if let Some(trunk) = id.and_then(|id| self.all.get_mut(id)) {
            trunk.on_serving(Said {
                process: said.process,
                serving: said.serving,
            });
        }
        self.hurry(endpoint);
    }

    /// Has the endpoint ask for late answers more often while a server drains.
    fn hurry(&mut self, endpoint: &mut Endpoint) {
        let drains = |it: &Trunk<Session>| it.said().is_some_and(|said| said.serving.draining);
        match (self.all.values().any(drains), self.calm) {
            (true, None) => {
                let calm = endpoint.cx_again().ask_within(HURRY);
                endpoint.cx_again().ask_within(calm.min(HURRY));
                self.calm = Some(calm);
            }
            (false, Some(calm)) => {
                endpoint.cx_again().ask_within(calm);
                self.calm = None;
            }
            _ => {}
        }
    }

    /// A session has ended, or was never made. Returns the loss if the members lose their trunk.
    pub(crate) fn on_closed(
        &mut self,
        session: Session,
        reason: CloseReason,
        endpoint: &mut Endpoint,
        now: Nanos,
    ) -> Option<Loss> {
        let id = self.by_session.remove(&session)?;
        let trunk = self.all.get_mut(&id)?;
        let was_open = trunk.facts().is_some();
        if !trunk.on_closed(session, now) {
            let again = trunk.grow_from();
            self.grow_by(again);
            return None;
        }
        let members = trunk.take_members();
        let endpoints = trunk.said().map(|said| said.serving.endpoints);
        if self.by_place.get(trunk.place()) == Some(&id) {
            self.by_place.remove(trunk.place());
        }
        self.end_useless(id, endpoint);
        let failure = endpoint.failure(session).filter(|_| !was_open);
        let error = failure.map_or(AddressError::Session(reason), AddressError::Connect);
        Some(Loss {
            members,
            reason,
            error,
            endpoints,
        })
    }

    // Inside.

    fn on_room(&mut self, id: TrunkId) {
        if !self.roomy.contains(&id) {
            self.roomy.push(id);
        }
    }

    /// Ends the sessions that a trunk no longer needs, and forgets a trunk without sessions.
    fn end_useless(&mut self, id: TrunkId, endpoint: &mut Endpoint) {
        let Some(trunk) = self.all.get_mut(&id) else {
            return;
        };
        while let Some(session) = trunk.take_useless() {
            self.by_session.remove(&session);
            // The session may have ended already, but this thread has not seen that event yet.
            let _ = endpoint.disconnect(session);
        }
        if trunk.is_over() {
            if self.by_place.get(trunk.place()) == Some(&id) {
                self.by_place.remove(trunk.place());
            }
            self.all.remove(&id);
            self.hurry(endpoint);
        }
    }
}

fn connect(
    (server, index): &Destination,
    endpoint: &mut Endpoint,
) -> Result<Session, ConnectError> {
    let options = ConnectOptions {
        endpoint: Some(*index),
        patience: ATTEMPT,
        ..ConnectOptions::default()
    };
    endpoint.connect_with(&**server, &options)
}
