//! The transports of Dunlin that move packets between real processes (design §12).
//!
//! One folder per transport; each implements the two halves of `dunlin_core::transport` and
//! [`connect::Connect`]. The packet path's system calls for `shm` and `udp` are all in this crate;
//! `dunlin-xdp` and `dunlin-dpdk` have their own.

#[cfg(not(loom))]
pub mod auto;
pub mod connect;
pub mod counters;
pub mod lent;
pub mod networks;
pub mod shm;
pub mod turns;
pub mod udp;
