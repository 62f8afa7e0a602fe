//! Whether the transport `dpdk` can be used here, and which of its parts no test has reached.

use dunlin::transport::dpdk_library;

use super::facts::Fact;

pub(super) fn look() -> Vec<Fact> {
    vec![library(), untested()]
}

/// Most machines have no DPDK, so its absence is not a fault.
fn library() -> Fact {
    let value = match dpdk_library::find() {
        Ok(place) => place.display().to_string(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let what = error.to_string();
            what.lines().next().unwrap_or_default().to_owned()
        }
        Err(error) => error.to_string(),
    };
    Fact::good("dpdk: library", value)
}

fn untested() -> Fact {
    Fact::good(
        "dpdk: untested",
        "network cards, lend= and queues= (rte_flow) with them, huge pages (all tests have \
         --no-huge), and interrupts of other drivers than net_tap; only memif, net_ring, \
         net_null, net_tap, net_af_xdp, net_vhost and net_virtio_user of DPDK 22.11 were tested \
         (tools/dpdk-on-a-nic.sh tries a card)",
    )
}
