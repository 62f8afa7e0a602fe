//! `dpdk` over memif and net_ring: RPCs to itself, what the start of DPDK leaves alone, and what a
//! killed process leaves behind. Needs DPDK and the library of this crate.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod echo;
mod life;
mod memif;
mod opening;
#[path = "../conformance/pair.rs"]
mod pair;
mod relay;

use dunlin_testkit::child;
use opening::{open, options};

#[test]
fn child() {
    if let Some(role) = child::role() {
        life::play(&role);
    }
}
