//! The simulated world: virtual time, random numbers, a network, and hosts whose processes run in
//! it.
//!
//! | file | what it owns |
//! |---|---|
//! | `clock.rs`, `events.rs`, `rng.rs` | time, the queue of events, randomness from a seed |
//! | `schedule.rs` | events that a run has planned |
//! | `net.rs` | hosts, ports, frames under way, and their faults |
//! | `hosts.rs` | processes: when they run, pause, crash and start; their control connections |
//! | `hostile.rs` | frames that no endpoint sent |
//! | `trace.rs`, `packets.rs` | the last events, in words |
//! | `record.rs` | all events, as a digest, to compare two runs |
//!
//! Invariant: only `hostile.rs` and `packets.rs` read packets, except that `net` reads a byte count
//! from a header. Called by `cluster` and `scenario`.

pub mod clock;
pub mod events;
pub mod hostile;
mod hosts;
pub mod net;
pub mod packets;
pub(crate) mod record;
pub mod rng;
pub mod schedule;
pub mod trace;

pub use hosts::{Act, Cluster, Node, ProcessId, StreamEvent, StreamRequest, World};
pub use record::Line;
