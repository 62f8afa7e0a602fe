//! Carries out the steps of a handshake: core's steps here, and the steps of the transport and the
//! plane through [`Peering`], which the nexus and the simulator implement.
//!
//! Invariant: when a function here returns, no step is left. Called by both adapters.

use dunlin_core::transport::{PeerId, Transport};
use dunlin_core::{
    Clock, Endpoint, Nanos, OpenError, Peer, Question, Report, Session, SessionOffer,
    SessionOptions,
};
use dunlin_wire::control::RefuseCode;

use super::{Answer, Completion, Handshake, Step, Wish, WrongStage};
use crate::types::{
    Command, ConnectTicket, Event, LinkId, PeerIdentity, SessionKey, Side, TransportOffers,
};

/// Both halves of a transport.
pub type HalvesMut<'a, T> = (&'a mut <T as Transport>::Rx, &'a mut <T as Transport>::Tx);

/// Sets up the peers of a transport, and gives commands to the plane.
///
/// The implementation counts the uses of a peer: each `accept` and each `complete` adds one,
/// `release` removes one, and `remove` ends all of them.
pub trait Peering<T: Transport> {
    /// A descriptor.
    type Fd;
    /// An offer that waits for its answer.
    type Pending;

    /// Makes an offer for a peer.
    ///
    /// # Errors
    /// The reason why the session cannot be made.
    fn offer(
        &mut self,
        halves: HalvesMut<'_, T>,
        peer: &PeerIdentity,
    ) -> Result<(Self::Pending, TransportOffers<Self::Fd>), RefuseCode>;

    /// Takes the offer of a peer and answers it.
    ///
    /// # Errors
    /// The reason why the session cannot be made; the transport is then unchanged.
    fn accept(
        &mut self,
        halves: HalvesMut<'_, T>,
        peer: &PeerIdentity,
        offers: TransportOffers<Self::Fd>,
    ) -> Result<(PeerId, TransportOffers<Self::Fd>), RefuseCode>;

    /// Takes the answer to an offer of this side.
    ///
    /// # Errors
    /// The reason why the answer cannot be used; the offer is then gone.
    fn complete(
        &mut self,
        halves: HalvesMut<'_, T>,
        pending: Self::Pending,
        answer: TransportOffers<Self::Fd>,
    ) -> Result<PeerId, RefuseCode>;

