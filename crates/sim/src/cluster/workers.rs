//! Worker threads in virtual time: a job runs some time after it was handed over (design §13).
//!
//! Invariant: a job runs once, when its time has come and the endpoint asks. Called by the
//! endpoint through [`Workers`], and by `node`, which sets the time.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dunlin_core::{Job, Nanos, Workers};

use crate::rng::Rng;

/// The workers of one endpoint. Clones are the same workers.
#[derive(Clone, Debug)]
pub(super) struct SimWorkers(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    now: Nanos,
    rng: Rng,
    /// Jobs that may wait or run.
    capacity: usize,
    /// Longest time from hand-over to end.
    slowest: Nanos,
    /// In order of their ends.
    jobs: VecDeque<(Nanos, Job)>,
}

impl SimWorkers {
    /// Workers with room for `capacity` jobs that take up to `slowest`.
    pub(super) fn new(rng: Rng, capacity: usize, slowest: Nanos) -> Self {
        let jobs = VecDeque::new();
        Self(Arc::new(Mutex::new(State {
            now: Nanos::ZERO,
            rng,
            capacity,
            slowest,
            jobs,
        })))
    }

    /// Sets the time, and says when the next job ends.
    pub(super) fn advance(&self, now: Nanos) -> Nanos {
        let mut state = self.lock();
        state.now = state.now.max(now);
        state.jobs.front().map_or(Nanos::MAX, |(end, _)| *end)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Handlers run without the lock, so that a panic cannot leave half a change.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Workers for SimWorkers {
    fn submit(&mut self, job: Job) -> Result<(), Job> {
        let mut state = self.lock();
        if state.jobs.len() >= state.capacity {
            return Err(job);
        }
        let slowest = state.slowest.0;
        let end = state.now + Nanos(state.rng.log_between(500, slowest));
        let at = state.jobs.partition_point(|(other, _)| *other <= end);
        state.jobs.insert(at, (end, job));
        Ok(())
    }

    fn poll(&mut self) -> Option<Job> {
        let mut state = self.lock();
        if state.jobs.front()?.0 > state.now {
            return None;
        }
        let (_, mut job) = state.jobs.pop_front()?;
        drop(state);
        job.run();
        Some(job)
    }
}
