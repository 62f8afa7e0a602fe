//! The `udp` transport over real sockets: loopback, and network namespaces where we may make them.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod counted;
mod ecn;
mod edges;
mod endpoint;
mod model;
mod namespace;
mod peers;
mod strangers;
mod tied;
