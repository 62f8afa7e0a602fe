//! Compares the model with closed forms, and tests flows over two tiers.

use std::collections::BTreeSet;
use std::time::Duration;

use dunlin_core::Nanos;
use dunlin_core::transport::{Halves, MAX_INLINE, PeerId, Rx, Tx, TxItem};
use dunlin_msgbuf::BufRef;

use super::{Fabric, Marking, pick};
use crate::world::net::{
    CpuCosts, Happening, Net, NetConfig, NetHandle, PortId, SimRx, SimTransport, SimTx,
};
use crate::world::rng::Rng;
use crate::world::trace::Trace;

/// Bytes of a frame on a cable: an inline header and overhead.
const FRAME: u64 = 1250;
const INLINE: u32 = 24;
const DMA: u64 = 100;
const CABLE: u64 = 300;

/// Hosts with a port each. Their cables carry 100 Gb/s, so that a frame takes 100 ns.
struct Bench {
    net: NetHandle,
    ports: Vec<Halves<SimRx, SimTx>>,
}

impl Bench {
    fn new(hosts: usize, fabric: Fabric) -> Self {
        let config = NetConfig {
            line_rate: 12_500_000_000,
            cable: Nanos(CABLE),
            nic_bytes: 1 << 30,
            fabric,
            frame_overhead: u32::try_from(FRAME).unwrap() - INLINE,
            rx_queue: u32::MAX,
            frame_bytes: 0,
            dma: (Nanos(DMA), Nanos(DMA)),
            cpu: CpuCosts {
                iteration: Nanos(0),
                packet: Nanos(0),
                kilobyte: Nanos(0),
            },
            ..NetConfig::default()
        };
        let net = Net::new(config, 1, Trace::new(false));
        let open = |_| {
            let host = net.borrow_mut().add_host();
            let port = net.borrow_mut().add_port(host);
            SimTransport::open(&net, port)
        };
        let ports = (0..hosts).map(open).collect();
        Self { net, ports }
    }

    /// Sends `count` frames, each with the time at which it was sent.
    fn send(&mut self, from: usize, to: u32, count: usize) {
        let mut inline = [0; MAX_INLINE];
        inline[..8].copy_from_slice(&self.net.borrow().now().0.to_le_bytes());
        let item = TxItem {
            peer: PeerId(to),
            inline_len: INLINE,
            inline,
            data: BufRef::EMPTY,
        };
        self.ports[from].tx.burst(&vec![item; count]);
    }

    /// The transit times of the frames that have arrived at `port`.
    fn receive(&mut self, port: usize) -> Vec<u64> {
        let now = self.net.borrow().now().0;
        let rx = &mut self.ports[port].rx;
        let count = rx.burst();
        let sent = |index| u64::from_le_bytes(*rx.frame(index).bytes.first_chunk().unwrap());
        (0..count).map(|index| now - sent(index)).collect()
    }
}

fn plenty() -> Fabric {
    Fabric {
        buffer_bytes: 1 << 40,
        marking: Marking::NEVER,
        ..Fabric::default()
    }
}

/// Two racks and one cable of 10 Gb/s between them, so that a frame takes 1 µs.
fn two_racks() -> Fabric {
    Fabric {
        racks: 2,
        spines: 1,
        uplinks: 1,
        uplink_rate: 1_250_000_000,
        ..plenty()
    }
}

fn after(ns: f64) -> Nanos {
    Nanos::from(Duration::from_secs_f64(ns * 1e-9))
}

