//! Sessions that other processes ask for, and open sessions until their end (rules C4 to C6).

use dunlin_core::{CloseReason, SessionOffer};
use dunlin_wire::control::{
    Accept, AttemptId, Connect, EndpointIndex, EndpointUid, Features, Found, GoodbyeReason, Lookup,
    Message, Offer, Offers, Refuse, RefuseCode, ResetReason, SessionRef, SessionSide,
};

use super::Plane;
use super::sessions::Open;
use crate::places::Origin;
use crate::types::{
    ConnectTicket, Event, LinkId, PeerIdentity, Proving, SessionKey, Side, TransportOffer,
};

/// A request for a session that an endpoint must answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Incoming {
    pub(super) link: LinkId,
    attempt: AttemptId,
    pub(super) endpoint: EndpointIndex,
    remote: SessionRef,
    /// The origin that holds a place for the request, if its peer must prove an address.
    pub(super) unproven: Option<Origin>,
}

impl<F> Plane<F> {
    pub(super) fn on_lookup(&mut self, link: LinkId, lookup: &Lookup) {
        let attempt = lookup.attempt;
        let (target, uid) = match self.choose(lookup.target) {
            Ok(chosen) => chosen,
            Err(code) => return self.send_refusal(link, attempt, code),
        };
        let found = Found {
            attempt,
            target,
            endpoint: uid,
        };
        self.send(link, &Message::Found(found), Vec::new());
    }

    pub(super) fn on_connect(
        &mut self,
        link: LinkId,
        connect: &Connect<'_>,
        fds: &mut Vec<F>,
    ) -> Result<(), GoodbyeReason> {
        let side = self.take_side(link, &connect.client, fds)?;
        let peer = self
            .peer_over(link, connect.client.endpoint, None)
            .ok_or(GoodbyeReason::BadMessage)?;
        match self.admit(link, connect.target) {
            Err(code) => self.send_refusal(link, connect.attempt, code),
            Ok(endpoint) => {
                let ticket = ConnectTicket(self.fresh_id());
                let remote = SessionRef {
                    session: connect.client.session,
                    token: connect.client.token,
                };
                let attempt = connect.attempt;
                self.tickets.insert(
                    ticket,
                    Incoming {
                        link,
                        attempt,
                        endpoint,
                        remote,
                        unproven: None,
                    },
                );
                self.tell(endpoint, Event::Incoming { ticket, peer, side });
            }
        }
        Ok(())
    }

    /// Takes an endpoint's grant of a session.
    pub(super) fn accept(&mut self, ticket: ConnectTicket, key: SessionKey, side: Side<F>) {
        let Some(incoming) = self.take_ticket(ticket) else {
            // The connection ended before the endpoint had answered.
            self.tell(
                key.endpoint,
                Event::Closed {
                    key,
                    reason: CloseReason::PeerFailed,
                },
            );
            return;
        };
        let (link, attempt) = (incoming.link, incoming.attempt);
        let Some(uid) = self
            .endpoints
            .get(&key.endpoint)
            .map(|endpoint| endpoint.uid)
        else {
            self.send_refusal(link, attempt, RefuseCode::Closing);
            return;
        };
        let carries_fds = self.links.get(&link).is_some_and(|link| link.carries_fds);
        let code = if !self.insert_session(key, Open::new(link, incoming.remote)) {
            RefuseCode::Busy
        } else if side.send_as(uid, carries_fds, |server, fds| {
            self.send(link, &Message::Accept(Accept { attempt, server }), fds)
        }) {
            return;
        } else {
            self.forget_session(key);
            RefuseCode::BadParameters
        };
        self.send_refusal(link, attempt, code);
        self.tell(
            key.endpoint,
            Event::Closed {
                key,
                reason: CloseReason::Reset,
            },
        );
    }