    /// Whether packets to this peer go to an address other than its connection's. The peer must
    /// then prove that they reach it there (rule C13).
    fn must_prove(&self, halves: HalvesMut<'_, T>, peer: PeerId) -> bool;

    /// The most data bytes in a packet to and from this peer.
    fn data_size(&self, halves: HalvesMut<'_, T>, peer: PeerId) -> u32;

    /// Gives up an offer that will get no answer.
    fn abandon(&mut self, halves: HalvesMut<'_, T>, pending: Self::Pending);

    /// Removes one use of this peer.
    fn release(&mut self, halves: HalvesMut<'_, T>, peer: PeerId);

    /// Removes a dead peer.
    fn remove(&mut self, halves: HalvesMut<'_, T>, peer: PeerId);

    /// Gives a command to the plane.
    fn command(&mut self, command: Command<Self::Fd>);
}

impl<F, P> Handshake<F, P> {
    /// Begins to open a session.
    ///
    /// # Errors
    /// Core has no room for it, or the options are out of range.
    pub fn connect<T, C, App>(
        &mut self,
        rpc: &mut Endpoint<T, C, App>,
        ways: &mut impl Peering<T, Fd = F, Pending = P>,
        options: &SessionOptions,
        wish: Wish,
        now: Nanos,
    ) -> Result<Session, OpenError>
    where
        T: Transport,
        C: Clock,
    {
        let mut lifecycle = rpc.lifecycle();
        let session = lifecycle.open(options)?;
        let offer = lifecycle.offer_of(session).ok_or(OpenError::NoSession)?;
        let key = SessionKey {
            endpoint: self.endpoint,
            session: offer.session,
            token: offer.token,
        };
        self.on_connect(session, key, wish);
        self.drive(rpc, ways, now);
        Ok(session)
    }

    /// Gives the endpoint an event from the plane.
    ///
    /// # Errors
    /// As for [`Self::on_event`].
    pub fn handle_event<T, C, App>(
        &mut self,
        rpc: &mut Endpoint<T, C, App>,
        ways: &mut impl Peering<T, Fd = F, Pending = P>,
        event: Event<F>,
        now: Nanos,
    ) -> Result<(), WrongStage>
    where
        T: Transport,
        C: Clock,
    {
        let fits = self.on_event(event);
        self.drive(rpc, ways, now);
        fits
    }

    /// Passes core's reports on to the plane: sessions that have ended, questions, and challenges.
    pub fn report<T, C, App>(
        &mut self,
        rpc: &mut Endpoint<T, C, App>,
        ways: &mut impl Peering<T, Fd = F, Pending = P>,
        report: Report,
        now: Nanos,
    ) where
        T: Transport,
        C: Clock,
    {
        match report {
            Report::Closed(closed) => {
                let key = SessionKey {
                    endpoint: self.endpoint,
                    session: closed.session.number(),
                    token: closed.token,
                };
                self.on_ended(key, &closed);
            }
            Report::Question(question) => self.on_question(question),
            Report::Challenged(challenged) => self.on_challenged(&challenged),
        }
        self.drive(rpc, ways, now);
    }

    /// Passes on core's question about requests of an open session.
    pub fn on_question(&mut self, question: Question) {
        let key = SessionKey {
            endpoint: self.endpoint,
            session: question.session.number(),
            token: question.token,
        };
        let requests = question.requests;
        self.command(Command::Inquire { key, requests });
    }

    fn drive<T, C, App>(
        &mut self,
        rpc: &mut Endpoint<T, C, App>,
        ways: &mut impl Peering<T, Fd = F, Pending = P>,
        now: Nanos,
    ) where
        T: Transport,
        C: Clock,
    {
        while let Some(step) = self.next_step() {
            match step {
                Step::Command(command) => ways.command(command),
                Step::Offer { key, via, peer } => self.make_offer(rpc, ways, key, via, &peer),
                Step::Complete { key, pending, side } => {
                    let done = complete(rpc, ways, key, pending, side);
                    self.finish(rpc, key, done, now);
                }
                Step::Answer { ticket, peer, side } => {
                    let answer = answer(rpc, ways, &peer, side);
                    self.reply(rpc, ticket, &peer, answer);
                }
                Step::Challenge { peer, to, secret } => {
                    rpc.lifecycle().challenge(peer, to, secret);
                }
                Step::Open { key, peer, offer } => {
                    let done = open(rpc, ways, key, peer, &offer);
                    self.finish(rpc, key, done, now);
                }
                Step::Unproven { key } => {
                    let failed = Completion::Failed(RefuseCode::UnprovenAddress);
                    self.on_completed(key, failed, now);
                }
                Step::Admit {
                    ticket,
                    identity,
                    peer,
                    side,
                } => {
                    let answer = admit(rpc, ways, peer, side);
                    self.reply(rpc, ticket, &identity, answer);
                }
                Step::Rename { key } => self.on_renamed(key, rename(rpc, key)),
                Step::Abandon { pending } => ways.abandon(rpc.lifecycle().halves_mut(), pending),
                Step::Release { peer } => self.part(rpc, peer, |halves| ways.release(halves, peer)),
                Step::Remove { peer } => self.part(rpc, peer, |halves| ways.remove(halves, peer)),
                Step::Inquired { key, requests } => {
                    let lifecycle = rpc.lifecycle();
                    let session = lifecycle.session_named(key.session, key.token);
                    let fates = session
                        .map_or_else(Vec::new, |session| lifecycle.fates_of(session, &requests));
                    ways.command(Command::Account { key, fates });
                }
                Step::Account { key, account } => {
                    let mut lifecycle = rpc.lifecycle();
                    if let Some(session) = lifecycle.session_named(key.session, key.token) {
                        lifecycle.on_account(session, &account);
                    }
                }
                Step::Close { key, reason } => {
                    let mut lifecycle = rpc.lifecycle();
                    let session = lifecycle.session_named(key.session, key.token);
                    if let Some(session) = session {
                        lifecycle.close(session, reason);
                    }
                }
            }
        }
    }

    /// Handles the outcome of opening a session, at the side that asked for it.
    fn finish<T, C, App>(
        &mut self,
        rpc: &mut Endpoint<T, C, App>,
        key: SessionKey,
        done: Completion,
        now: Nanos,
    ) where
        T: Transport,
        C: Clock,
    {
        let opened = match &done {
            Completion::Open(peer) => Some(*peer),
            _ => None,
        };
        self.on_completed(key, done, now);
        opened.into_iter().for_each(|peer| self.name(rpc, peer));
    }

    /// Handles the answer to a request for a session.
    fn reply<T, C, App>(
        &mut self,
        rpc: &mut Endpoint<T, C, App>,
        ticket: ConnectTicket,
        peer: &PeerIdentity,
        answer: Answer<F>,
    ) where
        T: Transport,
        C: Clock,
    {
        let granted = match &answer {
            Answer::Granted { peer, .. } => Some(*peer),
            _ => None,
        };
        self.on_answered(ticket, peer, answer);
        granted.into_iter().for_each(|peer| self.name(rpc, peer));
    }

    /// Removes one use of a peer, or the peer itself.
    fn part<T, C, App>(
        &self,
        rpc: &mut Endpoint<T, C, App>,
        peer: PeerId,
        take: impl FnOnce(HalvesMut<'_, T>),
    ) where
        T: Transport,
        C: Clock,
    {
        take(rpc.lifecycle().halves_mut());
        self.name(rpc, peer);
    }

    /// Passes the name of a peer to core, for handlers; without a session it has none.
    fn name<T, C, App>(&self, rpc: &mut Endpoint<T, C, App>, peer: PeerId)
    where
        T: Transport,
        C: Clock,
    {
        let (process, index) = self.whereabouts(peer);
        let endpoint = index.map(|index| index.0);
        let name = (process.is_some() || endpoint.is_some()).then_some(Peer { process, endpoint });
        rpc.lifecycle().name_peer(peer, name);
    }

    fn make_offer<T, C, App>(
        &mut self,
        rpc: &mut Endpoint<T, C, App>,
        ways: &mut impl Peering<T, Fd = F, Pending = P>,
        key: SessionKey,
        via: LinkId,
        peer: &PeerIdentity,
    ) where
        T: Transport,
        C: Clock,
    {
        let lifecycle = rpc.lifecycle();
        let session = lifecycle.session_named(key.session, key.token);
        let numbers = session.and_then(|session| lifecycle.offer_of(session));
        // A session that its user has ended meanwhile needs no offer.
        let made = match numbers {
            Some(offer) => ways
                .offer(lifecycle.halves_mut(), peer)
                .map(|(pending, transports)| (pending, Side { offer, transports })),
            None => Err(RefuseCode::Closing),
        };
        self.on_offered(key, via, made);
    }
}

/// Makes core give a session another token. `None`: the session has ended.
fn rename<T: Transport, C: Clock, App>(
    rpc: &mut Endpoint<T, C, App>,
    key: SessionKey,
) -> Option<SessionKey> {
    let mut lifecycle = rpc.lifecycle();
    let session = lifecycle.session_named(key.session, key.token)?;
    let token = lifecycle.rename(session)?;
    Some(SessionKey { token, ..key })
}

/// Gives the transport the answer to its offer, and opens the session if its peer needs no proof.
fn complete<T, C, App, W>(
    rpc: &mut Endpoint<T, C, App>,
    ways: &mut W,
    key: SessionKey,
    pending: W::Pending,
    side: Side<W::Fd>,
) -> Completion
where
    T: Transport,
    C: Clock,
    W: Peering<T>,
{
    let Side { offer, transports } = side;
    match ways.complete(rpc.lifecycle().halves_mut(), pending, transports) {
        Ok(peer) if ways.must_prove(rpc.lifecycle().halves_mut(), peer) => {
            Completion::Unproven { peer, offer }
        }
        Ok(peer) => open(rpc, ways, key, peer, &offer),
        Err(code) => Completion::Failed(code),
    }
}

/// Opens a session that was granted, unless the grant exceeds the limits of this side's request
/// (rule C5).
fn open<T, C, App, W>(
    rpc: &mut Endpoint<T, C, App>,
    ways: &W,
    key: SessionKey,
    peer: PeerId,
    answer: &SessionOffer,
) -> Completion
where
    T: Transport,
    C: Clock,
    W: Peering<T>,
{
    let fits = answer.data_size <= ways.data_size(rpc.lifecycle().halves_mut(), peer);
    let mut lifecycle = rpc.lifecycle();
    let session = lifecycle.session_named(key.session, key.token);
    match session {
        Some(session) if fits && lifecycle.opened(session, peer, answer).is_ok() => {
            Completion::Open(peer)
        }
        _ => Completion::Unfit(peer),
    }
}

/// Takes an offer and makes this side of the session.
fn answer<T, C, App, W>(
    rpc: &mut Endpoint<T, C, App>,
    ways: &mut W,
    peer: &PeerIdentity,
    mut side: Side<W::Fd>,
) -> Answer<W::Fd>
where
    T: Transport,
    C: Clock,
    W: Peering<T>,
{
    let taken = ways.accept(
        rpc.lifecycle().halves_mut(),
        peer,
        std::mem::take(&mut side.transports),
    );
    let peer = match taken {
        Ok((peer, transports)) => {
            side.transports = transports;
            peer
        }
        Err(code) => return Answer::NoWay(code),
    };
    if ways.must_prove(rpc.lifecycle().halves_mut(), peer) {
        return Answer::Unproven { peer, side };
    }
    admit(rpc, ways, peer, side)
}

/// Makes this side of a session whose offer the transport has taken. `side` has the asking side's
/// session numbers, and the transport's answer.
fn admit<T, C, App, W>(
    rpc: &mut Endpoint<T, C, App>,
    ways: &W,
    peer: PeerId,
    mut side: Side<W::Fd>,
) -> Answer<W::Fd>
where
    T: Transport,
    C: Clock,
    W: Peering<T>,
{
    // To this peer, the transport may carry less than its limit.
    let most = ways.data_size(rpc.lifecycle().halves_mut(), peer);
    side.offer.data_size = side.offer.data_size.min(most);
    match rpc.lifecycle().accept(peer, &side.offer) {
        Ok((_, offer)) => Answer::Granted {
            peer,
            side: Side { offer, ..side },
        },
        Err(error) => Answer::NoRoom {
            peer,
            code: code_of(error),
        },
    }
}

const fn code_of(error: OpenError) -> RefuseCode {
    match error {
        OpenError::TooManySessions | OpenError::NoCredits => RefuseCode::TooManySessions,
        OpenError::Options(_) | OpenError::BadOffer | OpenError::NoSession => {
            RefuseCode::BadParameters
        }
    }
}
