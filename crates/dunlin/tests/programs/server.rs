//! Servers over shared memory and UDP: how they start, which clients find them, their health,
//! layers, limits and reflection, and how they end: under load, by signals, and with requests that
//! never finish; and how they restart.

mod clients;
mod conversions;
mod drain;
mod drill;
mod health;
mod layers;
mod limits;
mod reflect;
mod restarts;
mod service;
mod shop;
mod signals;
mod start;

use std::time::Duration;

use dunlin::{Channel, ChannelBuilder, Hub, Nexus, NexusBuilder, Server, ServerBuilder};
use dunlin_testkit::wait::{PATIENCE, block_on_tokio as block_on, until};

/// The transport between client and server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    Shm,
    Udp,
}

const WAYS: [Way; 2] = [Way::Shm, Way::Udp];

impl Way {
    fn nexus(self) -> NexusBuilder {
        // No test here waits for a failure, and a busy machine may suspend a thread for long.
        let builder = Nexus::builder().failure_timeout(Duration::from_secs(10));
        builder.without_unix(self == Self::Udp)
    }

    fn server(self) -> ServerBuilder {
        Server::builder().nexus(self.nexus())
    }

    /// A channel without addresses, whose hub is its own.
    fn channel(self) -> ChannelBuilder {
        let hub = Hub::builder().listen("127.0.0.1:0").nexus(self.nexus());
        hub.start().unwrap().channel().patience(PATIENCE)
    }

    fn open(self, address: impl ToString) -> Channel {
        self.channel().address(address.to_string()).open().unwrap()
    }
}

/// Plays a role of these tests, in a child.
pub(crate) fn play(role: &str) {
    match role.split(' ').collect::<Vec<_>>().as_slice() {
        ["Recorded", words @ ..] => restarts::serve(words),
        ["Drained", address] => signals::serve(address),
        _ => panic!("{role} is not a role"),
    }
}
