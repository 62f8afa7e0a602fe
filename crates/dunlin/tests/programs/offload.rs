//! Handlers on an executor that the test runs by hand, so that each step of a request happens when
//! the test wants it: bursts, limits, clients that give up, executors that are shut down, panics.

mod calls;
mod ends;
mod limits;
mod queue;
mod service;

use std::sync::Arc;

use dunlin::{Auto, Caller, Local, Nexus, NexusBuilder, Offload, Running, Server, Session, Tasks};
use dunlin_testkit::wait::{PATIENCE, until};

use queue::Queue;
use service::{JobsClient, JobsSendServer, Seen, Worker};

/// The transport between client and server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    Shm,
    Udp,
}

const WAYS: [Way; 2] = [Way::Shm, Way::Udp];

impl Way {
    fn nexus(self) -> NexusBuilder {
        Nexus::builder().without_unix(self == Self::Udp)
    }
}

/// A server whose handlers run on a [`Queue`].
struct Bench {
    way: Way,
    queue: Queue,
    seen: Arc<Seen>,
    server: Running,
}

impl Bench {
    fn start(way: Way) -> Self {
        Self::with_limit(way, 4096)
    }

    /// A server that has at most `limit` requests at the queue.
    fn with_limit(way: Way, limit: u32) -> Self {
        let (queue, seen) = (Queue::default(), Arc::<Seen>::default());
        let (spawn, book) = (queue.clone(), Arc::clone(&seen));
        let server = Server::builder()
            .nexus(way.nexus())
            .drain_timeout(PATIENCE)
            .service(move |_| {
                let jobs = JobsSendServer(Worker(Arc::clone(&book)));
                Offload::with_limit(jobs, spawn.clone(), limit)
            });
        Self {
            way,
            queue,
            seen,
            server: server.start("127.0.0.1:0").unwrap(),
        }
    }

    /// A client on a thread of its own, which runs `calls`.
    fn client<R, F>(
        &self,
        calls: impl FnOnce(JobsClient<Caller>, Caller) -> F + Send + 'static,
    ) -> std::thread::JoinHandle<R>
    where
        R: Send + 'static,
        F: Future<Output = R>,
    {
        self.client_on(|jobs, cx, _| calls(jobs, cx))
    }

    /// Like [`Self::client`]; `calls` also gets the session, which is open.
    fn client_on<R, F>(
        &self,
        calls: impl FnOnce(JobsClient<Caller>, Caller, Session) -> F + Send + 'static,
    ) -> std::thread::JoinHandle<R>
    where
        R: Send + 'static,
        F: Future<Output = R>,
    {
        let (nexus, address) = (self.way.nexus(), self.server.address());
        std::thread::spawn(move || {
            let nexus = nexus.bind("127.0.0.1:0").unwrap();
            let mut local: Local<Auto> = Local::new(nexus.endpoint(Tasks::default()).unwrap());
            let session = local.connect(address).unwrap();
            local.block_on(|cx| async move {
                cx.connected(session).await.unwrap();
                calls(JobsClient::new(cx.clone(), session), cx, session).await
            })
        })
    }

    /// Runs the queue until the condition holds.
    fn run_until(&self, mut is_so: impl FnMut() -> bool) {
        until(|| {
            self.queue.run();
            is_so()
        });
    }

    /// Runs the queue until the client has its result.
    fn finish<R>(&self, client: std::thread::JoinHandle<R>) -> R {
        self.run_until(|| client.is_finished());
        client.join().unwrap()
    }
}
