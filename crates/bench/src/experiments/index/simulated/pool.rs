//! Worker threads that all dispatch threads of a simulated server share. Each takes the oldest job,
//! which costs it the time of a scan.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dunlin_core::{Job, Nanos, Workers};

/// The workers of a server.
#[derive(Clone, Debug)]
pub(super) struct Pool {
    /// When each worker has done all its jobs.
    idle_from: Arc<Mutex<Vec<Nanos>>>,
    cost: Nanos,
}

impl Pool {
    pub(super) fn new(workers: usize, cost: Nanos) -> Self {
        Self {
            idle_from: Arc::new(Mutex::new(vec![Nanos::ZERO; workers])),
            cost,
        }
    }

    /// Gives a worker a job now, and returns when the job will be done.
    fn take(&self, now: Nanos) -> Nanos {
        let mut idle_from = lock(&self.idle_from);
        let first = idle_from.iter_mut().min().expect("there are workers");
        *first = now.max(*first) + self.cost;
        *first
    }
}

/// The jobs of one dispatch thread. Clones share them.
#[derive(Clone, Debug)]
pub(super) struct Jobs {
    pool: Pool,
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    now: Nanos,
    /// The jobs, each with the time at which it is done; the earliest comes first.
    jobs: VecDeque<(Nanos, Job)>,
}

impl Jobs {
    pub(super) fn new(pool: Pool) -> Self {
        let state = State {
            now: Nanos::ZERO,
            jobs: VecDeque::new(),
        };
        Self {
            pool,
            state: Arc::new(Mutex::new(state)),
        }
    }

    /// Sets the time, and returns when the next job is done.
    pub(super) fn advance(&self, now: Nanos) -> Nanos {
        let mut state = lock(&self.state);
        state.now = now;
        state.jobs.front().map_or(Nanos::MAX, |(end, _)| *end)
    }
}

impl Workers for Jobs {
    fn submit(&mut self, job: Job) -> Result<(), Job> {
        let mut state = lock(&self.state);
        let end = self.pool.take(state.now);
        let at = state.jobs.partition_point(|(other, _)| *other <= end);
        state.jobs.insert(at, (end, job));
        Ok(())
    }

    fn poll(&mut self) -> Option<Job> {
        let mut state = lock(&self.state);
        let now = state.now;
        let (_, mut job) = state.jobs.pop_front_if(|(end, _)| *end <= now)?;
        drop(state);
        job.run();
        Some(job)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No handler runs while the lock is held, so a panic cannot leave the data half changed.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
