//! How fast large messages cross from one host to another while packets are lost or late, and how
//! long small requests take at the same time: the experiment that `dunlin bench loss`, `reorder`
//! and `mixed` run (design §14; eRPC §6.4, table 4).
//!
//! Invariant: a report depends only on its [`Bulk`]. Every packet's data has a stamp. The server
//! checks all stamps and answers with a function of them, which the client checks. Called by
//! `dunlin bench` and by tests.

mod endpoint;

use dunlin_core::{Nanos, Session, SessionOptions};

use crate::scenario::session;
use crate::world::net::{CpuCosts, Fabric, FaultRates, Marking, Net, NetConfig, PortId};
use crate::world::rng::{Ppm, Rng};
use crate::world::{Act, World};
use endpoint::{Bulky, Ended, Pair};

/// One run of the experiment.
#[derive(Clone, Debug)]
pub struct Bulk {
    /// The seed, from which all random choices follow.
    pub seed: u64,
    /// Share of packets that are lost, in both directions.
    pub loss: Ppm,
    /// Share of packets that are late, in both directions.
    pub reorder: Ppm,
    /// Longest delay of a late packet; all delays up to it are equally likely.
    pub reorder_by: Nanos,
    /// Rate of the links in bytes per second.
    pub line_rate: u64,
    /// Round trip of a full packet and its answer over idle links.
    pub round_trip: Nanos,
    /// Data bytes per packet.
    pub data_size: u32,
    /// Bytes of a request.
    pub request_bytes: u32,
    /// Bytes of a response.
    pub answer_bytes: u32,
    /// Large requests in flight at the same time.
    pub in_flight: u32,
    /// Credits of the session.
    pub credits: u32,
    /// Number of large requests. Unless it is 0, the client sends further large requests until all
    /// small ones have ended.
    pub requests: u32,
    /// Requests of one packet on the same session, one after the other.
    pub small_requests: u32,
}

impl Default for Bulk {
    /// 8 MB requests, one at a time, at 100 Gb/s and 6 µs, with 4096 bytes a packet. The credits
    /// are three times the capacity of the link. With more, every retransmission would wait in the
    /// sender's own queue. Meanwhile the sender would get 512 packets ahead of the first missing
    /// one and have to stop (rule W7).
    fn default() -> Self {
        Self {
            seed: 1,
            loss: Ppm::NEVER,
            reorder: Ppm::NEVER,
            reorder_by: Nanos::from_micros(100),
            line_rate: 12_500_000_000,
            round_trip: Nanos::from_micros(6),
            data_size: 4096,
            request_bytes: 8 << 20,
            answer_bytes: 32,
            in_flight: 1,
            credits: 64,
            requests: 16,
            small_requests: 0,
        }
    }
}

/// The result.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct BulkReport {
    /// Data of large requests and their responses, in 10⁹ bits per second.
    pub gbps: f64,
    /// Median and 99th percentile of the round trips of small requests; 0 if there are none.
    pub small_rtt: [Nanos; 2],
    /// Packets of the large requests, each counted once.
    pub packets: u64,
    /// Frames lost, in both directions.
    pub lost: u64,
    /// Frames that were late.
    pub reordered: u64,
    /// Frames dropped by full queues.
    pub overflown: u64,
    /// Packets that the client sent again.
    pub retransmissions: u64,
    /// Time from the first request to the last response.
    pub took: Nanos,
}

/// A run that takes longer in virtual time counts as stuck.
const LIMIT: Nanos = Nanos::from_secs(600);
const STEP: Nanos = Nanos::from_millis(10);
const CLIENT: PortId = PortId(0);
const SERVER: PortId = PortId(1);
/// Time until the NIC has read a burst from memory, counted from the hand-over.
const DMA: Nanos = Nanos(200);

