//! The thread for a server's disk, and the loop of the server's endpoint. The loop never waits for
//! the disk: it passes a job to the thread, continues to serve, and takes the outcome when there is
//! one.

use std::io;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::task::Waker;
use std::thread::{self, JoinHandle};

use dunlin_core::Nanos;
use dunlin_nexus::{Open, Rpc};

use crate::desk::perform;
use crate::disk::{Disk, Job, Outcome};
use crate::machine::Ending;
use crate::service::Host;

/// The loop reads the clock in each iteration without packets, and in each iteration whose number
/// has none of these bits.
const CLOCK_MASK: u32 = 63;

/// The thread for a server's disk.
///
/// ```
/// use dunlin_nexus::{Nexus, Rpc};
/// use dunlin_sequencer::{
///     ClientOptions, Connection, Desk, Files, Keeper, Options, Taking, serve, take_directory,
/// };
/// use dunlin_transport::shm::Shm;
/// # use std::sync::atomic::{AtomicBool, Ordering};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = std::env::temp_dir().join(format!("dunlin-keeper-{}", std::process::id()));
/// let nexus = Nexus::bind("127.0.0.1:0")?;
/// let address = nexus.address();
/// # let stop = std::sync::Arc::new(AtomicBool::new(false));
/// # let (stopped, server_nexus, path) = (stop.clone(), nexus.clone(), folder.clone());
/// let server = std::thread::spawn(move || {
///     let options = Options::DEFAULT;
///     let mut files = Files::open(&path).unwrap();
///     let claim = take_directory(&mut files, Taking::Free, &options, std::process::id()).unwrap();
/// #   let nexus = server_nexus;
///     let builder = nexus.endpoint_builder::<Shm>();
///     let mut rpc: Rpc<Shm, Desk> = builder.build(Desk::new(claim, options)).unwrap();
///     serve(&mut rpc);
///     let keeper = Keeper::start(files, rpc.waker()).unwrap();
///     keeper.drive(&mut rpc, || stopped.load(Ordering::Relaxed))
/// });
///
/// let endpoint = nexus.endpoint_builder::<Shm>().index(9);
/// let options = ClientOptions { create: true, ..ClientOptions::DEFAULT };
/// let mut orders = Connection::open(endpoint, &[address], "orders".parse()?, options)?;
/// let first = orders.take(1)?.start;
/// assert_eq!(orders.take(10)?, first + 1..first + 11);
/// # stop.store(true, Ordering::Relaxed);
/// # server.join().unwrap();
/// # std::fs::remove_dir_all(folder)?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Keeper {
    /// `None` only while the keeper ends.
    jobs: Option<Sender<Job>>,
    outcomes: Receiver<Outcome>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    /// Starts the thread. `waker` wakes the server's endpoint.
    ///
    /// # Errors
    /// The system cannot start a thread.
    pub fn start(mut disk: impl Disk + Send + 'static, waker: Waker) -> io::Result<Self> {
        let (jobs, work) = channel::<Job>();
        let (done, outcomes) = channel();
        let builder = thread::Builder::new().name("dunlin-disk".to_owned());
        let thread = builder.spawn(move || {
            for job in work {
                let outcome = perform(&mut disk, &job);
                if done.send(outcome).is_err() {
                    return;
                }
                waker.wake_by_ref();
            }
        })?;
        Ok(Self {
            jobs: Some(jobs),
            outcomes,
            thread: Some(thread),
        })
    }

    /// Serves until `is_stopped` returns true and the last state is on the disk, or until the
    /// server must give no more numbers. Returns the reason.
    pub fn drive<T: Open, App: Host>(
        mut self,
        rpc: &mut Rpc<T, App>,
        mut is_stopped: impl FnMut() -> bool,
    ) -> Ending {
        let (mut turns, mut is_under, mut is_stopping) = (0_u32, false, false);
        loop {
            let due = rpc.app_mut().desk().next_job_at();
            let progress = rpc.iterate(|_| due);
            turns = turns.wrapping_add(1);
            if !is_stopping && is_stopped() {
                is_stopping = true;
                let (app, mut cx) = rpc.with();
                app.desk().stop(&mut cx);
            }
            let due = rpc.app_mut().desk().next_job_at();
            let reads_clock = progress.frames == 0 || turns & CLOCK_MASK == 0;
            if due == Nanos::ZERO || (reads_clock && due <= rpc.now()) {
                is_under |= self.pass_job(rpc);
            }
            if is_under {
                is_under = !self.take_outcome(rpc);
            }
            if let Some(ending) = ended(rpc) {
                return ending;
            }
        }
    }

    /// Passes the next job to the thread, if there is one.
    fn pass_job<T: Open, App: Host>(&mut self, rpc: &mut Rpc<T, App>) -> bool {
        let now = rpc.now();
        let Some(job) = rpc.app_mut().desk().next_job(now) else {
            return false;
        };
        // If the thread has panicked, this fails, and `take_outcome` reports the loss.
        let _ = self.jobs.as_ref().map(|jobs| jobs.send(job));
        true
    }

    /// Takes the outcome of the job in progress, if there is one.
    fn take_outcome<T: Open, App: Host>(&mut self, rpc: &mut Rpc<T, App>) -> bool {
        let outcome = match self.outcomes.try_recv() {
            Ok(outcome) => outcome,
            Err(TryRecvError::Empty) => return false,
            Err(TryRecvError::Disconnected) => Outcome::lost(),
        };
        let (app, mut cx) = rpc.with();
        app.desk().on_outcome(outcome, &mut cx);
        true
    }
}

/// The reason why the server has ended, after its last answers have left.
fn ended<T: Open, App: Host>(rpc: &mut Rpc<T, App>) -> Option<Ending> {
    rpc.app_mut().desk().ending()?;
    rpc.iterate(|_| Nanos::ZERO);
    rpc.app_mut().desk().take_ending()
}

impl Drop for Keeper {
    fn drop(&mut self) {
        drop(self.jobs.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has already ended the server.
            let _ = thread.join();
        }
    }
}
