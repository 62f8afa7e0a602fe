//! All trunks of a thread: has the driver make their sessions when the first channel needs them,
//! and end them after the last one, and brings the events of a session to the channels that share
//! it.
//!
//! Invariant: every open or opening session belongs to one trunk; at most one trunk that is not
//! broken leads to each endpoint of each server.

use std::collections::BTreeMap;

use dunlin_core::Nanos;

#[cfg(feature = "mutants")]
use crate::mutant::Mutant;
use crate::trunk::{Destination, Facts, Member, Said, Trunk};

/// The driver's sessions.
pub trait Sessions {
    /// The handle of a session.
    type Session: Copy + Ord;
    /// The reason why no session can be made.
    type Error;

    /// Begins a session. The driver reports with [`Trunks::on_opened`] or [`Trunks::on_closed`]
    /// how that ends.
    ///
    /// # Errors
    /// No session can be made now.
    fn begin(&mut self, to: &Destination) -> Result<Self::Session, Self::Error>;

    /// Ends a session, which is not reported back. It may have ended already.
    fn end(&mut self, session: Self::Session);

    /// Called with true when a server begins to drain, and with false when it no longer drains. A
    /// drain ends with the last answer. If that answer is lost on the way, the server waits until
    /// this side asks again, so during a drain the driver asks more often.
    fn hurry(&mut self, drains: bool);
}

/// The number of a trunk. Numbers are not used again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct TrunkId(u64);

/// The sessions that the channels of a thread share, by trunks: the turns of the channels, and when
/// a session begins and ends. [`Sessions`] is the driver.
#[derive(Debug)]
pub struct Trunks<S> {
    all: BTreeMap<TrunkId, Trunk<S>>,
    by_place: BTreeMap<Destination, TrunkId>,
    by_session: BTreeMap<S, TrunkId>,
    /// Trunks that may have room for an attempt that waits.
    roomy: Vec<TrunkId>,
    /// The time at which trunks that could not open a session try again.
    grow_at: Option<Nanos>,
    made: u64,
    /// A server drains.
    hurries: bool,
    #[cfg(feature = "mutants")]
    mutant: Option<Mutant>,
}

/// The loss of a trunk, for its members.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Loss {
    /// Its members, whose links are lost.
    pub members: Vec<Member>,
    /// Whether a session was open.
    pub was_open: bool,
    /// The number of endpoints that serve, if the server has announced it.
    pub endpoints: Option<u16>,
}

impl<S: Copy + Ord> Default for Trunks<S> {
    fn default() -> Self {
        Self {
            all: BTreeMap::new(),
            by_place: BTreeMap::new(),
            by_session: BTreeMap::new(),
            roomy: Vec::new(),
            grow_at: None,
            made: 0,
            hurries: false,
            #[cfg(feature = "mutants")]
            mutant: None,
        }
    }
}

impl<S: Copy + Ord> Trunks<S> {
    /// Plants a bug, or none.
    #[cfg(feature = "mutants")]
    #[must_use]
    pub fn with(mutant: Option<Mutant>) -> Self {
        Self {
            mutant,
            ..Self::default()
        }
    }

    // Questions.

    /// The number of endpoints of a server that serve, if the server has announced that to any
    /// channel.
    pub fn endpoints_of(&self, server: &str) -> Option<u16> {
        let from = (Box::<str>::from(server), 0);
        let of_server = self.by_place.range(from..);
        let of_server = of_server.take_while(|((name, _), _)| &**name == server);
        let said = |id: &TrunkId| Some(self.all.get(id)?.said()?.serving.endpoints);
        of_server.filter_map(|(_, id)| said(id)).next()
    }

    /// The number of sessions.
    pub fn sessions(&self) -> usize {
        self.by_session.len()
    }

    /// The members of a session's trunk.
    pub fn members_of(&self, session: S) -> Vec<Member> {
        let trunk = self
            .by_session
            .get(&session)
            .and_then(|id| self.all.get(id));
        trunk.map(Trunk::members).unwrap_or_default()
    }

    /// The time at which [`Self::next_turn`] has something to do, if no event comes before.
    pub fn next_wakeup(&self) -> Nanos {
        self.grow_at.unwrap_or(Nanos::MAX)
    }

    /// Whether the member's next attempt may begin now.
    pub fn takes(&self, id: TrunkId, member: Member) -> bool {
        self.all.get(&id).is_some_and(|it| it.takes(member))
    }

    // Events of members.

    /// Adds a member to the trunk that leads to `place`, and begins the trunk if there is none.
    /// Returns facts if the trunk is open already.
    ///
    /// # Errors
    /// The driver cannot make the first session.
    ///
    /// # Panics
    /// Never.
    pub fn join<E>(
        &mut self,
        place: Destination,
        member: Member,
        driver: &mut impl Sessions<Session = S, Error = E>,
    ) -> Result<(TrunkId, Option<Facts>), E> {
        let id = match self.by_place.get(&place) {
            Some(id) => *id,
            None => self.begin(place, driver)?,
        };
        let trunk = self.all.get_mut(&id).expect("a place leads to a trunk");
        trunk.on_join(member);
        Ok((id, trunk.facts()))
    }

