//! Sessions of an endpoint on their way to being open, and what their end gives back (design §9).
//!
//! The plane says when there is whom to make an offer to; the transport makes the offer, takes the
//! other side's and gives the peer its number; core makes the session of it.
//!
//! Two endpoints share one channel of the transport, so the first offer to an endpoint is made
//! alone: the others wait until there is a channel to share. From then on a few are under way at a
//! time.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use dunlin_control::{
    Command, ConnectFailure, Event, LinkId, PeerIdentity, SessionKey, Side, Ticket,
};
use dunlin_core::transport::PeerId;
use dunlin_core::{CloseReason, Closed, Nanos, OpenError, Session, SessionOffer, SessionOptions};
use dunlin_transport::connect::EndpointUid;
use dunlin_transport::connect::{Offer, PeerInfo, Pending};
use dunlin_wire::control::{EndpointIndex, RefuseCode};
use dunlin_wire::{SessionNum, Token};

use super::Endpoint;
use super::offers::{code_of, info_of, place_of, unwrapped, wrapped};
use crate::error::ConnectError;
use crate::insight::place::Place;
use crate::transports::Open;

/// Offers under way to an endpoint with which there is a channel.
const MAX_OFFERS: usize = 32;

/// Times that a session which was granted and could not be completed is asked for again.
const MAX_RETRIES: u32 = 3;

/// Failures that are remembered for who asks.
const MAX_FAILURES: usize = 64;

/// What an endpoint knows of its sessions' handshakes.
#[derive(Debug, Default)]
pub(super) struct Handshakes {
    connecting: BTreeMap<SessionNum, Connecting>,
    channels: BTreeMap<EndpointUid, Channel>,
    /// Who is behind a peer, and how many sessions with it are open.
    peers: BTreeMap<PeerId, (EndpointUid, usize)>,
    failures: VecDeque<(Session, ConnectFailure)>,
}

/// A session that this side asked for.
#[derive(Debug)]
struct Connecting {
    session: Session,
    token: Token,
    to: Vec<SocketAddr>,
    target: EndpointIndex,
    deadline: Nanos,
    /// Times that it was granted and could not be completed.
    retries: u32,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    /// The plane looks for the other endpoint.
    Asked,
    /// It was found; the offer waits for its turn.
    Found { via: LinkId, peer: PeerInfo },
    /// The offer is made.
    Offered { peer: EndpointUid, pending: Pending },
}

/// What there is between this endpoint and another.
#[derive(Debug, Default)]
struct Channel {
    /// Open sessions.
    live: usize,
    /// Offers under way.
    offered: usize,
    /// Sessions in the stage `Found`, in order.
    waiting: VecDeque<SessionNum>,
    /// Where the other is, as far as is known.
    place: Place,
}

impl Channel {
    const fn may_offer(&self) -> bool {
        self.offered == 0 || (self.live > 0 && self.offered < MAX_OFFERS)
    }
}

impl Handshakes {
    pub(super) fn failure(&self, session: Session) -> Option<ConnectFailure> {
        let found = self
            .failures
            .iter()
            .rev()
            .find(|(failed, _)| *failed == session);
        found.map(|(_, failure)| *failure)
    }

    /// Where a peer is, for whoever looks at this process.
    pub(super) fn place_of(&self, peer: PeerId) -> Place {
        let uid = self.peers.get(&peer).map(|(uid, _)| uid);
        let channel = uid.and_then(|uid| self.channels.get(uid));
        channel.map_or(Place::default(), |channel| channel.place)
    }

    /// The channel to an endpoint, which may be new.
    fn channel(&mut self, uid: EndpointUid, place: Place) -> &mut Channel {
        let channel = self.channels.entry(uid).or_default();
        channel.place = place.or(channel.place);
        channel
    }

    /// The session that a key names, if it is still connecting.
    fn named(&mut self, key: SessionKey) -> Option<&mut Connecting> {
        self.connecting
            .get_mut(&key.session)
            .filter(|entry| entry.token == key.token)
    }

    fn take(&mut self, key: SessionKey) -> Option<Connecting> {
        self.named(key)?;
        self.connecting.remove(&key.session)
    }