    /// Takes an endpoint's refusal of a session.
    pub(super) fn refuse(&mut self, ticket: ConnectTicket, code: RefuseCode) {
        if let Some(incoming) = self.take_ticket(ticket) {
            let endpoint = incoming.endpoint;
            self.proofs.forget(Proving::Asked { endpoint, ticket });
            self.send_refusal(incoming.link, incoming.attempt, code);
        }
    }

    /// Ends a session because its endpoint has ended it.
    pub(super) fn disconnect(&mut self, key: SessionKey, reason: CloseReason) {
        let Some(open) = self.forget_session(key) else {
            return;
        };
        let reason = match reason {
            CloseReason::Disconnected => {
                self.send(open.link, &Message::Disconnect(open.remote), Vec::new());
                return;
            }
            CloseReason::EndpointClosed => ResetReason::EndpointClosed,
            CloseReason::PeerFailed => ResetReason::DeclaredFailed,
            _ => ResetReason::UnknownSession,
        };
        self.reset_remote(open.link, open.remote, reason);
    }

    pub(super) fn on_disconnect(&mut self, link: LinkId, session: SessionRef) {
        let Some((key, open)) = self.take_named(link, session) else {
            return;
        };
        self.send(link, &Message::DisconnectAck(open.remote), Vec::new());
        self.tell(
            key.endpoint,
            Event::Closed {
                key,
                reason: CloseReason::Disconnected,
            },
        );
    }

    pub(super) fn on_reset(&mut self, link: LinkId, session: SessionRef) {
        if let Some((key, _)) = self.take_named(link, session) {
            self.tell(
                key.endpoint,
                Event::Closed {
                    key,
                    reason: CloseReason::Reset,
                },
            );
        }
    }

    pub(super) fn refuse_tickets_of(&mut self, endpoint: EndpointIndex) {
        let of: Vec<ConnectTicket> = self
            .tickets
            .iter()
            .filter(|(_, incoming)| incoming.endpoint == endpoint)
            .map(|(ticket, _)| *ticket)
            .collect();
        for ticket in of {
            self.refuse(ticket, RefuseCode::Closing);
        }
    }

    pub(super) fn reset_sessions_of(&mut self, endpoint: EndpointIndex) {
        let of: Vec<SessionKey> = self.sessions.of(endpoint).collect();
        for key in of {
            self.disconnect(key, CloseReason::EndpointClosed);
        }
    }

    /// Drops the requests of a link that is gone, so answers to them will have no effect.
    pub(super) fn drop_tickets_of(&mut self, link: LinkId) {
        let of: Vec<ConnectTicket> = self
            .tickets
            .iter()
            .filter(|(_, incoming)| incoming.link == link)
            .map(|(ticket, _)| *ticket)
            .collect();
        for ticket in of {
            if let Some(incoming) = self.take_ticket(ticket) {
                let endpoint = incoming.endpoint;
                self.give_up_proof(Proving::Asked { endpoint, ticket });
            }
        }
    }

    /// Enters an open session. False if two endpoints have drawn the same number and token, so that
    /// the peer could not distinguish this session from another one over the same link.
    pub(super) fn insert_session(&mut self, key: SessionKey, open: Open) -> bool {
        if self.find(open.link, key.as_ref()).is_some() {
            return false;
        }
        let Some(link) = self.links.get_mut(&open.link) else {
            return false;
        };
        let entered = self.sessions.insert(key, open);
        link.sessions += usize::from(entered);
        entered
    }

    /// The identity of the peer of a session made over this link.
    pub(super) fn peer_over(
        &self,
        link: LinkId,
        endpoint: EndpointUid,
        index: Option<EndpointIndex>,
    ) -> Option<PeerIdentity> {
        let link = self.links.get(&link)?;
        let peer = link.peer.as_ref()?;
        let incarnation = peer.incarnation;
        let ours = || self.endpoints.iter().find(|(_, ours)| ours.uid == endpoint);
        Some(PeerIdentity {
            endpoint,
            incarnation,
            same_host: link.carries_fds,
            same_process: incarnation == self.us.incarnation,
            proves: peer.features.has(Features::PROOF),
            local: link.local,
            remote: link.remote(),
            nexus: link.nexus,
            index: index.or_else(|| ours().map(|(index, _)| *index)),
        })
    }

