//! The table of sessions: their indexes, their tokens, and the admission of new ones (rules W5,
//! S7). `line.rs` has the state of one session.

use dunlin_msgbuf::Rows;
#[cfg(feature = "mutants")]
use dunlin_wire::ReqNum;
use dunlin_wire::{SessionNum, Token};

use crate::config::MAX_SESSIONS;
use crate::error::{HandleError, OpenError};
use crate::handle::{EndpointNum, RequestId, Session, SessionIdx, SlotIdx, Ticket};
#[cfg(feature = "mutants")]
use crate::mutant::Mutant;
use crate::rng::Tokens;
use crate::session::lifecycle::SessionOffer;
use crate::session::line::Line;
use crate::session::slots::{SlotRange, SlotRanges};
use crate::session::terms::Terms;
use crate::time::Nanos;
use crate::transport::PeerId;

/// All sessions of an endpoint.
#[derive(Debug)]
pub(crate) struct Sessions {
    lines: Rows<Line>,
    /// The first slot of each session, as in its line. It is stored apart from the lines, so that
    /// the slots can be prefetched together with the line.
    starts: Vec<SlotIdx>,
    /// Indexes of ended sessions that new sessions can have.
    free: Vec<SessionIdx>,
    /// The number that handles of this endpoint carry.
    endpoint: EndpointNum,
    limit: usize,
    live: usize,
    slots: SlotRanges,
    tokens: Tokens,
    /// Whether short requests may take the common path.
    common: bool,
    /// Packets in flight that this endpoint has promised to all sessions together (rule S7).
    promised: u64,
    /// A planted bug, if there is one: packets may be accepted with any token.
    #[cfg(feature = "mutants")]
    mutant: Option<Mutant>,
    /// A planted bug: this session lacks a slot, or a credit if no slot is named.
    #[cfg(feature = "mutants")]
    hidden: Option<(Session, Option<SlotIdx>)>,
}

impl Sessions {
    pub(crate) fn new(limit: usize, seed: u64, endpoint: EndpointNum) -> Self {
        Self {
            lines: Rows::new(),
            starts: Vec::new(),
            free: Vec::new(),
            endpoint,
            limit,
            live: 0,
            slots: SlotRanges::default(),
            tokens: Tokens::new(seed),
            common: true,
            promised: 0,
            #[cfg(feature = "mutants")]
            mutant: None,
            #[cfg(feature = "mutants")]
            hidden: None,
        }
    }

    /// The number of sessions in use.
    pub(crate) fn live(&self) -> usize {
        self.live
    }

    /// One more than the highest index ever used.
    #[expect(clippy::cast_possible_truncation, reason = "MAX_SESSIONS is 2^24")]
    pub(crate) fn len(&self) -> u32 {
        self.lines.len() as u32
    }

    /// The indexes of all sessions, in use or not.
    pub(crate) fn indexes(&self) -> impl Iterator<Item = SessionIdx> + use<> {
        (0..self.len()).map(SessionIdx)
    }

    /// One more than the highest index of a slot ever used.
    pub(crate) fn slot_count(&self) -> usize {
        self.slots.end().index()
    }

    #[inline]
    pub(crate) fn get(&self, index: SessionIdx) -> Option<&Line> {
        self.lines.get(index.0 as usize)
    }

    /// The session that a packet names, whatever its state.
    #[inline(always)]
    pub(super) fn line_mut(&mut self, index: SessionIdx) -> Option<&mut Line> {
        self.lines.get_mut(index.0 as usize)
    }

    /// The session that a packet names, if packets may flow on it.
    #[inline]
    pub(crate) fn get_open(&self, index: SessionIdx) -> Option<&Line> {
        self.get(index).filter(|line| line.is_open())
    }

    /// The session at an index that this endpoint stored itself.
    #[inline]
    pub(crate) fn at(&self, index: SessionIdx) -> &Line {
        &self.lines[index.0 as usize]
    }

    /// Whether the peer of a session obeys the rules of error codes (rule W13). Not inlined: only
    /// failed calls need it.
    #[cold]
    #[inline(never)]
    pub(crate) fn keeps_code_rules(&self, session: Session) -> bool {
        self.at(session.index()).keeps_code_rules()
    }

