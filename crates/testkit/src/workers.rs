//! Workers of an endpoint that run a job only when the test asks for it.

use std::sync::{Arc, Mutex, MutexGuard};

use dunlin_core::{Job, Workers};

/// A handle to the workers; clones share the queue of jobs.
#[derive(Clone)]
pub struct StepWorkers(Arc<Mutex<Queue>>);

struct Queue {
    waiting: Vec<Job>,
    ran: Vec<Job>,
    limit: usize,
    submitted: u64,
}

impl StepWorkers {
    /// Workers that refuse a job while `limit` others wait.
    pub fn new(limit: usize) -> Self {
        Self(Arc::new(Mutex::new(Queue {
            waiting: Vec::new(),
            ran: Vec::new(),
            limit,
            submitted: 0,
        })))
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.0.lock().expect("no job panics")
    }

    /// Jobs that wait.
    pub fn waiting(&self) -> usize {
        self.queue().waiting.len()
    }

    /// Jobs that were submitted and not refused.
    pub fn submitted(&self) -> u64 {
        self.queue().submitted
    }

    /// True if no job waits or is on its way back to the endpoint.
    pub fn is_idle(&self) -> bool {
        let queue = self.queue();
        queue.waiting.is_empty() && queue.ran.is_empty()
    }

    /// Runs one of the waiting jobs, if there are any.
    pub fn run(&self, which: usize) {
        let mut queue = self.queue();
        if queue.waiting.is_empty() {
            return;
        }
        let at = which % queue.waiting.len();
        let mut job = queue.waiting.swap_remove(at);
        job.run();
        queue.ran.push(job);
    }

    /// Runs all waiting jobs.
    pub fn run_all(&self) {
        let mut queue = self.queue();
        let mut jobs = std::mem::take(&mut queue.waiting);
        jobs.iter_mut().for_each(Job::run);
        queue.ran.extend(jobs);
    }
}

impl std::fmt::Debug for StepWorkers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StepWorkers")
    }
}

impl Workers for StepWorkers {
    fn submit(&mut self, job: Job) -> Result<(), Job> {
        let mut queue = self.queue();
        if queue.waiting.len() >= queue.limit {
            return Err(job);
        }
        queue.waiting.push(job);
        queue.submitted += 1;
        Ok(())
    }

    fn poll(&mut self) -> Option<Job> {
        self.queue().ran.pop()
    }
}
