//! The service of these tests, and a record of its handlers.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use dunlin::service::{Context, Postcard};
use dunlin::{Channel, service};

#[service(codec = Postcard, send)]
pub(crate) trait Jobs {
    /// The job is a number and a time in milliseconds. Waits for that time, and returns the number.
    #[method(1)]
    fn run(job: (u64, u64)) -> u64;

    /// Never completes.
    #[method(2)]
    fn hang(nothing: ()) -> ();

    /// The name of the thread.
    #[method(3)]
    fn thread(nothing: ()) -> String;

    /// Asks another server to run a job, or to hang.
    #[method(4)]
    fn pass_on(job: Option<u64>) -> Result<u64, String>;

    /// Blocks its thread for some milliseconds.
    #[method(5)]
    fn block(ms: u64) -> ();
}

/// Counts what handlers do.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// Jobs that have started.
    pub(crate) started: AtomicU64,
    /// Jobs that have run to their end.
    pub(crate) run: AtomicU64,
    /// Handlers that hang or block.
    pub(crate) begun: AtomicU64,
    /// Handlers that never complete and were dropped.
    pub(crate) dropped: AtomicU64,
}

#[derive(Clone)]
pub(crate) struct Worker {
    seen: Arc<Seen>,
    pub(crate) other: Arc<OnceLock<JobsClient<Channel>>>,
}

impl Worker {
    pub(crate) fn new(seen: &Arc<Seen>) -> Self {
        Self {
            seen: Arc::clone(seen),
            other: Arc::default(),
        }
    }
}

/// Counts its drop.
struct Guard<'a>(&'a Seen);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        self.0.dropped.fetch_add(1, Ordering::SeqCst);
    }
}

impl JobsSend for Worker {
    async fn run(&self, (job, ms): (u64, u64), _: Context<'_>) -> u64 {
        self.seen.started.fetch_add(1, Ordering::SeqCst);
        if ms > 0 {
            tokio::time::sleep(Duration::from_millis(ms)).await;
        }
        self.seen.run.fetch_add(1, Ordering::SeqCst);
        job
    }

    async fn hang(&self, (): (), _: Context<'_>) {
        self.seen.begun.fetch_add(1, Ordering::SeqCst);
        let _guard = Guard(&self.seen);
        std::future::pending().await
    }

    async fn thread(&self, (): (), _: Context<'_>) -> String {
        tokio::task::yield_now().await;
        let thread = std::thread::current();
        thread.name().unwrap_or_default().to_owned()
    }

    async fn pass_on(&self, job: Option<u64>, context: Context<'_>) -> Result<u64, String> {
        let other = self.other.get().ok_or("there is no other server")?;
        let passed = match job {
            Some(job) => other.run(&(job, 1)).under(&context).await,
            None => other.hang(&()).under(&context).await.map(|()| 0),
        };
        passed.map_err(|failure| failure.to_string())
    }

    async fn block(&self, ms: u64, _: Context<'_>) {
        self.seen.begun.fetch_add(1, Ordering::SeqCst);
        std::thread::sleep(Duration::from_millis(ms));
    }
}
