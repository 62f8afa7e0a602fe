//! The two ends of a link of DPDK: a device of memif in each of two processes, which meet at a
//! socket without a file. No packet passes through the kernel, so neither end needs a namespace.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicU32, Ordering};

use serde::{Deserialize, Serialize};

/// The addresses of the client's and the server's device, and their network.
const IPS: [[u8; 4]; 2] = [[10, 79, 2, 1], [10, 79, 2, 2]];
pub(crate) const NETWORK: &str = "10.79.2.0/24";

/// Arguments of DPDK: without huge pages, which a machine may not have. The raw measurements use
/// the same kind of memory.
const ARGUMENTS: &str = "--no-huge -m 128";

/// A device that a process makes when it opens its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Device {
    /// The process that holds the link, and the number of the link there.
    process: u32,
    link: u32,
    /// Whether it is the end that opens first.
    is_server: bool,
}

/// The client's and the server's device of a new link. The server must open first.
pub(crate) fn pair() -> [Device; 2] {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let link = NEXT.fetch_add(1, Ordering::Relaxed);
    [false, true].map(|is_server| Device {
        process: std::process::id(),
        link,
        is_server,
    })
}

impl Device {
    /// The device and its place in its network, in the form of the option `dpdk.device`.
    pub(crate) fn site(&self) -> String {
        let Self { process, link, .. } = self;
        let role = if self.is_server { "server" } else { "client" };
        let ip = self.ip();
        format!(
            "net_memif0,role={role},socket=/dunlin-bench-{process}-{link};ip={ip}/24;{ARGUMENTS}"
        )
    }

    fn ip(&self) -> IpAddr {
        Ipv4Addr::from(IPS[usize::from(self.is_server)]).into()
    }
}

#[cfg(test)]
mod tests;
