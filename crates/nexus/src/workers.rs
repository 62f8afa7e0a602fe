//! Worker threads for background handlers (eRPC §3.2): one pool per nexus, shared by its
//! endpoints.
//!
//! A job waits in one bounded queue, runs in one of the threads, and then goes into its endpoint's
//! queue of finished jobs. The thread rings that endpoint's doorbell. Nothing allocates per job:
//! both queues get their capacity at the start. A thread without work polls for jobs for a few
//! microseconds, then sleeps; a submitter makes a system call only if a thread sleeps.
//!
//! Invariants:
//! - An endpoint has at most [`WorkerOptions::queue`] jobs under way, so its queue of finished
//!   jobs never grows.
//! - Dropping the pool ends every thread; jobs that did not run are dropped with it.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use dunlin_core::{Job, Workers};

use crate::doorbell::Doorbell;

/// The number of threads that run background handlers, and their limits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WorkerOptions {
    /// The number of threads; 0 makes a nexus without workers, which rejects background requests.
    pub threads: usize,
    /// The most jobs of one endpoint that may be under way; further requests are rejected as
    /// overloaded.
    pub queue: usize,
    /// How long a thread without work polls for jobs before it sleeps.
    pub spin: Duration,
}

impl Default for WorkerOptions {
    /// Two threads. They spin for about 5 µs, which is less than the cost of a wake-up, so that a
    /// burst of jobs costs one wake-up and an idle pool costs nothing.
    fn default() -> Self {
        Self {
            threads: 2,
            queue: 1024,
            spin: Duration::from_micros(5),
        }
    }
}

/// A job for a worker thread.
pub(crate) trait Run: Send + 'static {
    fn run(&mut self);
}

impl Run for Job {
    fn run(&mut self) {
        Job::run(self);
    }
}

/// The threads, which end when this is dropped.
#[derive(Debug)]
pub(crate) struct Pool<J: Run> {
    shared: Arc<Shared<J>>,
    threads: Vec<JoinHandle<()>>,
}

/// The pool as one endpoint sees it.
#[derive(Debug)]
pub(crate) struct PoolHandle<J: Run> {
    shared: Arc<Shared<J>>,
    finished: Arc<Finished<J>>,
    under_way: usize,
}

#[derive(Debug)]
struct Shared<J> {
    queue: Mutex<Queue<J>>,
    /// Length of the queue, for threads that check it without the lock.
    waiting: AtomicUsize,
    wake: Condvar,
    options: WorkerOptions,
}

#[derive(Debug)]
struct Queue<J> {
    jobs: VecDeque<(J, Arc<Finished<J>>)>,
    sleepers: usize,
    stop: bool,
}

/// Jobs of one endpoint that have run.
#[derive(Debug)]
struct Finished<J> {
    jobs: Mutex<VecDeque<J>>,
    len: AtomicUsize,
    doorbell: Arc<Doorbell>,
}

impl<J: Run> Pool<J> {
    /// Starts the threads.
    pub(crate) fn new(options: WorkerOptions) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            queue: Mutex::new(Queue {
                jobs: VecDeque::new(),
                sleepers: 0,
                stop: false,
            }),
            waiting: AtomicUsize::new(0),
            wake: Condvar::new(),
            options,
        });
        let mut pool = Self {
            shared,
            threads: Vec::new(),
        };
        for index in 0..options.threads {
            let shared = Arc::clone(&pool.shared);
            let name = format!("dunlin-worker-{index}");
            let thread = std::thread::Builder::new()
                .name(name)
                .spawn(move || shared.work())?;
            pool.threads.push(thread);
        }
        Ok(pool)
    }

    /// Gives the pool to one more endpoint. A worker rings `doorbell` when one of the endpoint's
    /// jobs has run. `None` if the pool has no threads.
    pub(crate) fn handle(&self, doorbell: Arc<Doorbell>) -> Option<PoolHandle<J>> {
        if self.threads.is_empty() {
            return None;
        }
        let capacity = self.shared.options.queue;
        // One queue holds the jobs of all endpoints; each endpoint has its share of the room.
        locked(&self.shared.queue).jobs.reserve(capacity);
        let finished = Arc::new(Finished {
            jobs: Mutex::new(VecDeque::with_capacity(capacity)),
            len: AtomicUsize::new(0),
            doorbell,
        });
        Some(PoolHandle {
            shared: Arc::clone(&self.shared),
            finished,
            under_way: 0,
        })
    }
}

impl<J: Run> Drop for Pool<J> {
    fn drop(&mut self) {
        {
            let mut queue = locked(&self.shared.queue);
            queue.stop = true;
            queue.jobs.clear();
        }
        self.shared.wake.notify_all();
        for thread in self.threads.drain(..) {
            // A job catches the panics of its handler, so a worker only ends by returning.
            let ended = thread.join();
            debug_assert!(ended.is_ok());
        }
    }
}

impl<J: Run> PoolHandle<J> {
    /// Takes a job, or returns it if this endpoint has too many under way.
    pub(crate) fn submit(&mut self, job: J) -> Result<(), J> {
        if self.under_way >= self.shared.options.queue {
            return Err(job);
        }
        let wake = {
            let mut queue = locked(&self.shared.queue);
            if queue.stop {
                return Err(job);
            }
            queue.jobs.push_back((job, Arc::clone(&self.finished)));
            self.shared
                .waiting
                .store(queue.jobs.len(), Ordering::Release);
            queue.sleepers > 0
        };
        self.under_way += 1;
        if wake {
            self.shared.wake.notify_one();
        }
        Ok(())
    }

    /// Takes a job of this endpoint that has run.
    #[inline]
    pub(crate) fn poll(&mut self) -> Option<J> {
        if self.finished.len.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let mut jobs = locked(&self.finished.jobs);
        let job = jobs.pop_front()?;
        self.finished.len.store(jobs.len(), Ordering::Release);
        self.under_way -= 1;
        Some(job)
    }
}

impl Workers for PoolHandle<Job> {
    fn submit(&mut self, job: Job) -> Result<(), Job> {
        PoolHandle::submit(self, job)
    }

    fn poll(&mut self) -> Option<Job> {
        PoolHandle::poll(self)
    }
}

impl<J: Run> Shared<J> {
    /// The main loop of a worker thread.
    fn work(&self) {
        while let Some((mut job, finished)) = self.next() {
            job.run();
            let mut jobs = locked(&finished.jobs);
            jobs.push_back(job);
            finished.len.store(jobs.len(), Ordering::Release);
            drop(jobs);
            finished.doorbell.ring();
        }
    }

    /// Waits for the next job; `None`: the pool ends.
    fn next(&self) -> Option<(J, Arc<Finished<J>>)> {
        self.look_for_work();
        let mut queue = locked(&self.queue);
        loop {
            if queue.stop {
                return None;
            }
            if let Some(job) = queue.jobs.pop_front() {
                self.waiting.store(queue.jobs.len(), Ordering::Release);
                return Some(job);
            }
            queue.sleepers += 1;
            queue = self
                .wake
                .wait(queue)
                .unwrap_or_else(PoisonError::into_inner);
            queue.sleepers -= 1;
        }
    }

    /// Spins until there seems to be a job, for a limited time.
    fn look_for_work(&self) {
        let start = Instant::now();
        while self.waiting.load(Ordering::Relaxed) == 0 && start.elapsed() < self.options.spin {
            std::hint::spin_loop();
        }
    }
}

/// Locks even if another thread has panicked: the protected state is consistent at all times.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
