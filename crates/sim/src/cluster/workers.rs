//! Worker threads in virtual time: a job runs some time after it was submitted (design §13).
//!
//! Invariant: a job runs once, when its time has come and the endpoint polls. Called by the
//! endpoint through [`Workers`], and by `node`, which sets the time.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dunlin_core::{Job, Nanos, Workers};

use crate::world::rng::Rng;

/// The workers of one endpoint. Clones share them.
#[derive(Clone, Debug)]
pub(super) struct SimWorkers(Arc<Inner>);

/// The times are outside the lock, because every iteration reads them.
#[derive(Debug)]
struct Inner {
    now_ns: AtomicU64,
    next_end_ns: AtomicU64,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    rng: Rng,
    /// Jobs that may wait or run.
    capacity: usize,
    /// Longest time from the submission of a job to its end.
    slowest: Nanos,
    /// The jobs, in order of their ends.
    jobs: VecDeque<(Nanos, Job)>,
}

impl SimWorkers {
    /// Workers with room for `capacity` jobs that take up to `slowest`.
    pub(super) fn new(rng: Rng, capacity: usize, slowest: Nanos) -> Self {
        let state = State {
            rng,
            capacity,
            slowest,
            jobs: VecDeque::new(),
        };
        Self(Arc::new(Inner {
            now_ns: AtomicU64::new(0),
            next_end_ns: AtomicU64::new(u64::MAX),
            state: Mutex::new(state),
        }))
    }

    /// Sets the time, and returns when the next job ends.
    pub(super) fn advance(&self, now: Nanos) -> Nanos {
        self.0.now_ns.store(now.0, Relaxed);
        Nanos(self.0.next_end_ns.load(Relaxed))
    }

    fn now(&self) -> Nanos {
        Nanos(self.0.now_ns.load(Relaxed))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Handlers run without the lock, so that a panic cannot leave half a change.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn next_end_ns(&self) -> u64 {
        self.jobs.front().map_or(u64::MAX, |(end, _)| end.0)
    }
}

impl Workers for SimWorkers {
    fn submit(&mut self, job: Job) -> Result<(), Job> {
        let mut state = self.lock();
        if state.jobs.len() >= state.capacity {
            return Err(job);
        }
        let slowest = state.slowest.0;
        let end = self.now() + Nanos(state.rng.log_between(500, slowest));
        let at = state.jobs.partition_point(|(other, _)| *other <= end);
        state.jobs.insert(at, (end, job));
        self.0.next_end_ns.store(state.next_end_ns(), Relaxed);
        Ok(())
    }

    fn poll(&mut self) -> Option<Job> {
        if self.0.next_end_ns.load(Relaxed) > self.now().0 {
            return None;
        }
        let mut state = self.lock();
        let (_, mut job) = state.jobs.pop_front()?;
        self.0.next_end_ns.store(state.next_end_ns(), Relaxed);
        drop(state);
        job.run();
        Some(job)
    }
}
