//! Proofs of addresses between planes: challenges are few, and a session opens only if the bytes of
//! a challenge come back over the connection of that session.

use std::collections::{BTreeMap, BTreeSet};

use dunlin_wire::control::{Connect, Features};
use dunlin_wire::{SessionNum, Token};

use super::endpoints::side_of;
use super::hostile::{frame, hello};
use super::*;
use crate::types::Proving;
use crate::{Origin, PeerIdentity, SessionKey, Side};

/// A request for a session.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub(super) endpoint: EndpointIndex,
    pub(super) ticket: ConnectTicket,
    pub(super) peer: PeerIdentity,
    /// The peer's number and token.
    pub(super) remote: (SessionNum, Token),
}

/// Whether the endpoints of a node want addresses proven, and the challenges so far.
#[derive(Debug, Default)]
pub(super) struct Caution {
    /// Each address must be proven.
    pub(super) on: bool,
    /// How many of the next challenges will be lost.
    losses: usize,
    waiting: BTreeMap<ConnectTicket, Request>,
    /// Challenges that the endpoints have sent.
    sent: Vec<(Nanos, u64)>,
    /// How proofs have ended.
    ended: Vec<bool>,
}

impl World {
    /// Asks for a proof before the session is granted.
    pub(super) fn ask_for_proof(&mut self, node: usize, request: Request) {
        let caution = &mut self.nodes[node].caution;
        caution.waiting.insert(request.ticket, request);
        let Request {
            endpoint, ticket, ..
        } = request;
        self.command(node, Proving::Asked { endpoint, ticket });
    }

    /// Asks for a proof before a granted session is used.
    pub(super) fn doubt(&mut self, node: usize, key: SessionKey) {
        if self.nodes[node].caution.on {
            self.command(node, Proving::Granted(key));
        }
    }

    fn command(&mut self, node: usize, proving: Proving) {
        let now = self.now;
        self.plane(node)
            .on_command(Command::Challenge { proving }, now);
    }

    /// Sends a challenge. The endpoint that has a session with its number and token gets it.
    pub(super) fn on_challenge(&mut self, node: usize, proving: Proving, secret: u64) {
        let now = self.now;
        let caution = &mut self.nodes[node].caution;
        caution.sent.push((now, secret));
        if caution.losses > 0 {
            caution.losses -= 1;
            return;
        }
        let to = match proving {
            Proving::Asked { ticket, .. } => caution.waiting.get(&ticket).map(|asked| asked.remote),
            Proving::Granted(key) => match self.seen(node, key) {
                Some(Seen::Open { remote }) => Some(remote),
                _ => None,
            },
        };
        let (session, token) = to.expect("the session waits for the proof");
        for other in 0..self.nodes.len() {
            let keys = self.nodes[other].seen.keys();
            let named = |key: &&SessionKey| key.session == session && key.token == token;
            if let Some(key) = keys.copied().find(|key| named(&key)) {
                self.plane(other)
                    .on_command(Command::Prove { key, secret }, now);
            }
        }
    }

    /// Grants the session of a peer that has proven its address; otherwise refuses it.
    pub(super) fn on_proven(&mut self, node: usize, proving: Proving, proven: bool) {
        let now = self.now;
        let caution = &mut self.nodes[node].caution;
        caution.ended.push(proven);
        let Proving::Asked { ticket, .. } = proving else {
            return;
        };
        let request = caution.waiting.remove(&ticket).expect("a proof ends once");
        if proven {
            return self.grant(node, request);
        }
        let code = RefuseCode::UnprovenAddress;
        self.plane(node)
            .on_command(Command::Refuse { ticket, code }, now);
    }
}

/// A client, and a server that wants addresses proven and whose first challenges are lost.
fn cautious(losses: usize) -> (World, usize, usize) {
    let mut world = World::new(6);
    let (client, server) = (world.node(1, 1), world.node(2, 1));
    world.nodes[server].caution = Caution {
        on: true,
        losses,
        ..Caution::default()
    };
    (world, client, server)
}

fn sent(world: &World, node: usize) -> Vec<u64> {
    let sent = &world.nodes[node].caution.sent;
    sent.iter().map(|(_, secret)| *secret).collect()
}

#[test]
fn a_challenge_that_comes_back_grants_the_session() {
    let (mut world, client, server) = cautious(0);
    let key = world.connect(client, server, FIRST, PATIENCE);
    world.run(SOON);
    assert!(is_open(world.seen(client, key)));
    assert_eq!(sent(&world, server).len(), 1);
    assert!(world.plane(server).proofs.is_empty());
}

