//! Servers whose handlers run on tokio: under load, with clients that give up, with a runtime that
//! is shut down; servers that drain on a signal; and an endpoint among the tasks of a thread.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod driver;
mod handlers;
mod load;
mod policy;
mod service;
mod shutdown;

use std::sync::Arc;
use std::time::Duration;

use dunlin::{Channel, Hub, Nexus, NexusBuilder, Running, Server};
use dunlin_testkit::wait::{PATIENCE, block_on_tokio as block_on, until};
use dunlin_tokio::OnTokio;
use tokio::runtime::{Builder, Handle, Runtime};

use service::{JobsSendServer, Seen, Worker};

/// The transport between client and server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    Shm,
    Udp,
}

const WAYS: [Way; 2] = [Way::Shm, Way::Udp];

impl Way {
    fn nexus(self) -> NexusBuilder {
        let builder = Nexus::builder().failure_timeout(Duration::from_secs(5));
        builder.without_unix(self == Self::Udp)
    }

    /// A server of `worker`, with its handlers on this runtime.
    fn serve(self, threads: usize, worker: &Worker, runtime: &Handle) -> Running {
        let (worker, runtime) = (worker.clone(), runtime.clone());
        let server = Server::builder().nexus(self.nexus()).threads(threads);
        let server = server.drain_timeout(PATIENCE);
        let server = server.service(move |_| JobsSendServer(worker.clone()).on(&runtime));
        server.start("127.0.0.1:0").unwrap()
    }

    fn open(self, server: &Running) -> Channel {
        self.open_at(server.address())
    }

    fn open_at(self, address: impl ToString) -> Channel {
        let hub = Hub::builder().listen("127.0.0.1:0").nexus(self.nexus());
        let channel = hub.start().unwrap().channel().patience(PATIENCE);
        channel.address(address.to_string()).open().unwrap()
    }
}

fn worker(seen: &Arc<Seen>) -> Worker {
    Worker::new(seen)
}

fn runtime() -> Runtime {
    Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
}

/// Not a test: plays the role that the parent's test has set, if this process is a child.
#[test]
fn child() {
    shutdown::main_if_asked();
}