    /// A session with this peer is open now.
    fn on_open(&mut self, uid: EndpointUid, peer: PeerId) {
        self.channels.entry(uid).or_default().live += 1;
        self.peers.entry(peer).or_insert((uid, 0)).1 += 1;
    }

    /// A session with this peer has ended. True if it was the last.
    fn on_ended(&mut self, peer: PeerId) -> bool {
        let Some((uid, sessions)) = self.peers.get_mut(&peer) else {
            return false;
        };
        let uid = *uid;
        *sessions -= 1;
        let last = *sessions == 0;
        if last {
            self.peers.remove(&peer);
        }
        if let Some(channel) = self.channels.get_mut(&uid) {
            channel.live = channel.live.saturating_sub(1);
        }
        self.tidy(uid);
        last
    }

    fn on_offer_over(&mut self, uid: EndpointUid) {
        if let Some(channel) = self.channels.get_mut(&uid) {
            channel.offered = channel.offered.saturating_sub(1);
        }
        self.tidy(uid);
    }

    /// The session whose offer to this endpoint is to be made next.
    fn next_offer(&mut self, uid: EndpointUid) -> Option<SessionNum> {
        let channel = self.channels.get_mut(&uid)?;
        if channel.may_offer() {
            channel.waiting.pop_front()
        } else {
            None
        }
    }

    /// Forgets an endpoint with which there is nothing.
    fn tidy(&mut self, uid: EndpointUid) {
        let nothing = |channel: &Channel| {
            channel.live == 0 && channel.offered == 0 && channel.waiting.is_empty()
        };
        if self.channels.get(&uid).is_some_and(nothing) {
            self.channels.remove(&uid);
        }
    }
}

impl<T: Open, App> Endpoint<T, App> {
    /// A new session that the plane is asked to connect.
    pub(super) fn begin(
        &mut self,
        to: Vec<SocketAddr>,
        target: EndpointIndex,
        deadline: Nanos,
        options: &SessionOptions,
    ) -> Result<Session, ConnectError> {
        let session = self.rpc.lifecycle().open(options)?;
        let offer = self
            .rpc
            .lifecycle()
            .offer_of(session)
            .ok_or(OpenError::NoSession)?;
        let token = offer.token;
        let entry = Connecting {
            session,
            token,
            to: to.clone(),
            target,
            deadline,
            retries: 0,
            stage: Stage::Asked,
        };
        self.handshakes.connecting.insert(offer.session, entry);
        let key = self.key(offer.session, token);
        self.command(Command::Connect {
            key,
            to,
            target,
            deadline,
        });
        Ok(session)
    }

    /// Something that the control thread says.
    pub(super) fn on_event(&mut self, event: Event<OwnedFd>) {
        match event {
            Event::Found { key, via, peer } => self.on_found(key, via, &peer),
            Event::OfferVoid { key } => self.on_offer_void(key),
            Event::Accepted { key, side } => self.on_accepted(key, side),
            Event::ConnectFailed { key, failure } => self.on_failed(key, failure),
            Event::Incoming { ticket, peer, side } => self.on_incoming(ticket, &peer, side),
            Event::Closed { key, reason } => {
                if let Some(session) = self.rpc.lifecycle().session_named(key.session, key.token) {
                    self.rpc.lifecycle().close(session, reason);
                }
            }
        }
    }

    /// A session has ended at this side, for whatever reason.
    #[cold]
    pub(super) fn on_ended(&mut self, closed: &Closed) {
        let key = self.key(closed.session.number(), closed.token);
        if let Some(remote) = closed.remote {
            if closed.tell {
                self.command(Command::Disconnect {
                    key,
                    reason: closed.reason,
                });
            }
            let last = self.handshakes.on_ended(remote.peer);
            let failed = matches!(closed.reason, CloseReason::PeerFailed | CloseReason::Reset);
            let (rx, tx) = self.rpc.lifecycle().halves_mut();
            if last && failed {
                // Nobody at the other side gives back what the two share.
                T::remove(rx, tx, remote.peer);
            } else {
                T::release(rx, tx, remote.peer);
            }
        } else if let Some(entry) = self.handshakes.take(key) {
            self.command(Command::Abandon { key });
            self.give_up_offer(key.session, entry.stage);
        }
    }

