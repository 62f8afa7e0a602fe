//! Endpoints of the simulated processes: they answer requests and record their events.

use dunlin_core::{CloseReason, SessionOffer};
use dunlin_wire::control::{EndpointIndex, Fate, TransportKind};
use dunlin_wire::{ReqNum, SessionNum, Token};

use super::proofs::Request;
use super::world::World;
use crate::{Command, ConnectFailure, Event, SessionKey, Side, TransportOffer};

/// The state of a session according to the events of its endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Seen {
    Connecting,
    Open { remote: (SessionNum, Token) },
    Failed(ConnectFailure),
    Closed(CloseReason),
}

impl World {
    /// Gives an event to an endpoint of a node.
    pub(super) fn tell(&mut self, node: usize, endpoint: EndpointIndex, event: Event<u64>) {
        let now = self.now;
        match event {
            Event::Found { key, via, peer } => {
                let fds = match peer.same_host {
                    true => vec![self.fresh_fd()],
                    false => Vec::new(),
                };
                self.nodes[node].met.push(peer);
                let side = side_of(key, fds);
                self.plane(node)
                    .on_command(Command::Offer { key, via, side }, now);
            }
            Event::OfferVoid { key, .. } => {
                assert!(!matches!(self.seen(node, key), Some(Seen::Open { .. })));
            }
            Event::Accepted { key, side } => {
                let remote = (side.offer.session, side.offer.token);
                self.keep_fds(node, &side);
                if self.nodes[node].seen.contains_key(&key) {
                    self.on_outcome(node, key, Seen::Open { remote });
                    self.doubt(node, key);
                }
            }
            Event::Serving {
                key,
                process,
                serving,
            } => self.nodes[node].served.push((key, process, serving)),
            Event::ConnectFailed { key, failure } => {
                self.on_outcome(node, key, Seen::Failed(failure));
            }
            Event::Incoming { ticket, peer, side } => {
                self.keep_fds(node, &side);
                if self.nodes[node].mute {
                    return;
                }
                let request = Request {
                    endpoint,
                    ticket,
                    peer,
                    remote: (side.offer.session, side.offer.token),
                };
                match self.nodes[node].caution.on {
                    true => self.ask_for_proof(node, request),
                    false => self.grant(node, request),
                }
            }
            Event::Challenge { proving, secret } => self.on_challenge(node, proving, secret),
            Event::Proven { proving, proven } => self.on_proven(node, proving, proven),
            Event::Inquired { key, requests } => {
                self.nodes[node].inquired.push(key);
                if !self.nodes[node].mute {
                    let fates = requests.iter().map(|req| (*req, Fate::Running)).collect();
                    self.plane(node)
                        .on_command(Command::Account { key, fates }, now);
                }
            }
            Event::Account { account, .. } => self.nodes[node].accounts.push(account),
            Event::Closed { key, reason } => {
                if let Some(seen) = self.nodes[node].seen.get_mut(&key) {
                    assert!(matches!(seen, Seen::Open { .. }), "closed twice: {seen:?}");
                    *seen = Seen::Closed(reason);
                }
            }
        }
    }

    /// Notes that an attempt to connect is over.
    fn on_outcome(&mut self, node: usize, key: SessionKey, end: Seen) {
        if let Some(seen) = self.nodes[node].seen.get_mut(&key) {
            assert_eq!(*seen, Seen::Connecting);
            *seen = end;
        }
    }

    /// Grants a session.
    pub(super) fn grant(&mut self, node: usize, request: Request) {
        let Request {
            endpoint,
            ticket,
            peer,
            remote,
        } = request;
        let key = self.session(node, endpoint.0);
        self.nodes[node].met.push(peer);
        self.nodes[node].seen.insert(key, Seen::Open { remote });
        let fds = if peer.same_host {
            vec![self.fresh_fd()]
        } else {
            Vec::new()
        };
        let (side, now) = (side_of(key, fds), self.now);
        self.plane(node)
            .on_command(Command::Accept { ticket, key, side }, now);
    }

    fn fresh_fd(&mut self) -> u64 {
        self.last_fd += 1;
        self.last_fd
    }

    fn keep_fds(&mut self, node: usize, side: &Side<u64>) {
        for transport in &side.transports {
            assert_eq!(transport.bytes, b"here");
            self.nodes[node].fds.extend(&transport.fds);
        }
    }
}

pub(super) fn side_of(key: SessionKey, fds: Vec<u64>) -> Side<u64> {
    let transport = TransportOffer {
        kind: TransportKind::SIM,
        bytes: b"here".to_vec(),
        fds,
    };
    let offer = SessionOffer {
        session: key.session,
        token: key.token,
        window: 8,
        credits: 32,
        data_size: 1440,
        max_message: 1440,
        first_req: ReqNum(0),
        keeps_code_rules: true,
    };
    Side {
        offer,
        transports: vec![transport],
    }
}