#[test]
fn waiting_times_are_those_of_an_m_d_1_queue() {
    // Many hosts of one rack send to one host of the other, each rarely, so frames reach the cable
    // between the racks at random times.
    const SENDERS: usize = 32;
    const SERVICE: f64 = 1000.0;
    for (load, frames) in [(0.5, 150_000), (0.8, 600_000)] {
        let mut bench = Bench::new(2 * SENDERS, two_racks());
        let mut rng = Rng::new(11);
        let (mut due, mut sent, mut arrived, mut waited) = (0.0, 0, 0, 0);
        bench.net.borrow_mut().schedule(Nanos(0), 0);
        // Time of a single frame: memory, cable of the host, spine twice, cable of the host.
        let alone = DMA + 100 + CABLE + 1000 + CABLE + 1000 + CABLE + 100 + CABLE;
        while arrived < frames {
            let happening = bench.net.borrow_mut().step(Nanos::MAX);
            match happening {
                Some(Happening::Due(_)) if sent < frames => {
                    bench.send(2 * rng.index(SENDERS), 1, 1);
                    sent += 1;
                    let unit = (rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
                    due -= (1.0 - unit).ln() * SERVICE / load;
                    bench.net.borrow_mut().schedule(after(due), 0);
                }
                Some(Happening::Arrived(PortId(1))) => {
                    for took in bench.receive(1) {
                        waited += took - alone;
                        arrived += 1;
                    }
                }
                _ => {}
            }
        }
        let mean = waited as f64 / f64::from(arrived);
        let expected = load * SERVICE / (2.0 * (1.0 - load));
        let ratio = mean / expected;
        assert!((0.98..1.02).contains(&ratio), "{ratio} at load {load}");
    }
}

#[test]
fn an_incast_drains_at_the_rate_of_the_last_cable() {
    for (senders, burst) in [(20, 32), (100, 8)] {
        let mut bench = Bench::new(senders + 1, plenty());
        for sender in 1..=senders {
            bench.send(sender, 0, burst);
        }
        let mut longest = 0;
        let mut last = 0;
        while bench.net.borrow_mut().step(Nanos::MAX).is_some() {
            longest = longest.max(bench.net.borrow_mut().fullest().0);
            last = bench.receive(0).into_iter().fold(last, u64::max);
        }
        let frames = (senders * burst) as u64;
        let drain = (frames * 100) as f64;
        let took = (last - DMA - 100 - CABLE - CABLE) as f64;
        assert!((0.98..1.02).contains(&(took / drain)), "{took} ns");
        // All senders filled the queue together, and meanwhile it emptied at the rate of one.
        let expected = (frames * FRAME) as f64 * (1.0 - 1.0 / senders as f64);
        assert!((0.98..1.02).contains(&(longest as f64 / expected)));
    }
}

#[test]
fn frames_that_the_memory_has_no_room_for_are_counted() {
    let fabric = Fabric {
        buffer_bytes: 100 * FRAME,
        alpha: 1.0,
        ..plenty()
    };
    let mut bench = Bench::new(11, fabric);
    for sender in 1..=10 {
        bench.send(sender, 0, 20);
    }
    while bench.net.borrow_mut().step(Nanos::MAX).is_some() {}
    let counters = bench.net.borrow().counters;
    assert_eq!(counters.delivered + counters.queue_full, 200);
    // Half of the memory, plus the frames that left while others arrived.
    assert!((65..75).contains(&counters.delivered), "{counters:?}");
}

#[test]
fn a_flow_keeps_to_one_path_and_flows_use_all_paths() {
    let ways = |from| pick(PortId(from), PortId(1), 1, 4);
    assert_eq!(ways(5), ways(5));
    let used: BTreeSet<usize> = (0..64).map(ways).collect();
    assert_eq!(used.len(), 4);
    // The spine's choice is independent of the rack's.
    let both: BTreeSet<_> = (0..200)
        .map(|from| (ways(from), pick(PortId(from), PortId(1), 2, 4)))
        .collect();
    assert_eq!(both.len(), 16);
}

#[test]
fn an_oversubscribed_spine_is_the_bottleneck() {
    let mut bench = Bench::new(8, two_racks());
    // Hosts 0, 2, 4 and 6 are in one rack, the others in the second.
    for sender in [0, 2, 4, 6] {
        bench.send(sender, u32::try_from(sender).unwrap() + 1, 25);
    }
    let mut last = 0;
    while bench.net.borrow_mut().step(Nanos::MAX).is_some() {
        for port in [1, 3, 5, 7] {
            last = bench.receive(port).into_iter().fold(last, u64::max);
        }
    }
    let drain = (last - DMA - 100 - 4 * CABLE - 1000 - 100) as f64;
    assert!((0.98..1.02).contains(&(drain / 100_000.0)), "{drain} ns");
}