    #[inline]
    pub(crate) fn at_mut(&mut self, index: SessionIdx) -> &mut Line {
        &mut self.lines[index.0 as usize]
    }

    /// The index of a user's handle, unless that session has ended.
    #[inline]
    pub(crate) fn find(&self, session: Session) -> Option<SessionIdx> {
        self.find_line(session).map(|_| session.index())
    }

    /// The session that a user's handle names, unless it has ended.
    #[inline]
    pub(crate) fn find_line(&self, session: Session) -> Option<&Line> {
        self.get(session.index())
            .filter(|line| line.handle() == session && line.is_live())
    }

    /// Like [`Self::find`], with the reason if there is no such session.
    ///
    /// # Errors
    /// If the session has ended, or belongs to another endpoint.
    pub(crate) fn check(&self, session: Session) -> Result<SessionIdx, HandleError> {
        self.find(session).ok_or_else(|| self.stray(session))
    }

    /// Why no session here has this handle.
    #[cold]
    pub(crate) fn stray(&self, session: Session) -> HandleError {
        session.stray(self.endpoint)
    }

    /// Whether the session belongs or belonged to this endpoint.
    #[inline]
    pub(crate) fn is_home(&self, session: Session) -> bool {
        session.is_of(self.endpoint)
    }

    /// The ticket of a request of this endpoint.
    #[inline]
    pub(crate) fn ticket(&self, request: RequestId) -> Ticket {
        Ticket::new(request, self.endpoint)
    }

    /// The request that a ticket names.
    ///
    /// # Errors
    /// If the ticket belongs to another endpoint.
    #[inline]
    pub(crate) fn request_of(&self, ticket: Ticket) -> Result<RequestId, HandleError> {
        ticket.at(self.endpoint)
    }

    /// Whether the session is in the stall queue, because waiting calls may be able to leave.
    pub(crate) fn is_stalled(&self, session: Session) -> bool {
        self.find_line(session).is_some_and(Line::is_stalled)
    }

    #[inline]
    pub(crate) fn handle(&self, index: SessionIdx) -> Session {
        self.at(index).handle()
    }

    /// The offer of a session to its peer.
    pub(crate) fn offer_of(&self, session: Session) -> Option<SessionOffer> {
        let line = self.find_line(session)?;
        Some(line.offer(session.number()))
    }

    /// The live session that has this number and token at this side.
    pub(crate) fn named(&self, number: SessionNum, token: Token) -> Option<Session> {
        let line = self.get(SessionIdx(number.0))?;
        let live = line.is_live() && line.has_token(token);
        live.then(|| self.handle(SessionIdx(number.0)))
    }

    /// Sessions that are connecting or open, in order of their numbers, from a number on.
    pub(crate) fn iter_live(&self, first: SessionNum) -> impl Iterator<Item = Session> + '_ {
        (first.0..self.len())
            .map(SessionIdx)
            .filter(|index| self.at(*index).is_live())
            .map(|index| self.handle(index))
    }

    /// Prefetches the part of a session that an ordinary packet touches; returns the place of its
    /// slots, which the caller prefetches too. `None` if there is no such session.
    #[inline]
    pub(crate) fn prefetch(&self, index: SessionIdx) -> Option<SlotIdx> {
        dunlin_msgbuf::prefetch_read(self.get(index)?);
        self.starts.get(index.0 as usize).copied()
    }
}

