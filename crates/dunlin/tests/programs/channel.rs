//! Channels over real endpoints, shared memory and UDP: calls of several threads, servers that
//! restart or are killed, calls that are dropped, limits, resolvers, and a runtime.

mod calls;
mod drops;
mod failure;
mod hosts;
mod kills;
mod limits;
mod metadata;
mod names;
mod notices;
mod options;
mod process;
mod runtime;
mod server;
mod sharing;
mod stuck;
mod tower;
mod typed;

use std::time::Duration;

use dunlin::{Channel, ChannelBuilder, Hub, Nexus, ReqType};
use dunlin_testkit::address::{free_port, own_host};
use dunlin_testkit::wait::{PATIENCE, block_on, until};

/// Answers with the request.
const ECHO: ReqType = ReqType(1);
/// Answers with the request, or never, as the server's role demands.
const HOLD: ReqType = ReqType(2);
/// Answers with the server's address.
const WHICH: ReqType = ReqType(3);

/// The transport between client and server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    Shm,
    Udp,
}

const WAYS: [Way; 2] = [Way::Shm, Way::Udp];

impl Way {
    fn nexus(self) -> dunlin::NexusBuilder {
        Nexus::builder()
            .without_unix(self == Self::Udp)
            .failure_timeout(Duration::from_millis(500))
    }

    /// A builder for a channel whose hub is its own.
    fn channel(self, address: impl ToString) -> ChannelBuilder {
        let hub = Hub::builder().listen("127.0.0.1:0").nexus(self.nexus());
        let hub = hub.start().unwrap();
        hub.channel()
            .patience(PATIENCE)
            .address(address.to_string())
    }

    fn open(self, address: impl ToString) -> Channel {
        self.channel(address).open().unwrap()
    }
}

/// Plays a role of these tests, in a child.
pub(crate) fn play(role: &str) {
    process::play(role);
}
