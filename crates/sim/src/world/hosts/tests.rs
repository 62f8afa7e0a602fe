//! The world's own rules, with processes that count and echo frames without a protocol.

use dunlin_core::Nanos;
use dunlin_core::transport::{Halves, MAX_INLINE, PeerId, Rx, Tx, TxItem};
use dunlin_msgbuf::BufRef;

use super::{Act, Cluster, Node, ProcessId, StreamEvent, StreamRequest, World};
use crate::world::net::{
    FaultRates, HostId, Net, NetConfig, NetHandle, PortId, SimRx, SimTransport, SimTx,
};
use crate::world::rng::{Ppm, Rng};
use crate::world::trace::Trace;

/// Sends `to_send` numbered frames to its peer, and sends back every frame that it receives.
struct Echo {
    halves: Halves<SimRx, SimTx>,
    peer: PortId,
    echo: bool,
    to_send: u32,
    seen: Vec<u32>,
    runs: u32,
    events: Vec<StreamEvent>,
    requests: Vec<StreamRequest>,
}

struct Pair {
    to_send: u32,
}

impl Cluster for Pair {
    type Node = Echo;

    fn boot(&mut self, net: &NetHandle, ProcessId { port, life }: ProcessId) -> Echo {
        let first = port.0 == 0;
        Echo {
            halves: SimTransport::open(net, port),
            peer: PortId(1 - port.0),
            echo: !first,
            to_send: if first && life == 1 { self.to_send } else { 0 },
            seen: Vec::new(),
            runs: 0,
            events: Vec::new(),
            requests: Vec::new(),
        }
    }

    fn on_end(&mut self, _process: ProcessId) {}
}

fn packet(to: PortId, number: u32) -> TxItem {
    let mut inline = [0; MAX_INLINE];
    inline[..4].copy_from_slice(&number.to_le_bytes());
    let peer = PeerId(u32::try_from(to.0).unwrap());
    TxItem {
        peer,
        inline_len: 24,
        inline,
        data: BufRef::EMPTY,
    }
}

impl Node for Echo {
    fn run_once(&mut self) {
        self.runs += 1;
        let count = self.halves.rx.burst();
        let mut out = Vec::new();
        for index in 0..count {
            // A frame may hold several packets of 24 bytes.
            for bytes in self.halves.rx.frame(index).bytes.chunks_exact(24) {
                let number = u32::from_le_bytes(*bytes.first_chunk().unwrap());
                self.seen.push(number);
                if self.echo {
                    out.push(packet(self.peer, number));
                }
            }
        }
        if self.to_send > 0 {
            self.to_send -= 1;
            out.push(packet(self.peer, self.to_send));
        }
        if !out.is_empty() {
            self.halves.tx.burst(&out);
        }
    }

    fn next_wakeup(&mut self) -> Nanos {
        if self.to_send > 0 {
            Nanos::ZERO
        } else {
            Nanos::MAX
        }
    }

    fn on_tick(&mut self) {}

    fn next_tick(&mut self) -> Nanos {
        Nanos::MAX
    }

    fn on_incoming(&mut self, _local: bool) -> Option<u64> {
        self.echo.then_some(SERVER_NAME)
    }

    fn on_stream(&mut self, event: StreamEvent) {
        self.events.push(event);
    }

    fn on_exit(&mut self) {
        self.requests
            .push(StreamRequest::Send(CLIENT_NAME, vec![99], Vec::new()));
    }

    fn take_requests(&mut self, out: &mut Vec<StreamRequest>) {
        out.append(&mut self.requests);
    }
}

/// The two names of the connection, one for each side.
const CLIENT_NAME: u64 = 70;
const SERVER_NAME: u64 = 80;

fn world(to_send: u32, config: NetConfig, seed: u64) -> World<Pair> {
    let net = Net::new(config, seed, Trace::new(true));
    let mut world = World::new(&net, Pair { to_send }, seed);
    for _ in 0..2 {
        let host = world.add_host();
        let port = world.add_port(host);
        world.act(Act::Boot(port));
    }
    world
}

const END: Nanos = Nanos::from_secs(1);

#[test]
fn frames_go_there_and_back_in_order() {
    let mut world = world(500, NetConfig::default(), 1);
    world.run_until(END);
    let sent: Vec<u32> = (0..500).rev().collect();
    assert_eq!(world.node(PortId(1)).unwrap().seen, sent);
    assert_eq!(world.node(PortId(0)).unwrap().seen, sent);
    assert_eq!(world.net().borrow().violation(), None);
}

