//! `dpdk` over drivers whose other end is the kernel or another driver: net_tap, net_af_xdp and
//! net_vhost. Needs DPDK and the library of this crate, root and `ip`. These tests are apart from
//! those over memif, because DPDK has room for 32 devices in a process, and closes none.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod af_xdp;
#[path = "../device/echo.rs"]
mod echo;
mod kernel;
#[path = "../conformance/link.rs"]
mod link;
#[path = "../device/opening.rs"]
mod opening;
mod vhost;

/// The devices of these tests come one by one, so they share only the arguments of DPDK.
mod pair {
    pub(crate) const ARGUMENTS: &str = "--no-huge -m 1600";
}

use opening::{open, options};