#[test]
fn a_client_asks_its_server_for_a_proof() {
    let (mut world, server, client) = cautious(0);
    let key = world.connect(client, server, FIRST, PATIENCE);
    world.run(SOON);
    assert!(is_open(world.seen(client, key)));
    assert_eq!(sent(&world, client).len(), 1);
    assert_eq!(world.nodes[client].caution.ended, [true]);
    assert!(world.plane(client).proofs.is_empty());
}

#[test]
fn each_challenge_of_an_address_has_other_bytes() {
    let (mut world, client, server) = cautious(0);
    for count in 1..=4 {
        let key = world.connect(client, server, FIRST, PATIENCE);
        world.run(SOON);
        assert!(is_open(world.seen(client, key)));
        let secrets: BTreeSet<u64> = sent(&world, server).into_iter().collect();
        assert_eq!(secrets.len(), count);
    }
}

#[test]
fn a_lost_challenge_is_sent_again_at_most_twice() {
    for losses in 0..=3 {
        let (mut world, client, server) = cautious(losses);
        let timeout = world.config.heartbeat.timeout;
        let begun = world.now;
        let key = world.connect(client, server, FIRST, PATIENCE);
        world.run(Nanos(timeout.0 / 4) + SOON);
        let caution = &world.nodes[server].caution;
        assert_eq!(is_open(world.seen(client, key)), losses < 3, "{losses}");
        assert_eq!(caution.sent.len(), 3.min(losses + 1));
        let (_, secret) = caution.sent[0];
        let waits = caution.sent.iter().enumerate().all(|(at, (when, of))| {
            let due = begun + Nanos(timeout.0 / 8 * at as u64);
            (due..due + SOON).contains(when) && *of == secret
        });
        assert!(waits, "{:?}", caution.sent);
        world.run(Nanos(timeout.0 / 4 * 3).since(SOON.times(2)));
        assert_eq!(sent(&world, server).len(), 3.min(losses + 1));
        assert_eq!(world.plane(server).proofs.is_empty(), losses < 3);
    }
}

#[test]
fn a_client_learns_that_its_address_was_not_proven() {
    let (mut world, client, server) = cautious(usize::MAX);
    let timeout = world.config.heartbeat.timeout;
    let patience = timeout + SOON.times(5);
    let key = world.connect(client, server, FIRST, patience);
    world.run(timeout.times(2));
    let code = Some(RefuseCode::UnprovenAddress);
    let failed = Seen::Failed(ConnectFailure::TimedOut(code));
    assert_eq!(world.seen(client, key), Some(failed));
    world.run(timeout.times(2));
    assert!(!world.nodes[server].caution.ended[0]);
    let plane = world.plane(server);
    assert!(plane.proofs.is_empty() && plane.unproven.is_empty());
    assert_eq!(plane.endpoints.get(&FIRST).unwrap().pending, 0);
}

#[test]
fn a_refused_client_asks_again_until_its_deadline() {
    let (mut world, client, server) = cautious(3);
    let key = world.connect(client, server, FIRST, PATIENCE);
    world.run(world.config.heartbeat.timeout.times(2));
    assert!(is_open(world.seen(client, key)));
    let secrets = sent(&world, server);
    assert_eq!(secrets.len(), 4);
    assert_ne!(secrets[0], secrets[3], "another request gets other bytes");
}

#[test]
fn guessed_and_repeated_bytes_prove_nothing() {
    let (mut world, client, server) = cautious(usize::MAX);
    let other = world.node(3, 1);
    let key = world.connect(client, server, FIRST, PATIENCE);
    world.run(SOON);
    let theirs = world.connect(other, server, FIRST, PATIENCE);
    world.run(SOON);
    let secrets = sent(&world, server);
    assert_eq!(secrets.len(), 2);
    let now = world.now;
    let mut prove = |node: usize, key: SessionKey, secret: u64| {
        world
            .plane(node)
            .on_command(Command::Prove { key, secret }, now);
        world.run(SOON);
        world.nodes[server].caution.ended.clone()
    };
    assert_eq!(prove(client, key, secrets[0] ^ 1), []);
    // Each proof comes over the connection of the other client.
    assert_eq!(prove(client, key, secrets[1]), []);
    assert_eq!(prove(other, theirs, secrets[0]), []);
    assert_eq!(prove(client, key, secrets[0]), [true]);
    assert_eq!(
        prove(client, key, secrets[0]),
        [true],
        "a proof counts once"
    );
    assert!(is_open(world.seen(client, key)));
    assert!(!is_open(world.seen(other, theirs)));
}

