//! `xdp` between two namespaces: RPCs to itself and to `udp`, and what a network does to it. Needs
//! root and `ip`; elsewhere these tests say so and pass, and under `CI` they must not.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod changes;
mod ends;
mod hostile;
mod life;
mod rpc;
