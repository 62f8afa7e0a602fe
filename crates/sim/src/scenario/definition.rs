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
    /// What happens before is reported apart.
    pub warm_up: Nanos,
    /// How many hosts there are.
    pub hosts: usize,
    /// How they are connected, and what moving frames costs their threads.
    pub net: NetConfig,
    /// What an RPC costs a thread beside its packets, at each side.
    pub rpc_cost: Nanos,
    /// What goes wrong with frames.
    pub faults: FaultRates,
    /// Options of every endpoint.
    pub endpoint: Config,
    /// Who calls whom.
    pub loads: Vec<Load>,
    /// Time between two points of the series over time.
    pub sample_every: Nanos,
}
