//! Proofs of addresses (rule C13), in both directions. A peer must prove its address before packets
//! go there, whether it has asked for a session or granted one. Peers also challenge this side,
//! which answers only challenges that can belong to a handshake.
//!
//! Invariant: while a session waits for its peer's proof, the transport counts one use of the peer,
//! and core does not consider the session open. Called by `handshake.rs`.

use dunlin_core::transport::PeerId;
use dunlin_core::{Challenged, CloseReason, SessionOffer};
use dunlin_wire::control::RefuseCode;

use super::Handshake;
use super::channels::OtherEnd;
use super::stages::{Connecting, Stage};
use super::steps::Step;
#[cfg(feature = "mutants")]
use crate::mutant::Mutant;
use crate::proofs::SENDINGS;
use crate::types::{Command, ConnectTicket, PeerIdentity, Proving, SessionKey, Side};

/// A session that the peer has asked for; the transport has taken its offer.
#[derive(Debug)]
pub(super) struct Unproven<F> {
    identity: PeerIdentity,
    peer: PeerId,
    side: Side<F>,
}

impl<F, P> Handshake<F, P> {
    /// The peers of sessions that wait for proofs, once for each session.
    pub fn unproven(&self) -> impl Iterator<Item = PeerId> + '_ {
        let granted = self
            .connecting
            .values()
            .filter_map(|entry| match entry.stage {
                Stage::Proving { peer, .. } => Some(peer),
                _ => None,
            });
        granted.chain(self.unproven.values().map(|asked| asked.peer))
    }

    /// Holds a request until its peer has proven its address.
    pub(super) fn prove_request(
        &mut self,
        ticket: ConnectTicket,
        identity: PeerIdentity,
        peer: PeerId,
        side: Side<F>,
    ) {
        #[cfg(feature = "mutants")]
        if self.shows(Mutant::ProofNotAwaited) {
            return self.admit(
                ticket,
                Unproven {
                    identity,
                    peer,
                    side,
                },
            );
        }
        self.unproven.insert(
            ticket,
            Unproven {
                identity,
                peer,
                side,
            },
        );
        let endpoint = self.endpoint;
        let proving = Proving::Asked { endpoint, ticket };
        self.command(Command::Challenge { proving });
    }

    /// Holds a granted session until its peer has proven its address. If the session has already
    /// ended, handles that end instead.
    pub(super) fn prove_grant(
        &mut self,
        mut entry: Connecting<P>,
        other: OtherEnd,
        (peer, offer): (PeerId, SessionOffer),
        ended: Option<CloseReason>,
    ) {
        let key = entry.key;
        entry.stage = Stage::Proving { other, peer, offer };
        self.connecting.insert(key.session, entry);
        match ended {
            Some(reason) => self.on_unproven_closed(key, reason),
            None => self.command(Command::Challenge {
                proving: Proving::Granted(key),
            }),
        }
    }

    /// Sends a challenge whose bytes the plane has drawn.
    pub(super) fn on_challenge(&mut self, proving: Proving, secret: u64) {
        let (peer, offer) = match proving {
            Proving::Asked { ticket, .. } => match self.unproven.get(&ticket) {
                Some(asked) => (asked.peer, asked.side.offer),
                None => return,
            },
            Proving::Granted(key) => match self.named(key).map(|entry| &entry.stage) {
                Some(Stage::Proving { peer, offer, .. }) => (*peer, *offer),
                _ => return,
            },
        };
        let to = (offer.session, offer.token);
        self.steps.push_back(Step::Challenge { peer, to, secret });
    }

    /// Answers a challenge if the peer may be about to open the session: this side has asked for
    /// it, or has granted it. Sending packets costs a peer little, but each answer takes the
    /// control thread's time. So this side ignores challenges beyond the number that one handshake
    /// needs.
    pub fn on_challenged(&mut self, challenged: &Challenged) {
        let key = SessionKey {
            endpoint: self.endpoint,
            session: challenged.session,
            token: challenged.token,
        };
        let answered = match self.connecting.get_mut(&key.session) {
            Some(entry) if entry.key != key => return,
            Some(entry) => match entry.stage {
                Stage::Offered { .. } => &mut entry.proofs,
                // This side has not asked yet, or the peer has already granted the session.
                _ => return,
            },
            None => self.answered.get_or_insert(key, 0),
        };
        if *answered < SENDINGS {
            *answered += 1;
            let secret = challenged.secret;
            self.command(Command::Prove { key, secret });
        }
    }

    /// Opens the session if its peer has proven its address; otherwise, refuses it.
    pub(super) fn on_proven(&mut self, proving: Proving, proven: bool) {
        match proving {
            Proving::Asked { ticket, .. } => {
                let Some(asked) = self.unproven.remove(&ticket) else {
                    return;
                };
                if proven {
                    return self.admit(ticket, asked);
                }
                let (peer, code) = (asked.peer, RefuseCode::UnprovenAddress);
                self.steps.push_back(Step::Release { peer });
                self.command(Command::Refuse { ticket, code });
            }
            Proving::Granted(key) => self.on_grant_proven(key, proven),
        }
    }

    /// Handles the end of a granted session whose peer has not proven its address. If the
    /// connection was lost, this side asks for the session again, as for a lost offer (rule C4).
    pub(super) fn on_unproven_closed(&mut self, key: SessionKey, reason: CloseReason) {
        if reason != CloseReason::Disconnected {
            return self.on_grant_proven(key, false);
        }
        if let Some(entry) = self.take(key) {
            self.steps.push_back(Step::Close { key, reason });
            self.give_up(key.session, entry.stage);
        }
    }

    fn admit(&mut self, ticket: ConnectTicket, asked: Unproven<F>) {
        let Unproven {
            identity,
            peer,
            side,
        } = asked;
        self.steps.push_back(Step::Admit {
            ticket,
            identity,
            peer,
            side,
        });
    }

    fn on_grant_proven(&mut self, key: SessionKey, proven: bool) {
        let Some(entry) = self.named(key) else {
            return;
        };
        let Stage::Proving { other, peer, offer } = entry.stage else {
            return;
        };
        entry.stage = Stage::Completing { other, ended: None };
        if proven {
            self.steps.push_back(Step::Open { key, peer, offer });
        } else {
            self.steps.push_back(Step::Release { peer });
            self.steps.push_back(Step::Unproven { key });
        }
    }
}