/// Runs the experiment.
///
/// # Errors
/// A stamp or a response is wrong, a request failed, or the requests do not end.
pub fn run(bulk: &Bulk) -> Result<BulkReport, String> {
    let net = Net::untraced(bulk.network(), bulk.seed);
    let mut world = World::new(&net, Pair::new(bulk), !bulk.seed);
    for port in [CLIENT, SERVER] {
        let host = world.add_host();
        world.add_port(host);
        world.act(Act::Boot(port));
    }
    let session = connect(&mut world, bulk).ok_or("the endpoints do not take the session")?;
    net.borrow_mut().set_rates(bulk.rates());
    let start = world.now();
    on(&mut world, CLIENT, |node| node.begin(session, bulk))?;
    world.poke(CLIENT);
    while on(&mut world, CLIENT, |node| node.left())? != 0 {
        let end = world.now() + STEP;
        world.run_until(end);
        let failure = on(&mut world, CLIENT, |node| node.failure())?
            .or(on(&mut world, SERVER, |node| node.failure())?)
            .or(net.borrow().violation().map(str::to_owned));
        if let Some(what) = failure {
            return Err(what);
        }
        if world.now().since(start) > LIMIT {
            return Err("the requests do not end".to_owned());
        }
    }
    let Ended {
        requests,
        last_end,
        small_rtt,
        retransmissions,
    } = on(&mut world, CLIENT, |node| node.result())?;
    let counters = net.borrow().counters;
    let took = last_end.since(start);
    Ok(BulkReport {
        gbps: bulk.gbps(requests, took),
        small_rtt,
        packets: u64::from(requests) * u64::from(bulk.packets()),
        lost: counters.lost,
        reordered: counters.reordered,
        overflown: counters.queue_full + counters.nic_full + counters.rx_full,
        retransmissions,
        took,
    })
}

fn on<R>(
    world: &mut World<Pair>,
    port: PortId,
    body: impl FnOnce(&mut Bulky) -> R,
) -> Result<R, String> {
    let node = world.node(port).ok_or("a process has ended")?;
    Ok(body(node))
}

/// Makes the session without a control plane.
fn connect(world: &mut World<Pair>, bulk: &Bulk) -> Option<Session> {
    let options = SessionOptions::DEFAULT.with_credits(bulk.credits);
    session::connect(world, [CLIENT, SERVER], &options)
}

impl Bulk {
    /// The number of packets of a request.
    pub fn packets(&self) -> u32 {
        self.request_bytes.div_ceil(self.data_size).max(1)
    }

    fn rates(&self) -> FaultRates {
        FaultRates {
            loss: self.loss,
            reorder: self.reorder,
            reorder_by: self.reorder_by,
            evenly: true,
            ..FaultRates::NONE
        }
    }

    /// The network: its queues hold all of a session's credits, so that only planned losses happen,
    /// and its processors are faster than its links.
    fn network(&self) -> NetConfig {
        let queue_bytes = u64::from(self.credits) * 2 * u64::from(self.data_size + 64);
        // A packet crosses two cables, and its answer two more. Packet and answer are each read
        // from memory once. The packet is put on a cable twice, by its host and by the switch.
        let packet = u64::from(self.data_size) * 1_000_000_000 / self.line_rate.max(1);
        let cables = self.round_trip.since(DMA.times(2) + Nanos(2 * packet));
        NetConfig {
            line_rate: self.line_rate,
            cable: Nanos(cables.0 / 4),
            nic_bytes: queue_bytes,
            fabric: Fabric {
                buffer_bytes: queue_bytes,
                marking: Marking::NEVER,
                ..Fabric::default()
            },
            rx_queue: 4096,
            data_size: self.data_size,
            frame_bytes: 0,
            dma: (DMA, DMA),
            cpu: CpuCosts {
                iteration: Nanos(20),
                packet: Nanos(20),
                kilobyte: Nanos(20),
            },
            ..NetConfig::default()
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "a rate for people to read")]
    fn gbps(&self, requests: u32, took: Nanos) -> f64 {
        let bytes = u64::from(self.request_bytes) + u64::from(self.answer_bytes);
        let bits = u64::from(requests) * bytes * 8;
        bits as f64 / took.0.max(1) as f64
    }

    /// The stamps of a request, one for each packet, from the request's own random stream.
    fn stamps(&self, request: u64) -> impl Iterator<Item = u64> {
        let mut rng = Rng::new(self.seed ^ request << 20);
        (0..self.packets()).map(move |_| rng.next_u64())
    }
}

#[cfg(test)]
mod tests;
