//! A scenario: hosts, their network, its faults, and loads. Made by the command line, the sweep and
//! tests.

use dunlin_core::{Config, Nanos};

use super::load::Load;
use crate::world::net::{FaultRates, NetConfig};

/// One run.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// From which all randomness follows.
    pub seed: u64,
    /// When the run ends.
    pub end: Nanos,
    /// The report shows what happens before this time apart.
    pub warm_up: Nanos,
    /// How many hosts there are.
    pub hosts: usize,
    /// How they are connected, and what moving frames costs their threads.
    pub net: NetConfig,
    /// Cost of an RPC for a thread in addition to its packets, at each side.
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
