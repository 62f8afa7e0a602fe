//! A deterministic world in which the Dunlin endpoint runs unchanged: virtual time, hosts, a
//! switch, faults, a control plane, workloads and checkers (design §13).
//!
//! Invariants: one seed is one run. Nothing here reads a clock, an environment or an address, and
//! nothing iterates over a container whose order is not fixed. [`net`] and [`world`] know nothing
//! of the protocol; what does is in [`hostile`] and in the scenarios.
#![forbid(unsafe_code)]

pub mod clock;
pub mod events;
pub mod hostile;
pub mod net;
pub mod packets;
pub mod rng;
pub mod trace;
pub mod world;

pub use clock::SimClock;
pub use net::{FaultRates, HostId, Net, NetConfig, NetHandle, PortId, SimRx, SimTransport, SimTx};
pub use rng::Rng;
pub use world::{Cluster, Node, World};