/// Admission.
impl Sessions {
    /// Makes a session with these terms, whose peer is not known yet. `rx_queue`: with
    /// `strict_credits`, the number of packets that the RX queue holds; otherwise `None`.
    ///
    /// # Errors
    /// If there are too many sessions, or too many credits are promised.
    pub(crate) fn begin(
        &mut self,
        terms: &Terms,
        accepted: bool,
        rx_queue: Option<u32>,
    ) -> Result<SessionIdx, OpenError> {
        // Both sides issue requests, so 2 × C packets may arrive in this RX queue.
        let promise = 2 * u64::from(terms.credits);
        if rx_queue.is_some_and(|room| self.promised + promise > u64::from(room)) {
            return Err(OpenError::NoCredits);
        }
        if self.live >= self.limit {
            return Err(OpenError::TooManySessions);
        }
        let index = self.take_index().ok_or(OpenError::TooManySessions)?;
        let slots = self.slots.take(terms.window);
        let token = self.tokens.next();
        let generation = self.at(index).handle().generation() + 1;
        let handle = Session::new(index, generation, self.endpoint);
        let common = self.common;
        let line = self.at_mut(index);
        line.begin(handle, token, slots, terms, accepted);
        line.on_bypasses(common);
        self.starts[index.0 as usize] = slots;
        self.promised += promise;
        self.live += 1;
        Ok(index)
    }

    /// Sets whether short requests of all sessions may take the common path.
    pub(crate) fn set_common(&mut self, common: bool) {
        self.common = common;
        self.lines
            .iter_mut()
            .for_each(|line| line.on_bypasses(common));
    }

    /// Takes the peer's answer to this side's offer: packets may flow. Returns true if the session
    /// gets other slots, because the answer lowers the window.
    ///
    /// # Errors
    /// If the session is not waiting for an answer, or the answer does not fit the offer.
    pub(crate) fn complete(
        &mut self,
        session: Session,
        peer: PeerId,
        answer: &SessionOffer,
        heard: Nanos,
    ) -> Result<bool, OpenError> {
        let index = self.find(session).ok_or(OpenError::NoSession)?;
        let line = self.at(index);
        if !line.is_connecting() {
            return Err(OpenError::NoSession);
        }
        let terms = line.terms();
        let fits = answer.window <= terms.window
            && answer.credits <= terms.credits
            && answer.first_req == terms.first_req;
        if !fits || !answer.is_in_range() {
            return Err(OpenError::BadOffer);
        }
        let narrows = answer.window < terms.window;
        let mut slots = line.slots();
        if narrows {
            self.slots.put_back(slots);
            slots = SlotRange::new(self.slots.take(answer.window), answer.window);
        }
        self.promised -= 2 * u64::from(terms.credits - answer.credits);
        let line = self.at_mut(index);
        line.narrow(slots, answer.credits);
        line.join(peer, answer, heard);
        self.starts[index.0 as usize] = slots.start();
        Ok(narrows)
    }

    /// Gives a session that waits for the peer's answer another token.
    pub(crate) fn rename(&mut self, session: Session) -> Option<Token> {
        let index = self.find(session)?;
        if !self.at(index).is_connecting() {
            return None;
        }
        let token = self.tokens.next();
        self.at_mut(index).rename(token);
        Some(token)
    }

    /// Joins a session with the peer that asked for it: packets may flow.
    pub(crate) fn join(
        &mut self,
        index: SessionIdx,
        peer: PeerId,
        offer: &SessionOffer,
        heard: Nanos,
    ) {
        self.at_mut(index).join(peer, offer, heard);
    }

    /// Frees the session's number and slots. Its calls and requests are already gone. Returns the
    /// session's token.
    pub(crate) fn end(&mut self, index: SessionIdx) -> Token {
        let line = &mut self.lines[index.0 as usize];
        debug_assert!(line.is_live());
        let (terms, slots, token) = (line.terms(), line.slots(), line.token());
        line.end();
        let used_up = line.handle().generation() == Session::LAST_GENERATION;
        self.promised -= 2 * u64::from(terms.credits);
        self.slots.put_back(slots);
        if !used_up {
            self.free.push(index);
        }
        self.live -= 1;
        token
    }

    /// Whether a packet with this token belongs to the session (rule W5).
    #[inline(always)]
    pub(super) fn accepts(&self, line: &Line, token: Token) -> bool {
        #[cfg(feature = "mutants")]
        if self.ignores_tokens() {
            return true;
        }
        line.has_token(token)
    }

    /// Whether the bug that ignores tokens is planted.
    #[cfg(feature = "mutants")]
    pub(super) fn ignores_tokens(&self) -> bool {
        self.mutant == Some(Mutant::TokenIgnored)
    }