    fn on_found(&mut self, key: SessionKey, via: LinkId, peer: &PeerIdentity) {
        let (peer, place) = (info_of(peer), place_of(peer));
        let uid = peer.endpoint;
        let Some(entry) = self.handshakes.named(key) else {
            return;
        };
        entry.stage = Stage::Found { via, peer };
        let channel = self.handshakes.channel(uid, place);
        channel.waiting.push_back(key.session);
        self.make_offers(uid);
    }

    /// Makes the offers to an endpoint whose turn it is.
    fn make_offers(&mut self, uid: EndpointUid) {
        while let Some(number) = self.handshakes.next_offer(uid) {
            let Some(entry) = self.handshakes.connecting.get(&number) else {
                continue;
            };
            let Stage::Found { via, peer } = entry.stage else {
                continue;
            };
            let (session, key) = (entry.session, self.key(number, entry.token));
            let (rx, tx) = self.rpc.lifecycle().halves_mut();
            match T::offer(rx, tx, &peer) {
                Ok((pending, offer)) => self.send_offer(key, session, via, uid, pending, offer),
                Err(error) => {
                    self.command(Command::Abandon { key });
                    self.on_failed(key, ConnectFailure::Refused(code_of(&error)));
                }
            }
        }
        self.handshakes.tidy(uid);
    }

    fn send_offer(
        &mut self,
        key: SessionKey,
        session: Session,
        via: LinkId,
        peer: EndpointUid,
        pending: Pending,
        offer: Offer,
    ) {
        let numbers = self.rpc.lifecycle().offer_of(session);
        let (Some(entry), Some(numbers)) = (self.handshakes.named(key), numbers) else {
            let (rx, tx) = self.rpc.lifecycle().halves_mut();
            T::abandon(rx, tx, pending);
            return;
        };
        entry.stage = Stage::Offered { peer, pending };
        if let Some(channel) = self.handshakes.channels.get_mut(&peer) {
            channel.offered += 1;
        }
        let side = Side {
            offer: numbers,
            transports: wrapped::<T>(offer),
        };
        self.command(Command::Offer { key, via, side });
    }

    fn on_offer_void(&mut self, key: SessionKey) {
        if let Some(entry) = self.handshakes.named(key) {
            let stage = std::mem::replace(&mut entry.stage, Stage::Asked);
            self.give_up_offer(key.session, stage);
        }
    }

    fn on_accepted(&mut self, key: SessionKey, side: Side<OwnedFd>) {
        // A session that was given up meanwhile: the plane has been told, or is about to be.
        let Some(mut entry) = self.handshakes.take(key) else {
            return;
        };
        let session = entry.session;
        let stage = std::mem::replace(&mut entry.stage, Stage::Asked);
        let Stage::Offered { peer: uid, pending } = stage else {
            self.decline(key, session, RefuseCode::BadParameters);
            return;
        };
        let (rx, tx) = self.rpc.lifecycle().halves_mut();
        let completed = match unwrapped::<T>(side.transports) {
            Ok(answer) => T::complete(rx, tx, pending, answer),
            Err(error) => {
                T::abandon(rx, tx, pending);
                Err(error)
            }
        };
        match completed {
            Ok(peer) if self.opens(session, peer, &side.offer) => {
                self.handshakes.on_open(uid, peer);
            }
            Ok(peer) => {
                let (rx, tx) = self.rpc.lifecycle().halves_mut();
                T::release(rx, tx, peer);
                self.decline(key, session, RefuseCode::BadParameters);
            }
            Err(_) if entry.retries < MAX_RETRIES => self.try_again(key, entry),
            Err(error) => self.decline(key, session, code_of(&error)),
        }
        // Not before: what is known of the endpoint goes with the last that needs it.
        self.handshakes.on_offer_over(uid);
        self.make_offers(uid);
    }

    /// Opens a session that was granted. False if the other side asks for more than it may
    /// (rule C5).
    fn opens(&mut self, session: Session, peer: PeerId, answer: &SessionOffer) -> bool {
        let (rx, tx) = self.rpc.lifecycle().halves_mut();
        let fits = answer.data_size <= T::data_size(rx, tx, peer);
        fits && self.rpc.lifecycle().opened(session, peer, answer).is_ok()
    }

