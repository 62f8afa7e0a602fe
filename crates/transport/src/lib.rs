//! The transports of Dunlin that move packets between real processes (design §12).
//!
//! One folder per transport; each implements the two halves of `dunlin_core::transport` and
//! [`connect::Connect`]. All device code and all calls to the operating system of the packet path
//! live below here.

#[cfg(not(loom))]
pub mod auto;
pub mod connect;
pub mod counters;
pub mod lent;
pub mod networks;
pub mod shm;
pub mod turns;
pub mod udp;