    fn begin<E>(
        &mut self,
        place: Destination,
        driver: &mut impl Sessions<Session = S, Error = E>,
    ) -> Result<TrunkId, E> {
        let session = driver.begin(&place)?;
        let id = TrunkId(self.made);
        self.made += 1;
        self.by_session.insert(session, id);
        self.by_place.insert(place.clone(), id);
        let trunk = Trunk::new(place, session);
        #[cfg(feature = "mutants")]
        let trunk = trunk.with(self.mutant);
        self.all.insert(id, trunk);
        Ok(id)
    }

    /// Removes a member; the trunk ends with the last one.
    pub fn leave(&mut self, id: TrunkId, member: Member, driver: &mut impl Sessions<Session = S>) {
        if let Some(trunk) = self.all.get_mut(&id) {
            trunk.on_leave(member);
            self.on_room(id);
            self.end_useless(id, driver);
        }
    }

    /// A member has an attempt that waits for its turn. If no session has room, opens another one.
    pub fn on_wait(
        &mut self,
        id: TrunkId,
        member: Member,
        driver: &mut impl Sessions<Session = S>,
        now: Nanos,
    ) {
        if let Some(trunk) = self.all.get_mut(&id) {
            trunk.on_wait(member);
            self.grow(id, driver, now);
        }
    }

    /// Opens a further session if no session has room for a member that waits.
    fn grow(&mut self, id: TrunkId, driver: &mut impl Sessions<Session = S>, now: Nanos) {
        let trunk = self.all.get_mut(&id);
        let Some(trunk) = trunk.filter(|it| it.must_grow(now)) else {
            return;
        };
        if let Ok(session) = driver.begin(trunk.place()) {
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
    pub fn next_turn(
        &mut self,
        driver: &mut impl Sessions<Session = S>,
        now: Nanos,
    ) -> Option<Member> {
        if self.grow_at.take_if(|at| *at <= now).is_some() {
            self.roomy = self.all.keys().copied().collect();
        }
        while let Some(id) = self.roomy.last().copied() {
            let member = self.all.get_mut(&id).and_then(Trunk::next_turn);
            if member.is_some() {
                return member;
            }
            self.roomy.pop();
            self.grow(id, driver, now);
        }
        None
    }

    // Events of attempts.

    /// Begins an attempt of a member; returns the session for it. `None`: the trunk has no room, or
    /// is broken.
    pub fn on_attempt(&mut self, id: TrunkId, member: Member) -> Option<S> {
        self.all.get_mut(&id)?.on_attempt(member)
    }

    /// An attempt has ended.
    pub fn on_attempt_end(
        &mut self,
        member: Member,
        session: S,
        driver: &mut impl Sessions<Session = S>,
    ) {
        let id = self.by_session.get(&session).copied();
        if let Some(id) = id
            && let Some(trunk) = self.all.get_mut(&id)
        {
            trunk.on_attempt_end(member, session);
            #[cfg(feature = "mutants")]
            if self.mutant == Some(Mutant::RoomForgotten) {
                return;
            }
            self.on_room(id);
            self.end_useless(id, driver);
        }
    }

    // Events of sessions.

    /// A session is open, with a window of this many requests. Returns the members, and facts for
    /// them, if it is the first of its trunk.
    pub fn on_opened(&mut self, session: S, window: u32) -> Option<(Vec<Member>, Facts)> {
        let id = *self.by_session.get(&session)?;
        let trunk = self.all.get_mut(&id)?;
        let is_first = trunk.on_open(session, window);
        let facts = trunk.facts().filter(|_| is_first);
        let news = facts.map(|facts| (trunk.members(), facts));
        self.on_room(id);
        news
    }

    /// The server of a session has announced its services, perhaps before the session is open.
    pub fn on_serving(&mut self, session: S, said: Said, driver: &mut impl Sessions<Session = S>) {
        let id = self.by_session.get(&session);
        if let Some(trunk) = id.and_then(|id| self.all.get_mut(id)) {
            trunk.on_serving(said);
        }
        self.hurry(driver);
    }

    /// Has the driver ask for late answers more often while a server drains.
    fn hurry(&mut self, driver: &mut impl Sessions<Session = S>) {
        let drains = |it: &Trunk<S>| it.said().is_some_and(|said| said.serving.draining);
        let drains = self.all.values().any(drains);
        if drains != self.hurries {
            self.hurries = drains;
            driver.hurry(drains);
        }
    }

    /// A session has ended, or was never made. Returns the loss if the members lose their trunk.
    pub fn on_closed(
        &mut self,
        session: S,
        driver: &mut impl Sessions<Session = S>,
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
        let loss = Loss {
            members: trunk.take_members(),
            was_open,
            endpoints: trunk.said().map(|said| said.serving.endpoints),
        };
        if self.by_place.get(trunk.place()) == Some(&id) {
            self.by_place.remove(trunk.place());
        }
        self.end_useless(id, driver);
        Some(loss)
    }

    // Inside.

    fn on_room(&mut self, id: TrunkId) {
        if !self.roomy.contains(&id) {
            self.roomy.push(id);
        }
    }

    /// Ends the sessions that a trunk no longer needs, and forgets a trunk without sessions.
    fn end_useless(&mut self, id: TrunkId, driver: &mut impl Sessions<Session = S>) {
        let Some(trunk) = self.all.get_mut(&id) else {
            return;
        };
        while let Some(session) = trunk.take_useless() {
            self.by_session.remove(&session);
            driver.end(session);
        }
        if trunk.is_over() {
            if self.by_place.get(trunk.place()) == Some(&id) {
                self.by_place.remove(trunk.place());
            }
            self.all.remove(&id);
            self.hurry(driver);
        }
    }
}