    /// The channel that was offered has gone with its last session, or this side cannot use it:
    /// the transport's next offer is another.
    fn try_again(&mut self, key: SessionKey, mut entry: Connecting) {
        let reason = CloseReason::Disconnected;
        self.command(Command::Disconnect { key, reason });
        let (to, target, deadline) = (entry.to.clone(), entry.target, entry.deadline);
        entry.retries += 1;
        self.handshakes.connecting.insert(key.session, entry);
        self.command(Command::Connect {
            key,
            to,
            target,
            deadline,
        });
    }

    /// The other side granted a session that this side cannot use.
    fn decline(&mut self, key: SessionKey, session: Session, code: RefuseCode) {
        let reason = CloseReason::Disconnected;
        self.command(Command::Disconnect { key, reason });
        self.fail(session, ConnectFailure::Refused(code));
    }

    fn on_failed(&mut self, key: SessionKey, failure: ConnectFailure) {
        let Some(entry) = self.handshakes.take(key) else {
            return;
        };
        self.give_up_offer(key.session, entry.stage);
        self.fail(entry.session, failure);
    }

    fn fail(&mut self, session: Session, failure: ConnectFailure) {
        let failures = &mut self.handshakes.failures;
        if failures.len() == MAX_FAILURES {
            failures.pop_front();
        }
        failures.push_back((session, failure));
        let reason = match failure {
            ConnectFailure::Refused(_) | ConnectFailure::TooMany => CloseReason::Refused,
            ConnectFailure::Unreachable | ConnectFailure::TimedOut(_) => {
                CloseReason::ConnectTimeout
            }
        };
        self.rpc.lifecycle().close(session, reason);
    }

    /// Gives back what an offer holds, and lets the next one have its turn.
    fn give_up_offer(&mut self, number: SessionNum, stage: Stage) {
        match stage {
            Stage::Asked => {}
            Stage::Found { peer, .. } => {
                if let Some(channel) = self.handshakes.channels.get_mut(&peer.endpoint) {
                    channel.waiting.retain(|waiting| *waiting != number);
                }
                self.handshakes.tidy(peer.endpoint);
            }
            Stage::Offered { peer, pending } => {
                let (rx, tx) = self.rpc.lifecycle().halves_mut();
                T::abandon(rx, tx, pending);
                self.handshakes.on_offer_over(peer);
                self.make_offers(peer);
            }
        }
    }

    /// Somebody wants a session.
    fn on_incoming(&mut self, ticket: Ticket, peer: &PeerIdentity, mut side: Side<OwnedFd>) {
        let (info, place) = (info_of(peer), place_of(peer));
        let (rx, tx) = self.rpc.lifecycle().halves_mut();
        let offer = unwrapped::<T>(side.transports);
        let (peer, answer) = match offer.and_then(|offer| T::accept(rx, tx, &info, offer)) {
            Ok(accepted) => accepted,
            Err(error) => {
                let code = code_of(&error);
                self.command(Command::Refuse { ticket, code });
                return;
            }
        };
        // What the transport carries to this peer may be less than what it carries at most.
        side.offer.data_size = side.offer.data_size.min(T::data_size(rx, tx, peer));
        match self.rpc.lifecycle().accept(peer, &side.offer) {
            Ok((_, numbers)) => {
                self.handshakes.channel(info.endpoint, place);
                self.handshakes.on_open(info.endpoint, peer);
                let key = self.key(numbers.session, numbers.token);
                let side = Side {
                    offer: numbers,
                    transports: wrapped::<T>(answer),
                };
                self.command(Command::Accept { ticket, key, side });
            }
            Err(error) => {
                let (rx, tx) = self.rpc.lifecycle().halves_mut();
                T::release(rx, tx, peer);
                let code = match error {
                    OpenError::TooManySessions | OpenError::NoCredits => {
                        RefuseCode::TooManySessions
                    }
                    _ => RefuseCode::BadParameters,
                };
                self.command(Command::Refuse { ticket, code });
            }
        }
    }
}
