//! Channels over real endpoints, shared memory and UDP: calls of several threads, servers that
//! restart or are killed, calls that are dropped, limits, resolvers, and a runtime.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

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

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

use dunlin::{Channel, ChannelBuilder, Hub, Nexus, ReqType};
use dunlin_testkit::address::{free_port, own_host};
use dunlin_testkit::wait::{PATIENCE, until};

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

/// A thread that waits, and whether it has been woken.
struct Unpark(Thread, AtomicBool);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.1.store(true, Ordering::SeqCst);
        self.0.unpark();
    }
}

/// A minimal executor. It polls a future only after a wake-up.
fn block_on<F: Future>(future: F) -> F::Output {
    let unpark = Arc::new(Unpark(std::thread::current(), AtomicBool::new(false)));
    let waker = Waker::from(Arc::clone(&unpark));
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        let begin = Instant::now();
        while !unpark.1.swap(false, Ordering::SeqCst) {
            assert!(begin.elapsed() < PATIENCE, "a future is never woken");
            std::thread::park_timeout(PATIENCE);
        }
    }
}

/// Not a test: plays the role that the parent's test has set, if this process is a child.
#[test]
fn child() {
    process::main_if_asked();
}