    /// Converts the peer's side to the form that endpoints use, and takes its descriptors from
    /// `fds`. Offers with descriptors are ignored if their link carries none (rule C3).
    pub(super) fn take_side(
        &self,
        link: LinkId,
        side: &SessionSide<'_>,
        fds: &mut Vec<F>,
    ) -> Result<Side<F>, GoodbyeReason> {
        let link = self.links.get(&link);
        let carries_fds = link.is_some_and(|link| link.carries_fds);
        let peer = link.and_then(|link| link.peer.as_ref());
        let features = peer.map_or_else(Features::default, |peer| peer.features);
        let offers = side.offers.as_slice().iter();
        let offers = offers.filter(|offer| carries_fds || offer.fds == 0);
        let count: usize = offers.clone().map(|offer| usize::from(offer.fds)).sum();
        if count > fds.len() {
            return Err(GoodbyeReason::BadMessage);
        }
        let mut fds = fds.drain(..count);
        let transports = offers.map(|offer| TransportOffer {
            kind: offer.kind,
            bytes: offer.bytes.to_vec(),
            fds: fds.by_ref().take(usize::from(offer.fds)).collect(),
        });
        Ok(Side {
            transports: transports.collect(),
            offer: offer_in(side, features),
        })
    }

    fn choose(
        &mut self,
        target: EndpointIndex,
    ) -> Result<(EndpointIndex, EndpointUid), RefuseCode> {
        self.takes(target)?;
        let none = RefuseCode::NoSuchEndpoint;
        if target != EndpointIndex::ANY {
            let endpoint = self.endpoints.get(&target).ok_or(none)?;
            return Ok((target, endpoint.uid));
        }
        let end = self.end_of_any();
        let begin = self.next_any.min(end);
        let after = self.endpoints.from(&begin).next();
        let after = after.filter(|(index, _)| **index < end);
        let first = || {
            self.endpoints
                .iter()
                .next()
                .filter(|(index, _)| **index < end)
        };
        let chosen = after.or_else(first);
        let (index, endpoint) = chosen.ok_or(none)?;
        self.next_any = EndpointIndex(index.0.wrapping_add(1));
        Ok((*index, endpoint.uid))
    }

    /// Chooses the endpoint for a request for a session, and counts the request as pending there
    /// and at its link. Refuses it if one of them has too many.
    fn admit(&mut self, link: LinkId, target: EndpointIndex) -> Result<EndpointIndex, RefuseCode> {
        let (index, _) = self.choose(target)?;
        let endpoint = self
            .endpoints
            .get_mut(&index)
            .ok_or(RefuseCode::NoSuchEndpoint)?;
        let link = self.links.get_mut(&link).ok_or(RefuseCode::Closing)?;
        if link.sessions + link.pending >= self.config.max_sessions_per_link {
            return Err(RefuseCode::TooManySessions);
        }
        if link.pending >= self.config.max_pending_per_link
            || endpoint.pending >= self.config.max_pending_per_endpoint
        {
            self.counters.busy_refusals += 1;
            return Err(RefuseCode::Busy);
        }
        link.pending += 1;
        endpoint.pending += 1;
        Ok(index)
    }

    fn take_ticket(&mut self, ticket: ConnectTicket) -> Option<Incoming> {
        let incoming = self.tickets.remove(&ticket)?;
        if let Some(link) = self.links.get_mut(&incoming.link) {
            link.pending -= 1;
        }
        if let Some(origin) = incoming.unproven {
            self.unproven.remove(ticket, origin);
        } else if let Some(endpoint) = self.endpoints.get_mut(&incoming.endpoint) {
            endpoint.pending -= 1;
        }
        Some(incoming)
    }

