//! A deterministic world in which the Dunlin endpoint runs unchanged: virtual time, hosts,
//! switches, faults, a control plane, workloads and checkers.
//!
//! Each module uses only those above it in this list:
//!
//! | module | what it owns |
//! |---|---|
//! | [`world`] | clock, random numbers, network, hosts; an attacker, and no other protocol |
//! | [`cluster`] | the run of a seed: a plan, processes that call each other, checkers |
//! | [`channel`] | the run of a seed with channels, against servers that fail |
//! | [`scenario`] | loads whose rates and latencies are measured |
//!
//! Invariants: a seed determines the whole run. No code here reads a clock, the environment or an
//! address, or iterates over a container whose order is not fixed.
#![forbid(unsafe_code)]

pub mod channel;
pub mod cluster;
pub mod scenario;
pub mod world;

pub use cluster::mutants::Mutant;
pub use cluster::run::{Failure, Options, Report, run_seed};
pub use world::clock::SimClock;
pub use world::net::{
    FaultRates, HostId, Net, NetConfig, NetHandle, PortId, SimEndpoint, SimRx, SimTransport, SimTx,
    take_reports,
};
pub use world::rng::Rng;
pub use world::{Cluster, Node, World};
