//! The sessions with one endpoint of one server, which all channels of a thread share. `trunks.rs`
//! brings the events, and has the driver make and end the sessions.
//!
//! A channel's link is a *member* of its trunk. A member whose attempts find no room waits for its
//! turn, and each turn is one attempt. So a call waits for at most one attempt of each other
//! member, even if one of these has thousands of calls. While a trunk has several members, none of
//! them takes the last eighth of its room: otherwise a channel whose calls take seconds would keep
//! all others waiting for that long.
//!
//! A member takes at most the room of eight sessions. A trunk opens another session while a member
//! that has less than this waits and no session has room for it. So calls that end late, or only
//! after calls of other channels, cannot keep another channel waiting for ever.
//!
//! Invariants: a member is in `turns` once if it waits, and otherwise not at all; a session carries
//! at most as many attempts as its window.

use std::collections::{BTreeMap, VecDeque};

use dunlin_core::Nanos;
use dunlin_wire::control::Serving;

use crate::handle::LinkId;
#[cfg(feature = "mutants")]
use crate::mutant::Mutant;

/// The most sessions whose room one member takes.
const MAX_LINES: u32 = 8;

/// If a trunk has several members, each leaves one slot in this many to the others.
const RESERVED: u32 = 8;

/// The time after which a trunk tries again to open a further session.
const GROW_AGAIN: Nanos = Nanos::from_millis(100);

/// A link of a channel: the channel's number, and the link.
pub type Member = (u32, LinkId);

/// The server and the endpoint to which a trunk leads.
pub type Destination = (Box<str>, u16);

/// Facts about an open trunk, for its members.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    /// The endpoint at its other end.
    pub endpoint: u16,
    /// Number of requests that one session takes at the same time.
    pub window: u32,
    /// The services that the server has announced.
    pub said: Option<Said>,
}

/// The services of a server.
#[derive(Clone, Copy, Debug)]
pub struct Said {
    /// The number of its process.
    pub process: u64,
    /// Its services.
    pub serving: Serving,
}

/// A trunk whose sessions have the handle `S`.
#[derive(Debug)]
pub(crate) struct Trunk<S> {
    place: Destination,
    lines: Vec<Line<S>>,
    members: BTreeMap<Member, Standing>,
    turns: VecDeque<Member>,
    said: Option<Said>,
    /// A session was lost: no further attempt begins, and the other sessions end with their last
    /// attempts.
    is_broken: bool,
    /// The trunk opens no further session before this time.
    grow_from: Nanos,
    #[cfg(feature = "mutants")]
    mutant: Option<Mutant>,
}

/// A session.
#[derive(Debug)]
struct Line<S> {
    session: S,
    /// Zero until it is open.
    window: u32,
    /// Attempts that have not ended.
    issued: u32,
}

/// The number of a member's attempts under way, and whether the member waits for its turn.
#[derive(Clone, Copy, Default, Debug)]
struct Standing {
    issued: u32,
    waits: bool,
}

impl<S: Copy + PartialEq> Trunk<S> {
    pub(crate) fn new(place: Destination, first: S) -> Self {
        let mut trunk = Self {
            place,
            lines: Vec::new(),
            members: BTreeMap::new(),
            turns: VecDeque::new(),
            said: None,
            is_broken: false,
            grow_from: Nanos::ZERO,
            #[cfg(feature = "mutants")]
            mutant: None,
        };
        trunk.on_line(first);
        trunk
    }

    /// Plants a bug, or none.
    #[cfg(feature = "mutants")]
    pub(crate) const fn with(mut self, mutant: Option<Mutant>) -> Self {
        self.mutant = mutant;
        self
    }

    #[cfg(feature = "mutants")]
    fn shows(&self, mutant: Mutant) -> bool {
        self.mutant == Some(mutant)
    }

    // Questions.

    pub(crate) const fn place(&self) -> &Destination {
        &self.place
    }

    pub(crate) const fn said(&self) -> Option<&Said> {
        self.said.as_ref()
    }

    /// The facts for members; `None`: no session is open yet.
    pub(crate) fn facts(&self) -> Option<Facts> {
        let open = self.lines.iter().find(|line| line.window > 0)?;
        Some(Facts {
            endpoint: self.place.1,
            window: open.window,
            said: self.said,
        })
    }

    pub(crate) fn members(&self) -> Vec<Member> {
        self.members.keys().copied().collect()
    }

    /// Whether neither a channel nor a session is left.
    pub(crate) fn is_over(&self) -> bool {
        self.members.is_empty() && self.lines.is_empty()
    }

    /// Whether the member's next attempt may begin now, before those that wait.
    pub(crate) fn takes(&self, member: Member) -> bool {
        let most = self.most();
        self.line().is_some() && self.has_less(member, most) && !self.waits_any(most)
    }

    /// Whether a further session must be opened, because no session has room for a member that
    /// waits.
    pub(crate) fn must_grow(&self, now: Nanos) -> bool {
        let are_open = || self.lines.iter().all(|line| line.window > 0);
        let may_grow = !self.is_broken && now >= self.grow_from;
        let most = self.share_of(MAX_LINES * self.widest());
        may_grow && self.waits_any(most) && !self.has_turn() && are_open()
    }

    /// The time from which a session may be opened again, after one could not be.
    pub(crate) const fn grow_from(&self) -> Nanos {
        self.grow_from
    }

    /// Whether a member that waits may begin its next attempt.
    fn has_turn(&self) -> bool {
        self.line().is_some() && self.waits_any(self.most())
    }

