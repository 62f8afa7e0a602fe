//! The services of these tests, and a record of the calls that ran.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dunlin::service::{Context, Postcard};
use dunlin::{Caller, Cx, ServerThread, service};

#[service(codec = Postcard)]
pub(crate) trait Work {
    /// Takes some milliseconds, and returns the number of the job.
    #[method(1)]
    fn run(job: (u64, u64)) -> u64;

    /// Never completes.
    #[method(2)]
    fn hang(nothing: ()) -> ();

    /// The number of the thread.
    #[method(3)]
    fn thread(nothing: ()) -> usize;
}

/// A service with two methods, one of which has a number that [`Work`] also uses.
#[service(codec = Postcard)]
pub(crate) trait Other {
    #[method(9)]
    fn own(nothing: ()) -> ();
    #[method(3)]
    fn taken(nothing: ()) -> ();
}

/// A service with a method number that [`Work`] also uses, but with another base.
#[service(codec = Postcard, base = 100)]
pub(crate) trait Based {
    #[method(1)]
    fn twice(number: u64) -> u64;
}

impl Based for () {
    async fn twice(&self, number: u64, _: Context<'_>) -> u64 {
        2 * number
    }
}

impl BasedPoll for Polled {
    fn twice(&mut self, number: u64, _: &mut Cx<'_>, _: Context<'_>) -> u64 {
        2 * number
    }
}

/// The calls that have run, at all servers of a test.
#[derive(Debug, Default)]
pub(crate) struct Book {
    /// How often each job ran.
    pub(crate) runs: Mutex<BTreeMap<u64, u32>>,
    pub(crate) hangs: AtomicUsize,
}

impl Book {
    fn enter(&self, job: u64) {
        *self.runs.lock().unwrap().entry(job).or_default() += 1;
    }
}

pub(crate) struct Worker {
    cx: Caller,
    index: usize,
    book: Arc<Book>,
}

impl Worker {
    pub(crate) fn server(
        book: &Arc<Book>,
    ) -> impl Fn(ServerThread) -> WorkServer<Self> + Send + Sync + 'static + use<> {
        let book = Arc::clone(book);
        move |thread| {
            WorkServer(Self {
                cx: thread.caller(),
                index: thread.index(),
                book: Arc::clone(&book),
            })
        }
    }
}

impl Work for Worker {
    async fn run(&self, (job, ms): (u64, u64), _: Context<'_>) -> u64 {
        self.book.enter(job);
        self.cx.sleep(Duration::from_millis(ms)).await;
        job
    }

    async fn hang(&self, (): (), _: Context<'_>) {
        self.book.hangs.fetch_add(1, Ordering::Relaxed);
        std::future::pending().await
    }

    async fn thread(&self, (): (), _: Context<'_>) -> usize {
        self.index
    }
}

impl Other for () {
    async fn own(&self, (): (), _: Context<'_>) {}

    async fn taken(&self, (): (), _: Context<'_>) {}
}

/// All three services on the poll API, where no handler waits.
pub(crate) struct Polled(pub(crate) usize);

impl WorkPoll for Polled {
    fn run(&mut self, (job, _): (u64, u64), _: &mut Cx<'_>, _: Context<'_>) -> u64 {
        job
    }

    fn hang(&mut self, (): (), _: &mut Cx<'_>, _: Context<'_>) {}

    fn thread(&mut self, (): (), _: &mut Cx<'_>, _: Context<'_>) -> usize {
        self.0
    }
}

impl OtherPoll for Polled {
    fn own(&mut self, (): (), _: &mut Cx<'_>, _: Context<'_>) {}

    fn taken(&mut self, (): (), _: &mut Cx<'_>, _: Context<'_>) {}
}