#[test]
fn a_proof_ends_with_its_connection() {
    let (mut world, client, server) = cautious(usize::MAX);
    world.connect(client, server, FIRST, PATIENCE);
    world.run(SOON);
    assert!(!world.plane(server).proofs.is_empty());
    let waiting = &world.nodes[server].caution.waiting;
    let peer = waiting.values().next().unwrap().peer;
    world.kill(client);
    world.run(SOON);
    assert_eq!(world.nodes[server].caution.ended, [false]);
    assert!(world.plane(server).proofs.is_empty());
    // The endpoint asks for the proof after the connection has ended.
    let (endpoint, ticket) = (FIRST, ConnectTicket(12_345));
    let request = Request {
        endpoint,
        ticket,
        peer,
        remote: (SessionNum(1), Token(1)),
    };
    world.ask_for_proof(server, request);
    world.run(SOON);
    assert_eq!(world.nodes[server].caution.ended, [false, false]);
}

#[test]
fn a_process_of_an_old_release_gets_no_proof_and_none_is_asked_of_it() {
    let (mut world, client, server) = cautious(usize::MAX);
    let key = world.connect(client, server, FIRST, PATIENCE);
    world.run(SOON);
    for (node, peer) in [(client, server), (server, client)] {
        for link in world.plane(node).links.values_mut() {
            let features = &mut link.peer.as_mut().unwrap().features;
            *features = Features::INQUIRY.and(Features::FOREIGN);
        }
        let index = world.plane(node).links.keys().next().copied().unwrap();
        let uid = EndpointUid([u8::try_from(peer).unwrap(); 16]);
        let identity = world.plane(node).peer_over(index, uid, None).unwrap();
        assert!(!identity.proves);
    }
    let (secret, now) = (sent(&world, server)[0], world.now);
    world
        .plane(client)
        .on_command(Command::Prove { key, secret }, now);
    world.run(SOON);
    assert_eq!(
        world.nodes[server].caution.ended,
        [],
        "the proof was not sent"
    );
}

/// Makes a flood of requests whose addresses are never proven.
fn flood(world: &mut World, server: usize, hosts: &[u8], links: usize) {
    for host in hosts {
        let origin = Origin::of_host(std::net::Ipv4Addr::new(10, 9, 9, *host).into());
        for _ in 0..links {
            let stream = world.raw_from(server, origin);
            world.write(stream, frame(&Message::Hello(hello(1))));
            for attempt in 0..PER_LINK {
                let (attempt, target) = (AttemptId(attempt), FIRST);
                let side: Side<u64> = side_of(world.session(server, 0), Vec::new());
                side.send_as(EndpointUid([*host; 16]), false, |client, _| {
                    let connect = Connect {
                        attempt,
                        target,
                        client,
                    };
                    world.write(stream, frame(&Message::Connect(connect)));
                    true
                });
            }
        }
    }
    world.run(Nanos::from_millis(1));
}

/// Requests of each connection of a flood.
const PER_LINK: u64 = 4;
const UNPROVEN: usize = 16;

/// A server that has as many places for unproven requests as for others.
fn small() -> (World, usize) {
    let mut world = World::new(7);
    world.config.max_pending_per_endpoint = UNPROVEN;
    world.config.max_unproven = UNPROVEN;
    let server = world.node(1, 1);
    world.nodes[server].caution.on = true;
    (world, server)
}

#[test]
fn unproven_requests_take_no_places_of_other_requests() {
    let (mut world, server) = small();
    flood(&mut world, server, &[1], UNPROVEN / 2);
    assert!(world.plane(server).counters().busy_refusals > 0);
    // The following request needs no proof.
    world.nodes[server].caution.on = false;
    let client = world.node(2, 1);
    let key = world.connect(client, server, FIRST, PATIENCE);
    world.run(SOON);
    assert!(is_open(world.seen(client, key)));
}

#[test]
fn an_origin_that_proves_nothing_makes_room_for_a_peer_that_does() {
    for hosts in [&[1][..], &[1, 2], &[1, 2, 3]] {
        let (mut world, server) = small();
        flood(&mut world, server, hosts, UNPROVEN / 2);
        let client = world.node(2, 1);
        let key = world.connect(client, server, FIRST, PATIENCE);
        world.run(SOON);
        assert!(is_open(world.seen(client, key)), "{hosts:?}");
    }
}

#[test]
fn unproven_requests_end_with_their_connection_or_endpoint() {
    for removed in [true, false] {
        let (mut world, server) = small();
        flood(&mut world, server, &[1, 2], UNPROVEN / 2);
        assert!(!world.plane(server).unproven.is_empty());
        if removed {
            let now = world.now;
            world.plane(server).remove_endpoint(FIRST, now);
        }
        // These connections acknowledge no heartbeat.
        world.run(world.config.heartbeat.timeout);
        let plane = world.plane(server);
        assert!(plane.unproven.is_empty() && plane.proofs.is_empty());
        let pending = plane.endpoints.values().map(|endpoint| endpoint.pending);
        assert_eq!(pending.sum::<usize>(), 0);
    }
}