    fn send_refusal(&mut self, link: LinkId, attempt: AttemptId, code: RefuseCode) {
        let peer = self.links.get(&link).and_then(|link| link.peer.as_ref());
        let knows = peer.is_some_and(|peer| peer.features.has(Features::FOREIGN));
        let code = match code {
            RefuseCode::ForeignAddress if !knows => RefuseCode::NoCommonTransport,
            code => code,
        };
        let refuse = Refuse {
            attempt,
            code,
            detail: "",
        };
        self.send(link, &Message::Refuse(refuse), Vec::new());
    }

    pub(super) fn forget_session(&mut self, key: SessionKey) -> Option<Open> {
        let open = self.sessions.remove(key)?;
        self.inquiries.take(key);
        self.proofs.forget(Proving::Granted(key));
        if let Some(link) = self.links.get_mut(&open.link) {
            link.sessions -= 1;
        }
        Some(open)
    }

    /// The session that a message over `link` names, if it was made over that link.
    pub(super) fn find(&self, link: LinkId, named: SessionRef) -> Option<SessionKey> {
        let SessionRef { session, token } = named;
        self.endpoints
            .keys()
            .map(|endpoint| SessionKey {
                endpoint: *endpoint,
                session,
                token,
            })
            .find(|key| {
                self.sessions
                    .get(*key)
                    .is_some_and(|open| open.link == link)
            })
    }

    fn take_named(&mut self, link: LinkId, named: SessionRef) -> Option<(SessionKey, Open)> {
        let Some(key) = self.find(link, named) else {
            self.counters.unknown_sessions += 1;
            return None;
        };
        Some((key, self.forget_session(key)?))
    }
}

impl<F> Side<F> {
    /// Passes this side, in its wire form, and its descriptors to `send`. False if `send` returns
    /// false, if a message cannot represent the numbers or offers, or if there are descriptors and
    /// the link carries none.
    pub(super) fn send_as(
        self,
        endpoint: EndpointUid,
        carries_fds: bool,
        send: impl FnOnce(SessionSide<'_>, Vec<F>) -> bool,
    ) -> bool {
        let mut fds = Vec::new();
        let mut kept = Vec::new();
        for mut transport in self.transports {
            let count = u8::try_from(transport.fds.len()).unwrap_or(u8::MAX);
            fds.append(&mut transport.fds);
            kept.push((transport.kind, count, transport.bytes));
        }
        let offers: Vec<Offer<'_>> = kept
            .iter()
            .map(|(kind, fds, bytes)| Offer {
                kind: *kind,
                fds: *fds,
                bytes,
            })
            .collect();
        let Ok(offers) = Offers::new(&offers) else {
            return false;
        };
        let Some(side) = side_of(endpoint, &self.offer, offers) else {
            return false;
        };
        (carries_fds || fds.is_empty()) && send(side, fds)
    }
}

fn side_of<'a>(
    endpoint: EndpointUid,
    offer: &SessionOffer,
    offers: Offers<'a>,
) -> Option<SessionSide<'a>> {
    if !offer.window.is_power_of_two() {
        return None;
    }
    Some(SessionSide {
        endpoint,
        session: offer.session,
        token: offer.token,
        window_log2: u8::try_from(offer.window.trailing_zeros()).ok()?,
        credits: u16::try_from(offer.credits).ok()?,
        data_size: offer.data_size,
        max_message: offer.max_message,
        first_req: offer.first_req,
        offers,
    })
}

fn offer_in(side: &SessionSide<'_>, features: Features) -> SessionOffer {
    SessionOffer {
        session: side.session,
        token: side.token,
        window: side.window(),
        credits: u32::from(side.credits),
        data_size: side.data_size,
        max_message: side.max_message,
        first_req: side.first_req,
        keeps_code_rules: features.has(Features::CODES),
    }
}