#[test]
fn the_same_seed_is_the_same_run() {
    let run = |seed| {
        let mut world = world(300, NetConfig::default(), seed);
        world
            .net()
            .borrow_mut()
            .set_rates(FaultRates::draw(&mut Rng::new(seed)));
        world.run_until(END);
        world.net().borrow().trace.to_string()
    };
    assert_eq!(run(5), run(5));
    assert_ne!(run(5), run(6));
}

#[test]
fn faults_strike_and_are_counted() {
    let mut world = world(
        2000,
        NetConfig {
            reach: 0..24,
            ..NetConfig::default()
        },
        2,
    );
    let half = Ppm::percent(20);
    world.net().borrow_mut().set_rates(FaultRates {
        burst: Ppm::NEVER,
        burst_frames: 0,
        loss: half,
        duplicate: half,
        reorder: half,
        reorder_by: Nanos(20_000),
        evenly: false,
        damage: half,
        unnoticed: Ppm::percent(50),
        spike: Ppm::percent(1),
        spike_by: Nanos(10_000),
    });
    world.run_until(END);
    let counters = world.net().borrow().counters;
    assert!(counters.lost > 300 && counters.duplicated > 200 && counters.reordered > 200);
    assert!(
        counters.damaged > 50 && counters.checksum > 50,
        "{counters:?}"
    );
    let seen = &world.node(PortId(1)).unwrap().seen;
    assert!(
        seen.iter().zip(seen.iter().skip(1)).any(|(a, b)| b > a),
        "nothing was reordered"
    );
}

#[test]
fn a_bounded_receiver_drops_what_it_cannot_hold() {
    let config = NetConfig {
        rx_queue: 4,
        frame_bytes: 24,
        ..NetConfig::default()
    };
    let mut world = world(200, config, 3);
    world.act(Act::Pause(HostId(1)));
    world.run_until(Nanos::from_millis(100));
    assert_eq!(world.net().borrow().counters.rx_full, 196);
    world.act(Act::Resume(HostId(1)));
    world.run_until(END);
    assert_eq!(world.node(PortId(1)).unwrap().seen.len(), 4);
}

/// The process on port 0 has a connection to the one on port 1.
fn connected() -> World<Pair> {
    let mut world = world(0, NetConfig::default(), 4);
    let dial = StreamRequest::Dial {
        name: CLIENT_NAME,
        to: PortId(1),
        local: false,
    };
    request(&mut world, 0, dial);
    world.run_until(Nanos::from_millis(50));
    assert_eq!(events(&mut world, 0), [StreamEvent::Dialled(CLIENT_NAME)]);
    world
}

fn request(world: &mut World<Pair>, port: usize, request: StreamRequest) {
    world.node(PortId(port)).unwrap().requests.push(request);
    world.poke(PortId(port));
}

fn events(world: &mut World<Pair>, port: usize) -> Vec<StreamEvent> {
    std::mem::take(&mut world.node(PortId(port)).unwrap().events)
}

#[test]
fn connections_carry_messages_both_ways_in_order() {
    let mut world = connected();
    for byte in 0..5 {
        request(
            &mut world,
            0,
            StreamRequest::Send(CLIENT_NAME, vec![byte], Vec::new()),
        );
    }
    request(
        &mut world,
        1,
        StreamRequest::Send(SERVER_NAME, vec![9], Vec::new()),
    );
    world.run_until(END);
    let expected: Vec<_> = (0..5)
        .map(|byte| StreamEvent::Frame(SERVER_NAME, vec![byte], Vec::new()))
        .collect();
    assert_eq!(events(&mut world, 1), expected);
    assert_eq!(
        events(&mut world, 0),
        [StreamEvent::Frame(CLIENT_NAME, vec![9], Vec::new())]
    );
}

#[test]
fn a_blocked_direction_loses_frames_and_holds_messages() {
    let mut world = connected();
    world.act(Act::Block(HostId(0), HostId(1)));
    world.node(PortId(0)).unwrap().to_send = 100;
    request(
        &mut world,
        0,
        StreamRequest::Send(CLIENT_NAME, vec![7], Vec::new()),
    );
    request(
        &mut world,
        1,
        StreamRequest::Send(SERVER_NAME, vec![9], Vec::new()),
    );
    world.run_until(Nanos::from_millis(100));
    let counters = world.net().borrow().counters;
    assert!(counters.sent > 0 && counters.cut == counters.sent);
    assert_eq!(events(&mut world, 1), []);
    let other_direction = [StreamEvent::Frame(CLIENT_NAME, vec![9], Vec::new())];
    assert_eq!(events(&mut world, 0), other_direction);
    world.act(Act::Heal);
    world.run_until(END);
    assert_eq!(
        events(&mut world, 1),
        [StreamEvent::Frame(SERVER_NAME, vec![7], Vec::new())]
    );
}

