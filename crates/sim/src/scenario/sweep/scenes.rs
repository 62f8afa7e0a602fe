//! The scenario of a case: hosts, cables and loads.
//!
//! Processors are so fast that cables are the only bottlenecks. Called by `sweep`.

use dunlin_core::{Config, Nanos, Scheme, SessionOptions};

use super::{Case, Family, SETTLE};
use crate::scenario::{Arrivals, CHECK, Load, Partners, Scenario};
use crate::world::net::{CpuCosts, Fabric, FaultRates, Marking, NetConfig};
use crate::world::rng::Ppm;

/// Data bytes of a packet, and bytes of its frame.
pub(super) const DATA: u32 = 1024;
pub(super) const HEADERS: u32 = 24 + 66;
/// Time that a frame spends in a NIC, and in a switch.
const DMA: Nanos = Nanos(800);
const LATENCY: Nanos = Nanos(300);
/// The cost of everything that a thread does.
const CHEAP: Nanos = Nanos(10);
/// The marks of DCQCN's paper (§5.2): K_min = 5 KB, K_max = 200 KB, P_max = 1 %. K_max is at most
/// half of the switch's memory, so that the queue can reach it. With a step instead of a slope, all
/// senders would get marks, and slow down, at the same time.
fn red(buffer_bytes: u64) -> Marking {
    Marking {
        from: 5 << 10,
        to: (200 << 10).min(buffer_bytes / 2),
        most: Ppm::percent(1),
    }
}
/// Senders that begin together all begin within this time.
const TOGETHER: Nanos = Nanos(1000);
/// Bytes of a request, and of an echo.
const REQUEST: u32 = 1 << 20;
pub(super) const ECHO: u32 = 64 << 10;

impl Case {
    pub(super) fn bytes_per_second(&self) -> u64 {
        u64::from(self.gbps) * 125_000_000
    }

    /// The delay of a cable that results in the round trip of the case: a packet and its CR cross
    /// two cables each.
    fn cable(&self) -> Nanos {
        let bytes = u64::from(2 * (DATA + 2 * HEADERS));
        let on_cables = Nanos(bytes * 8 / u64::from(self.gbps));
        let rest = on_cables + DMA.times(2) + LATENCY.times(2);
        Nanos(Nanos::from_micros(u64::from(self.rtt_us)).since(rest).0 / 4)
    }

    pub(in crate::scenario) fn scenario(&self, scheme: Scheme) -> Scenario {
        let (loads, hosts) = self.loads(scheme);
        let last = loads.iter().map(|load| load.start + load.spread).max();
        let warm_up = last.unwrap_or(Nanos::ZERO) + SETTLE;
        let span = match self.family {
            Family::Late => SETTLE,
            _ => SETTLE.times(4),
        };
        let loss = match self.family {
            Family::Loss => Ppm(1000),
            _ => Ppm::NEVER,
        };
        Scenario {
            seed: self.seed,
            end: warm_up + span,
            warm_up,
            hosts,
            net: self.network(scheme),
            rpc_cost: CHEAP,
            faults: FaultRates {
                loss,
                ..FaultRates::NONE
            },
            endpoint: Config {
                hugepages: false,
                readable_buffers: true,
                pool_bytes: 1 << 40,
                receive_budget: 1 << 40,
                session_receive_budget: 1 << 40,
                check: CHECK,
                ..Config::default()
            },
            loads,
            sample_every: SETTLE,
        }
    }

    fn network(&self, scheme: Scheme) -> NetConfig {
        let racks = if self.family == Family::Two { 2 } else { 1 };
        let buffer_bytes = u64::from(self.buffer_kb) * 1024;
        NetConfig {
            line_rate: self.bytes_per_second(),
            cable: self.cable(),
            nic_waits: true,
            fabric: Fabric {
                racks,
                neighbours: 2 * self.senders,
                spines: 1,
                uplinks: 1,
                uplink_rate: self.bytes_per_second(),
                buffer_bytes,
                alpha: 8.0,
                // Other schemes ignore marks.
                marking: match scheme {
                    Scheme::Dcqcn => red(buffer_bytes),
                    _ => Marking::step(40 << 10),
                },
                latency: LATENCY,
            },
            frame_overhead: 66,
            rx_queue: 4096,
            data_size: DATA,
            frame_bytes: 0,
            tells_base_rtt: !self.measured,
            dma: (DMA, DMA + Nanos::from_micros(self.noise_us.into())),
            cpu: CpuCosts {
                iteration: CHEAP,
                packet: CHEAP,
                kilobyte: CHEAP,
            },
            ..NetConfig::default()
        }
    }

    /// The loads, and the number of hosts that they need.
    fn loads(&self, scheme: Scheme) -> (Vec<Load>, usize) {
        let n = self.senders;
        let load = Load {
            name: self.family.name().to_owned(),
            clients: 1..n + 1,
            servers: 0..1,
            endpoints: 1,
            partners: Partners::Drawn,
            session: SessionOptions::DEFAULT.with_scheme(scheme),
            request_bytes: REQUEST,
            response_bytes: 32,
            in_flight: self.in_flight,
            arrivals: Arrivals::default(),
            start: Nanos::ZERO,
            spread: TOGETHER,
            stop: Nanos::MAX,
        };
        match self.family {
            Family::Incast | Family::Loss => (vec![load], n + 1),
            Family::Echo => {
                let (request_bytes, response_bytes) = (ECHO, ECHO);
                let echo = Load {
                    request_bytes,
                    response_bytes,
                    ..load
                };
                (vec![echo], n + 1)
            }
            Family::Late => {
                let late = Load {
                    clients: n + 1..n + 2,
                    start: SETTLE,
                    ..load.clone()
                };
                (vec![load, late], n + 2)
            }
            // The first rack has the senders of two groups; the second has those of the third
            // group, and the servers.
            Family::Two => {
                let group = |first: usize, server: usize| Load {
                    clients: first..first + n,
                    servers: server..server + 1,
                    ..load.clone()
                };
                let (near, far) = (2 * n, 2 * n + 1);
                let loads = vec![group(0, near), group(n, far), group(2 * n + 2, near)];
                // Without the two servers, the second rack would already be full.
                (loads, 3 * n + 2)
            }
        }
    }
}
