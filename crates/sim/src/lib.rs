//! A deterministic world in which the Dunlin endpoint runs unchanged: virtual time, hosts, a
//! switch, faults, a control plane, workloads and checkers (design §13).
//!
//! Invariants: one seed is one run. Nothing here reads a clock, an environment or an address, and
//! nothing iterates over a container whose order is not fixed. [`net`] and [`world`] know nothing
//! of the protocol; what does is in [`hostile`] and in the scenarios.
#![forbid(unsafe_code)]

pub mod bulk;
pub mod clock;
pub mod cluster;
pub mod differential;
pub mod events;
pub mod hostile;
pub mod mutants;
pub mod net;
pub mod packets;
mod panics;
pub mod plan;
pub mod rng;
pub mod run;
pub mod scenario;
pub mod sweep;
pub mod trace;
pub mod world;

pub use clock::SimClock;
pub use mutants::Mutant;
pub use net::{FaultRates, HostId, Net, NetConfig, NetHandle, PortId, SimRx, SimTransport, SimTx};
pub use rng::Rng;
pub use run::{Failure, Options, Report, run_seed};
pub use world::{Cluster, Node, World};