#[test]
fn messages_sent_before_the_end_arrive_before_it() {
    let mut world = connected();
    request(
        &mut world,
        0,
        StreamRequest::Send(CLIENT_NAME, vec![1], Vec::new()),
    );
    request(&mut world, 0, StreamRequest::Close(CLIENT_NAME));
    request(
        &mut world,
        1,
        StreamRequest::Send(SERVER_NAME, vec![2], Vec::new()),
    );
    world.run_until(END);
    let heard = [
        StreamEvent::Frame(SERVER_NAME, vec![1], Vec::new()),
        StreamEvent::Closed(SERVER_NAME),
    ];
    assert_eq!(events(&mut world, 1), heard);
    assert_eq!(
        events(&mut world, 0),
        [],
        "the side that closed gets no further event"
    );
}

#[test]
fn a_crash_breaks_connections_and_a_restart_is_another_process() {
    let mut world = connected();
    world.act(Act::Crash(PortId(1)));
    request(
        &mut world,
        0,
        StreamRequest::Send(CLIENT_NAME, vec![1], Vec::new()),
    );
    world.node(PortId(0)).unwrap().to_send = 100;
    world.run_until(Nanos::from_millis(100));
    assert!(world.node(PortId(1)).is_none());
    assert_eq!(events(&mut world, 0), [StreamEvent::Closed(CLIENT_NAME)]);
    assert!(world.net().borrow().counters.no_process > 50);
    world.act(Act::Boot(PortId(1)));
    assert_eq!(world.life(PortId(1)), 2);
    world.run_until(END);
    assert_eq!(
        events(&mut world, 1),
        [],
        "the new process knows nothing of the connection"
    );
}

#[test]
fn a_process_whose_peer_asks_for_it_restarts_at_once() {
    let mut world = connected();
    request(&mut world, 0, StreamRequest::Restart(CLIENT_NAME));
    world.run_until(Nanos::from_millis(100));
    assert_eq!(world.life(PortId(1)), 2);
    assert!(world.node(PortId(1)).is_some());
    assert_eq!(events(&mut world, 0), [StreamEvent::Closed(CLIENT_NAME)]);
    // The connection is gone, so no process is at its other end.
    request(&mut world, 0, StreamRequest::Restart(CLIENT_NAME));
    world.run_until(END);
    assert_eq!(world.life(PortId(1)), 2);
}

#[test]
fn an_exit_says_goodbye() {
    let mut world = connected();
    world.act(Act::Exit(PortId(0)));
    world.run_until(END);
    assert!(world.node(PortId(0)).is_none());
    let heard = [
        StreamEvent::Frame(SERVER_NAME, vec![99], Vec::new()),
        StreamEvent::Closed(SERVER_NAME),
    ];
    assert_eq!(events(&mut world, 1), heard);
}

#[test]
fn a_dial_ends_without_a_listener_and_when_it_is_refused() {
    let mut world = connected();
    request(
        &mut world,
        1,
        StreamRequest::Dial {
            name: 5,
            to: PortId(0),
            local: true,
        },
    );
    world.run_until(Nanos::from_millis(100));
    assert_eq!(
        events(&mut world, 1),
        [StreamEvent::Closed(5)],
        "port 0 takes no connections"
    );
    world.act(Act::Crash(PortId(0)));
    request(
        &mut world,
        1,
        StreamRequest::Dial {
            name: 6,
            to: PortId(0),
            local: false,
        },
    );
    world.run_until(END);
    assert!(events(&mut world, 1).contains(&StreamEvent::Closed(6)));
}

#[test]
fn work_delays_the_next_iteration() {
    let mut config = NetConfig::default();
    config.cpu.iteration = Nanos::from_millis(1);
    let mut world = world(1000, config, 6);
    world.run_until(Nanos::from_millis(10));
    assert!(world.node(PortId(0)).unwrap().runs <= 11);
}

#[test]
fn an_endpoint_that_never_rests_is_reported() {
    let mut world = world(1_000_000, NetConfig::default(), 7);
    world.act(Act::Unplug(HostId(1)));
    world.run_until(END);
    let net = world.net().borrow();
    assert!(
        net.violation()
            .is_some_and(|what| what.contains("wants to run at once"))
    );
}

#[test]
fn run_until_returns_at_each_ask() {
    let mut world = world(0, NetConfig::default(), 8);
    world.at(Nanos(500), Act::Ask(3));
    world.at(Nanos(900), Act::Ask(4));
    assert_eq!(world.run_until(END), Some(3));
    assert_eq!(world.now(), Nanos(500));
    assert_eq!(world.run_until(END), Some(4));
    assert_eq!(world.run_until(END), None);
    assert_eq!(world.now(), END);
}
