//! `dpdk` over memif and net_ring. Tests RPCs between its own endpoints, that starting DPDK changes
//! neither CPU affinity nor signals, and that a killed process leaves nothing behind. Needs DPDK
//! and the C library that `native/build.sh` makes.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod echo;
mod life;
mod memif;
mod opening;
#[path = "../conformance/pair.rs"]
mod pair;
mod relay;
mod reuse;

use dunlin_testkit::child;
use opening::{open, options};

#[test]
fn child() {
    if let Some(role) = child::role() {
        life::play(&role);
    }
}