    /// Whether the endpoint asserts, for each packet, that computed fields are up to date: in debug
    /// builds, unless a bug is planted, which a checker must find.
    #[inline(always)]
    pub(crate) const fn asserts(&self) -> bool {
        #[cfg(feature = "mutants")]
        let is_planted = self.mutant.is_some();
        #[cfg(not(feature = "mutants"))]
        let is_planted = false;
        cfg!(debug_assertions) && !is_planted
    }

    /// The same table, with this bug planted.
    #[cfg(feature = "mutants")]
    pub(crate) fn showing(self, mutant: Option<Mutant>) -> Self {
        Self { mutant, ..self }
    }

    /// A planted bug: a credit stays promised.
    #[cfg(feature = "mutants")]
    pub(crate) fn leak_promise(&mut self) {
        self.promised += 1;
    }

    /// A planted bug: slots belong to no session.
    #[cfg(feature = "mutants")]
    pub(crate) fn leak_slots(&mut self) {
        self.slots.leak();
    }

    /// A planted bug: a session with calls in flight lacks a slot or a credit that no call holds. A
    /// session without calls would seem to have one.
    #[cfg(feature = "mutants")]
    pub(crate) fn hide(&mut self) {
        let hides_slot = match self.mutant {
            Some(Mutant::SlotHidden) => true,
            Some(Mutant::CreditHidden) => false,
            _ => return,
        };
        let mut live = self.lines.iter_mut().filter(|line| line.is_live());
        if let Some(line) = live.find(|line| line.in_flight() != 0 && line.can_send()) {
            let slot = hides_slot.then(|| line.take_slot());
            if !hides_slot {
                line.take_credits(1);
            }
            self.hidden = Some((line.handle(), slot));
        }
    }

    /// Gives back to the session the slot or credit that [`Self::hide`] took, if the session has
    /// not ended.
    #[cfg(feature = "mutants")]
    pub(crate) fn unhide(&mut self) {
        let Some((session, slot)) = self.hidden.take() else {
            return;
        };
        if let Some(index) = self.find(session) {
            let line = self.at_mut(index);
            match slot {
                Some(slot) => line.release_slot(ReqNum(slot.0 - line.slots().start().0)),
                None => line.return_credits(1),
            }
        }
    }

    /// A planted bug: the session has the token of an earlier session with its number.
    #[cfg(feature = "mutants")]
    pub(crate) fn reuse_token(&mut self, index: SessionIdx) {
        self.at_mut(index).rename(Token(index.0 + 1));
    }

    /// Whether the promised credits are the sum of all sessions' credits.
    pub(crate) fn are_promises_kept(&self) -> bool {
        let credits = |line: &Line| u64::from(line.terms().credits);
        let live = self.lines.iter().filter(|line| line.is_live());
        self.promised == live.map(|line| 2 * credits(line)).sum()
    }

    /// Whether each slot belongs to a session or is free, and `starts` agrees with the lines.
    pub(crate) fn are_slots_known(&self) -> bool {
        let mut places = self.lines.iter().zip(&self.starts);
        if places.any(|(line, start)| line.is_live() && line.slots().start() != *start) {
            return false;
        }
        let live = self.lines.iter().filter(|line| line.is_live());
        let taken: u64 = live.map(|line| u64::from(line.window())).sum();
        self.slots.adds_up(taken)
    }

    /// An index that has a generation left. Because no handle is ever reused, an index is retired
    /// after 2^16 - 1 sessions, which wastes its line of 128 bytes. There are 2^24 indexes, enough
    /// for a thousand sessions a second during 34 years.
    fn take_index(&mut self) -> Option<SessionIdx> {
        if let Some(index) = self.free.pop() {
            return Some(index);
        }
        if self.lines.len() == MAX_SESSIONS {
            return None;
        }
        self.lines.push(Line::default());
        self.starts.push(SlotIdx(0));
        Some(SessionIdx(self.len() - 1))
    }
}

#[cfg(test)]
mod tests;
