//! RPCs between two endpoints of `dpdk` over two devices of net_ring, in one thread and with a
//! clock that only counts. `cargo xtask budget` runs it under callgrind, and compares the cost of
//! the transport, without the driver, with `budget.toml`. It needs DPDK and `libdunlin_dpdk.so`.
//!
//! ```text
//! cargo run --release -p dunlin-dpdk --example dpdk_rpc -- \
//!     32 [IN_FLIGHT] [SESSIONS] [COUNT] [packed]
//! ```
//!
//! Messages have 32 bytes each way. Packets may share datagrams if one request is in flight, or
//! with the word `packed`. Otherwise each has a datagram of its own. The last printed line is the
//! number of counted RPCs.

#[path = "../../../transport/examples/rpc/apart.rs"]
mod apart;
#[path = "../../../transport/examples/rpc/mod.rs"]
mod rpc;

mod crossed;
mod ends;

use dunlin_dpdk::Dpdk;

use apart::{Apart, Client, Server, apart, plan_of_32_bytes};
use ends::ends;
use rpc::run;

fn main() {
    let (plan, packs) = plan_of_32_bytes();
    let ((near, to_far), (far, to_near)) = ends(packs);
    let ends = ((apart(near), to_far), (apart(far), to_near));
    println!(
        "{}",
        run::<Apart<Dpdk, Client>, Apart<Dpdk, Server>, 32, false>(&plan, ends)
    );
}
