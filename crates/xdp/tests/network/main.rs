//! `xdp` between two namespaces: RPCs with `xdp` and with `udp` at the other end, and its behaviour
//! when the network changes or packets are hostile. Needs root and `ip`. Without them, these tests
//! say so and pass; with `DUNLIN_NO_SKIP=1` they fail instead.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod changes;
mod ends;
mod hostile;
mod life;
mod narrow;
mod processes;
mod queues;
mod relay;
mod rpc;
mod setup;
mod shared;
