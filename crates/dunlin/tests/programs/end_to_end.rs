//! Whole programs over real transports: processes that are killed and stopped, networks that break,
//! and senders of nonsense (design §6, §9). Faults that concern a single crate are tested there;
//! these programs use all crates, as a user's program does.
//!
//! A test that needs another process starts this program again with a role in the environment;
//! the test `child` then is that process (`process.rs`).

mod client;
mod dropped;
mod edge;
mod failure;
mod idle;
mod load;
mod network;
mod nonsense;
mod options;
mod process;
mod server;
mod sessions;

use dunlin::{Auto, Shm, Udp};
use dunlin_nexus::Open;

/// A transport by the name that the parent passes to a child.
trait Named: Open {
    const NAME: &'static str;

    /// The UDP port of an endpoint; 0: any. A transport without one has nothing to set.
    fn set_udp_port(options: &mut Self::Options, port: u16);
}

impl Named for Shm {
    const NAME: &'static str = "shm";

    fn set_udp_port(_: &mut Self::Options, _: u16) {}
}

impl Named for Udp {
    const NAME: &'static str = "udp";

    fn set_udp_port(options: &mut Self::Options, port: u16) {
        options.port = port;
    }
}

impl Named for Auto {
    const NAME: &'static str = "auto";

    fn set_udp_port(options: &mut Self::Options, port: u16) {
        options.udp.port = port;
    }
}

/// Plays the role that the environment names, if this process is a child.
pub(crate) fn play_if_asked() {
    process::play_if_asked();
}