    /// The index of the session with the fewest attempts, if it has room.
    fn line(&self) -> Option<usize> {
        let lines = self.lines.iter().enumerate();
        let with_room = lines.filter(|(_, line)| line.issued < line.window && !self.is_broken);
        let least = with_room.min_by_key(|(_, line)| line.issued);
        least.map(|(at, _)| at)
    }

    /// The most attempts that a member may have at once.
    fn most(&self) -> u32 {
        let room: u32 = self.lines.iter().map(|line| line.window).sum();
        self.share_of(room.min(MAX_LINES * self.widest()))
    }

    /// The greatest window of a session.
    fn widest(&self) -> u32 {
        let windows = self.lines.iter().map(|line| line.window);
        windows.max().unwrap_or(0)
    }

    /// The part of a room that a member takes.
    fn share_of(&self, room: u32) -> u32 {
        match self.members.len() {
            1 => room,
            _ => room - room / RESERVED,
        }
    }

    /// Whether a member has fewer attempts than this.
    fn has_less(&self, member: Member, most: u32) -> bool {
        let standing = self.members.get(&member);
        standing.is_some_and(|standing| standing.issued < most)
    }

    /// Whether a member with fewer attempts than this waits.
    fn waits_any(&self, most: u32) -> bool {
        self.turns.iter().any(|member| self.has_less(*member, most))
    }

    // Events of members.

    pub(crate) fn on_join(&mut self, member: Member) {
        self.members.entry(member).or_default();
    }

    pub(crate) fn on_leave(&mut self, member: Member) {
        let standing = self.members.remove(&member);
        #[cfg(feature = "mutants")]
        if self.shows(Mutant::FirstDropEndsAll) {
            self.members.clear();
        }
        if standing.is_some_and(|standing| standing.waits) {
            self.turns.retain(|other| *other != member);
        }
    }

    /// A member has an attempt that waits for its turn.
    pub(crate) fn on_wait(&mut self, member: Member) {
        if let Some(standing) = self.members.get_mut(&member)
            && !std::mem::replace(&mut standing.waits, true)
        {
            #[cfg(feature = "mutants")]
            if self.shows(Mutant::LastWaitsLeast) {
                return self.turns.push_front(member);
            }
            self.turns.push_back(member);
        }
    }

    /// Takes the member whose turn it is, if there is room for its next attempt.
    pub(crate) fn next_turn(&mut self) -> Option<Member> {
        self.line()?;
        let most = self.most();
        let at = self.turns.iter().position(|it| self.has_less(*it, most))?;
        let member = self.turns.remove(at)?;
        if let Some(standing) = self.members.get_mut(&member) {
            standing.waits = false;
        }
        Some(member)
    }

    // Events of attempts.

    /// Begins an attempt of a member; returns the session for it.
    pub(crate) fn on_attempt(&mut self, member: Member) -> Option<S> {
        let line = self.line()?;
        let standing = self.members.get_mut(&member)?;
        standing.issued += 1;
        let line = &mut self.lines[line];
        line.issued += 1;
        Some(line.session)
    }

    /// An attempt of a member on this session has ended.
    pub(crate) fn on_attempt_end(&mut self, member: Member, session: S) {
        if let Some(standing) = self.members.get_mut(&member) {
            standing.issued = standing.issued.saturating_sub(1);
        }
        let mut lines = self.lines.iter_mut();
        if let Some(line) = lines.find(|line| line.session == session) {
            line.issued = line.issued.saturating_sub(1);
        }
    }

    // Events of sessions.

    /// A session begins to open.
    pub(crate) fn on_line(&mut self, session: S) {
        self.lines.push(Line {
            session,
            window: 0,
            issued: 0,
        });
    }

    /// A session is open. True if it is the first one.
    pub(crate) fn on_open(&mut self, session: S, window: u32) -> bool {
        let is_first = self.lines.iter().all(|line| line.window == 0);
        let mut lines = self.lines.iter_mut();
        let line = lines.find(|line| line.session == session);
        let Some(line) = line else { return false };
        line.window = window;
        is_first
    }

    pub(crate) const fn on_serving(&mut self, said: Said) {
        self.said = Some(said);
    }

    /// A session has ended, or could not be made. Returns true if it was open, or if it was the
    /// only one; then the members lose the trunk.
    pub(crate) fn on_closed(&mut self, session: S, now: Nanos) -> bool {
        let at = self.lines.iter().position(|line| line.session == session);
        let Some(at) = at else { return false };
        let was_open = self.lines.swap_remove(at).window > 0;
        if !was_open && !self.lines.is_empty() {
            self.on_no_growth(now);
            return false;
        }
        self.is_broken = true;
        true
    }

    /// A further session could not be opened.
    pub(crate) fn on_no_growth(&mut self, now: Nanos) {
        self.grow_from = now + GROW_AGAIN;
    }

    /// Removes all members, after the trunk has broken.
    pub(crate) fn take_members(&mut self) -> Vec<Member> {
        self.turns.clear();
        std::mem::take(&mut self.members).into_keys().collect()
    }

    /// Removes a session that must end now. If the trunk is broken, sessions without attempts must
    /// end. Otherwise, all sessions must end if the trunk has no member, and none if it has one.
    pub(crate) fn take_useless(&mut self) -> Option<S> {
        let is_useless = |line: &Line<S>| line.issued == 0 || !self.is_broken;
        let may_end = self.is_broken || self.members.is_empty();
        #[cfg(feature = "mutants")]
        let may_end = may_end && (self.is_broken || !self.shows(Mutant::SessionsOutlive));
        let at = self.lines.iter().position(is_useless).filter(|_| may_end)?;
        Some(self.lines.swap_remove(at).session)
    }
}

#[cfg(test)]
mod tests;
