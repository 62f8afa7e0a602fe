//! Scenario files: the keys of a file, in units that are easy to write, and the scenario that they
//! describe. Every key has a default, except for the hosts of a load.

mod idle;
mod load;

use dunlin_sim::scenario::{CHECK, Config, Load, Nanos, Scenario, Scheme, SessionOptions, Wrong};
use dunlin_sim::world::net::{CpuCosts, Fabric, FaultRates, Marking, NetConfig};
use dunlin_sim::world::rng::Ppm;
use load::LoadSection;
use serde::Deserialize;

/// A scenario file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct File {
    /// The scenario's name in the report.
    pub(crate) name: String,
    seed: u64,
    /// The report shows events before this time separately.
    warm_up_ms: f64,
    end_ms: f64,
    /// Time between two points of the series over time.
    sample_us: f64,
    network: Network,
    switch: Switch,
    cpu: Cpu,
    endpoint: Endpoint,
    faults: Faults,
    load: Vec<LoadSection>,
    /// Keys, and the values that each of them takes; every combination is a run.
    pub(crate) sweep: toml::Table,
}

/// Hosts and cables.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Network {
    hosts: usize,
    gbps: f64,
    cable_ns: u64,
    /// Data bytes of a packet, without its header.
    packet_bytes: u32,
    /// Bytes that a frame takes on a cable in addition to the packet: Ethernet, IP, UDP, checksum,
    /// preamble, gap.
    overhead_bytes: u32,
    /// The most frames in an endpoint's RX queue.
    rx_queue: u32,
    /// The most kilobytes in the NIC of a host.
    nic_kb: f64,
    /// The fate of frames for which the NIC has no room.
    nic: Nic,
    /// Whether hosts know the round trip of an empty network.
    base_rtt: BaseRtt,
    /// Time from the hand-over of a frame until the NIC reads it from memory.
    dma_ns: u64,
    racks: usize,
    /// Number of consecutive hosts on one rack.
    neighbours: usize,
    spines: usize,
    /// Cables from each rack to each spine.
    uplinks: usize,
    uplink_gbps: f64,
}

/// The fate of frames for which a NIC has no room.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Nic {
    /// The frames wait in the queues of their endpoints.
    #[default]
    Waits,
    /// The NIC drops them.
    Drops,
}

/// Whether hosts know the round trip of an empty network.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum BaseRtt {
    /// Hosts know it, like a NIC that knows its fabric.
    #[default]
    Told,
    /// Hosts take the smallest round trip that they have seen.
    Measured,
}

/// Every switch.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Switch {
    buffer_kb: f64,
    /// The memory that one queue may take, as a multiple of the free memory.
    alpha: f64,
    latency_ns: u64,
    /// Queue length above which frames are marked, with a probability that grows with the length.
    mark_from_kb: f64,
    /// Queue length above which all frames are marked.
    mark_all_kb: f64,
    /// Percentage of the frames that are marked just below `mark_all_kb`.
    mark_percent: f64,
}

/// Costs of work in a thread.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Cpu {
    iteration_ns: u64,
    /// Time for a packet, sent or received.
    packet_ns: u64,
    /// Time for an RPC, at each side.
    rpc_ns: u64,
    /// Time for 1024 bytes of data.
    kilobyte_ns: u64,
}

/// Options of endpoints and sessions.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Endpoint {
    /// The congestion control scheme.
    cc: String,
    credits: u32,
    window: u32,
    rto_floor_us: u64,
    rto_initial_us: u64,
}

/// How many of a million frames each fault affects.
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Faults {
    loss_ppm: u32,
    /// Frames at which a burst of losses begins; each burst hits frames to one host.
    burst_ppm: u32,
    /// Longest burst of lost frames.
    burst_frames: u32,
    duplicate_ppm: u32,
    reorder_ppm: u32,
    /// Longest delay of a late frame.
    reorder_us: u64,
    /// Frames before which a port of the switch stops for a while.
    spike_ppm: u32,
    spike_us: u64,
}

impl Default for File {
    fn default() -> Self {
        Self {
            name: "scenario".to_owned(),
            seed: 1,
            warm_up_ms: 5.0,
            end_ms: 20.0,
            sample_us: 100.0,
            network: Network::default(),
            switch: Switch::default(),
            cpu: Cpu::default(),
            endpoint: Endpoint::default(),
            faults: Faults::default(),
            load: Vec::new(),
            sweep: toml::Table::new(),
        }
    }
}

impl Default for Network {
    /// The cables of the CX4 cluster in eRPC's paper, on one switch.
    fn default() -> Self {
        Self {
            hosts: 2,
            gbps: 25.0,
            cable_ns: 300,
            packet_bytes: 1024,
            overhead_bytes: 66,
            rx_queue: 4096,
            nic_kb: 1024.0,
            nic: Nic::default(),
            base_rtt: BaseRtt::default(),
            dma_ns: 800,
            racks: 1,
            neighbours: 1,
            spines: 1,
            uplinks: 1,
            uplink_gbps: 100.0,
        }
    }
}

impl Default for Switch {
    /// 12 MB of memory, of which one queue may take eight ninths; no marks.
    fn default() -> Self {
        Self {
            buffer_kb: 12.0 * 1024.0,
            alpha: 8.0,
            latency_ns: 300,
            mark_from_kb: f64::INFINITY,
            mark_all_kb: f64::INFINITY,
            mark_percent: 100.0,
        }
    }
}

impl Default for Cpu {
    /// With these costs a thread issues 4.96 million RPCs a second, as in the CX4 cluster (eRPC,
    /// figure 4).
    fn default() -> Self {
        Self {
            iteration_ns: 20,
            packet_ns: 30,
            rpc_ns: 31,
            kilobyte_ns: 100,
        }
    }
}

