//! A scenario: hosts, their network, its faults, and loads. Made by the command line, the sweep and
//! tests.

use dunlin_core::{Config, Nanos};

use super::load::Load;
use crate::world::net::{FaultRates, NetConfig};

/// One run.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The seed, from which all random choices follow.
    pub seed: u64,
    /// When the run ends.
    pub end: Nanos,
    /// The report shows events before this time separately.
    pub warm_up: Nanos,
    /// The number of hosts.
    pub hosts: usize,
    /// The network between them, and the cost of moving frames for their threads.
    pub net: NetConfig,
    /// Time that an RPC costs the thread at each side, in addition to its packets.
    pub rpc_cost: Nanos,
    /// Faults of frames.
    pub faults: FaultRates,
    /// Options of every endpoint.
    pub endpoint: Config,
    /// The clients, their partners and their requests.
    pub loads: Vec<Load>,
    /// Time between two points of the series over time.
    pub sample_every: Nanos,
}
