//! Channels that are left, used again and given up, by both sides and in any order.

use dunlin_core::transport::PeerId;
use dunlin_transport::connect::ConnectError;
use dunlin_transport::shm::{OpenError, Options, Shm};
use proptest::prelude::*;

use crate::endpoint::End;

#[derive(Clone, Debug)]
enum Step {
    /// The side that offers.
    Connect(bool),
    /// The offer is abandoned after the other side has accepted it.
    Abandon(bool),
    /// The side that first releases one session; the other side follows.
    Disconnect(bool),
    Remove(bool),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => any::<bool>().prop_map(Step::Connect),
        1 => any::<bool>().prop_map(Step::Abandon),
        4 => any::<bool>().prop_map(Step::Disconnect),
        1 => any::<bool>().prop_map(Step::Remove),
    ]
}

/// Two endpoints and the sessions between them. For each session, each endpoint has an id for its
/// peer.
struct Pair {
    ends: [End; 2],
    sessions: Vec<[PeerId; 2]>,
    number: u64,
}

impl Pair {
    fn new() -> Self {
        let options = Options {
            cells: 256,
            max_peers: 5,
            ..Options::default()
        };
        Self {
            ends: [End::with(1, options), End::with(2, options)],
            sessions: Vec::new(),
            number: 0,
        }
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Connect(from) => self.connect(usize::from(from)),
            Step::Abandon(from) => self.abandon(usize::from(from)),
            Step::Disconnect(first) => {
                if let Some(session) = self.sessions.pop() {
                    let first = usize::from(first);
                    self.ends[first].release(session[first]);
                    self.ends[1 - first].release(session[1 - first]);
                }
            }
            Step::Remove(by) => {
                let by = usize::from(by);
                let Some(gone) = self.sessions.last().map(|session| session[by]) else {
                    return;
                };
                // One side declares the other dead. The other side loses its sessions a little
                // later.
                self.ends[by].remove(gone);
                let (lost, kept): (Vec<[PeerId; 2]>, Vec<_>) = self
                    .sessions
                    .iter()
                    .partition(|session| session[by] == gone);
                for session in &lost {
                    self.ends[1 - by].release(session[1 - by]);
                }
                self.sessions = kept;
            }
        }
    }

    fn connect(&mut self, from: usize) {
        let [a, b] = &mut self.ends;
        let (client, server) = if from == 0 { (a, b) } else { (b, a) };
        // A side that was declared dead may have to offer twice before it has noticed.
        for _ in 0..2 {
            let (pending, offer) = client.offer(&server.info()).unwrap();
            match server.accept(&client.info(), offer) {
                Ok((to_client, answer)) => {
                    let to_server = client.complete(pending, answer).unwrap();
                    let mut session = [to_server; 2];
                    session[1 - from] = to_client;
                    self.sessions.push(session);
                    return;
                }
                Err(ConnectError::Gone) => client.abandon(pending),
                Err(error) => panic!("{error}"),
            }
        }
        panic!("a fresh channel was refused");
    }

    fn abandon(&mut self, from: usize) {
        let [a, b] = &mut self.ends;
        let (client, server) = if from == 0 { (a, b) } else { (b, a) };
        let (pending, offer) = client.offer(&server.info()).unwrap();
        if let Ok((to_client, _)) = server.accept(&client.info(), offer) {
            server.release(to_client);
        }
        client.abandon(pending);
    }

    /// Checks that every session carries packets in both directions.
    fn check(&mut self) {
        for session in &self.sessions {
            for (from, peer) in session.iter().enumerate() {
                self.number += 1;
                assert!(self.ends[from].send(*peer, self.number));
                assert_eq!(self.ends[1 - from].receive(), [self.number]);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn sessions_have_a_channel_whatever_came_before(
        steps in prop::collection::vec(step(), 1..40)
    ) {
        let mut pair = Pair::new();
        for step in steps {
            pair.step(&step);
            pair.check();
        }
    }
}

#[test]
fn channels_without_sessions_are_freed() {
    let mut pair = Pair::new();
    let before = descriptors();
    for round in 0..100 {
        pair.step(&Step::Connect(round % 2 == 0));
        pair.step(&Step::Connect(round % 3 == 0));
        pair.check();
        pair.step(&Step::Disconnect(round % 5 == 0));
        pair.step(&Step::Disconnect(round % 7 == 0));
    }
    // Both ends may still hold the last channel, and other tests run at the same time.
    assert!(descriptors() < before + 90, "descriptors leak");
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

#[test]
fn two_offers_that_cross_make_two_channels_that_work() {
    let (mut a, mut b) = (End::new(1), End::new(2));
    let (of_a, to_b_offer) = a.offer(&b.info()).unwrap();
    let (of_b, to_a_offer) = b.offer(&a.info()).unwrap();
    let (a_names_b, to_b_answer) = a.accept(&b.info(), to_a_offer).unwrap();
    let (b_names_a, to_a_answer) = b.accept(&a.info(), to_b_offer).unwrap();
    let a_to_b = a.complete(of_a, to_a_answer).unwrap();
    let b_to_a = b.complete(of_b, to_b_answer).unwrap();
    for (number, peer) in (0..).zip([a_to_b, a_names_b]) {
        assert!(a.send(peer, number));
        assert_eq!(b.receive(), [number]);
    }
    for (number, peer) in (0..).zip([b_to_a, b_names_a]) {
        assert!(b.send(peer, number));
        assert_eq!(a.receive(), [number]);
    }
}

#[test]
fn packets_that_come_before_the_answer_wait() {
    let (mut a, mut b) = (End::new(1), End::new(2));
    let (pending, offer) = a.offer(&b.info()).unwrap();
    let (to_a, answer) = b.accept(&a.info(), offer).unwrap();
    assert!(b.send(to_a, 5));
    assert_eq!(a.poll(), []);
    a.complete(pending, answer).unwrap();
    assert_eq!(a.receive(), [5]);
}

#[test]
fn there_are_no_more_peers_than_allowed() {
    let options = Options {
        max_peers: 2,
        ..Options::default()
    };
    let mut hub = End::with(0, options);
    let mut spokes: Vec<_> = (1..4).map(End::new).collect();
    let (first, _) = hub.connect(&mut spokes[0]);
    hub.connect(&mut spokes[1]);
    let third = spokes[2].info();
    assert!(matches!(hub.offer(&third), Err(ConnectError::TooManyPeers)));
    let (pending, offer) = spokes[2].offer(&hub.info()).unwrap();
    assert!(matches!(
        hub.accept(&third, offer),
        Err(ConnectError::TooManyPeers)
    ));
    spokes[2].abandon(pending);
    hub.remove(first);
    hub.connect(&mut spokes[2]);
}

#[test]
fn the_smaller_data_size_holds() {
    let small = Options {
        data_size: 500,
        ..Options::default()
    };
    let (mut a, mut b) = (End::new(1), End::with(2, small));
    let (to_b, to_a) = a.connect(&mut b);
    // Number 1998 is a packet of 1998 data bytes.
    assert!(!a.send(to_b, 1998));
    assert!(!b.send(to_a, 1998));
    assert_eq!(a.counters().tx_dropped_size, 1);
    assert!(a.send(to_b, 498));
    assert_eq!(b.receive(), [498]);
}

#[test]
fn options_outside_their_limits_are_refused() {
    let options = Options::default();
    for cells in [0, 1, 32, 63, 100, 1 << 17] {
        let opened = Shm::open(Options { cells, ..options });
        assert!(matches!(opened, Err(OpenError::Cells(_))), "{cells} cells");
    }
    for data_size in [0, (1 << 20) + 1, u32::MAX] {
        let opened = Shm::open(Options {
            data_size,
            ..options
        });
        assert!(
            matches!(opened, Err(OpenError::DataSize(_))),
            "{data_size} bytes"
        );
    }
    for max_peers in [0, 4097] {
        let opened = Shm::open(Options {
            max_peers,
            ..options
        });
        assert!(
            matches!(opened, Err(OpenError::MaxPeers(_))),
            "{max_peers} peers"
        );
    }
    let mut end = End::new(1);
    let elsewhere = dunlin_transport::connect::PeerInfo {
        same_host: false,
        ..end.info()
    };
    assert!(matches!(
        end.offer(&elsewhere),
        Err(ConnectError::Unreachable)
    ));
}