impl Default for Endpoint {
    fn default() -> Self {
        let session = SessionOptions::default();
        Self {
            // As in real networks (`Config::scheme`).
            cc: Scheme::Swift.name().to_owned(),
            credits: session.credits,
            window: session.window,
            rto_floor_us: 5_000,
            rto_initial_us: 20_000,
        }
    }
}

impl File {
    /// The scenario that the file describes. [`Scenario::check`] decides whether it can run.
    /// `compares`: the file compares several congestion control schemes, of which this run has
    /// some.
    ///
    /// # Errors
    /// A key has an invalid value, or no effect.
    pub(crate) fn scenario(&self, compares: bool) -> Result<Scenario, Wrong> {
        if !(0.0..=100.0).contains(&self.switch.mark_percent) {
            let what = "must be from 0 to 100";
            return Err(Wrong::new("switch.mark_percent", what));
        }
        self.refuse_idle_keys()?;
        if !compares {
            self.refuse_keys_of_other_schemes()?;
        }
        Ok(Scenario {
            seed: self.seed,
            end: Nanos(amount("end_ms", self.end_ms * 1e6)?),
            warm_up: Nanos(amount("warm_up_ms", self.warm_up_ms * 1e6)?),
            hosts: self.network.hosts,
            net: self.network()?,
            rpc_cost: Nanos(self.cpu.rpc_ns),
            faults: self.faults.rates(),
            endpoint: self.endpoint.config(),
            loads: self.loads()?,
            sample_every: Nanos(amount("sample_us", self.sample_us * 1e3)?),
        })
    }

    fn loads(&self) -> Result<Vec<Load>, Wrong> {
        let loads = self.load.iter().enumerate();
        loads
            .map(|(index, load)| load.load(index, self.network.hosts, &self.endpoint))
            .collect()
    }

    fn network(&self) -> Result<NetConfig, Wrong> {
        let (network, switch) = (&self.network, &self.switch);
        Ok(NetConfig {
            line_rate: bytes_per_second("network.gbps", network.gbps)?,
            cable: Nanos(network.cable_ns),
            nic_bytes: amount("network.nic_kb", network.nic_kb * 1024.0)?,
            nic_waits: network.nic == Nic::Waits,
            tells_base_rtt: network.base_rtt == BaseRtt::Told,
            fabric: Fabric {
                racks: network.racks,
                neighbours: network.neighbours,
                spines: network.spines,
                uplinks: network.uplinks,
                uplink_rate: bytes_per_second("network.uplink_gbps", network.uplink_gbps)?,
                buffer_bytes: amount("switch.buffer_kb", switch.buffer_kb * 1024.0)?,
                alpha: switch.alpha,
                marking: Marking {
                    from: amount("switch.mark_from_kb", switch.mark_from_kb * 1024.0)?,
                    to: amount("switch.mark_all_kb", switch.mark_all_kb * 1024.0)?,
                    most: ppm(amount("switch.mark_percent", switch.mark_percent * 1e4)?),
                },
                latency: Nanos(switch.latency_ns),
            },
            frame_overhead: network.overhead_bytes,
            rx_queue: network.rx_queue,
            data_size: network.packet_bytes,
            frame_bytes: 0,
            dma: (Nanos(network.dma_ns), Nanos(network.dma_ns)),
            cpu: CpuCosts {
                iteration: Nanos(self.cpu.iteration_ns),
                packet: Nanos(self.cpu.packet_ns),
                kilobyte: Nanos(self.cpu.kilobyte_ns),
            },
            ..NetConfig::default()
        })
    }
}

impl Endpoint {
    fn config(&self) -> Config {
        Config {
            rto_floor: micros(self.rto_floor_us),
            rto_initial: micros(self.rto_initial_us),
            hugepages: false,
            readable_buffers: true,
            max_sessions: 1 << 20,
            pool_bytes: 1 << 40,
            receive_budget: 1 << 40,
            session_receive_budget: 1 << 40,
            check: CHECK,
            ..Config::default()
        }
    }
}

impl Faults {
    fn rates(&self) -> FaultRates {
        FaultRates {
            loss: Ppm(self.loss_ppm),
            burst: Ppm(self.burst_ppm),
            burst_frames: self.burst_frames,
            duplicate: Ppm(self.duplicate_ppm),
            reorder: Ppm(self.reorder_ppm),
            reorder_by: micros(self.reorder_us),
            evenly: true,
            spike: Ppm(self.spike_ppm),
            spike_by: micros(self.spike_us),
            ..FaultRates::NONE
        }
    }
}

fn bytes_per_second(key: &str, gbps: f64) -> Result<u64, Wrong> {
    amount(key, gbps * 1e9 / 8.0)
}

/// This number of microseconds, or [`Nanos::MAX`] if that is too long, so that no absurd time wraps
/// to a short one.
pub(crate) fn micros(n: u64) -> Nanos {
    Nanos(n.saturating_mul(1000))
}

fn ppm(n: u64) -> Ppm {
    Ppm(u32::try_from(n).unwrap_or(u32::MAX).min(Ppm::ALWAYS.0))
}

/// Rounds to the nearest whole number, at most the greatest `u64`.
///
/// # Errors
/// It is negative, or not a number.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "such a conversion saturates, as it should"
)]
pub(crate) fn amount(key: &str, number: f64) -> Result<u64, Wrong> {
    match number >= 0.0 {
        true => Ok(number.round() as u64),
        false => Err(Wrong::new(key, "must be a number that is at least 0")),
    }
}
