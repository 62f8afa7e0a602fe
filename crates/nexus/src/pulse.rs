//! The time of the last turn of an endpoint's thread, in memory that other threads read. The thread
//! writes it when it publishes its counters, ten times a second, and when it blocks or wakes up. So
//! requests cost a busy thread no additional instruction.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dunlin_core::Nanos;

/// The longest time between two writes of a thread that nothing delays.
pub(crate) const LONGEST_QUIET: Nanos = Nanos::from_millis(100);

/// The value while the thread waits for events.
const PARKED: u64 = u64::MAX;

/// Shows other threads whether the thread of an endpoint still runs its event loop. A handler that
/// never returns stops the loop. Clones show the same endpoint.
///
/// ```
/// use dunlin_core::Nanos;
/// use dunlin_nexus::{Nexus, Rpc};
/// use dunlin_transport::shm::Shm;
///
/// let nexus = Nexus::bind("127.0.0.1:0")?;
/// let mut rpc: Rpc<Shm, ()> = nexus.endpoint(())?;
/// let pulse = rpc.pulse();
/// rpc.run_once();
/// let now = rpc.now();
/// assert!(pulse.quiet_for(now) < Nanos::from_secs(1));
/// assert!(pulse.quiet_for(now + Nanos::from_secs(5)) >= Nanos::from_secs(4));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Pulse(Arc<AtomicU64>);

impl Pulse {
    pub(crate) fn new(now: Nanos) -> Self {
        Self(Arc::new(AtomicU64::new(now.0)))
    }

    /// The time since the last turn that the thread has recorded: at most about 0.1 s while nothing
    /// delays the thread, and zero while it waits for events. `now` is the current time of the
    /// clock of any endpoint in this process.
    pub fn quiet_for(&self, now: Nanos) -> Nanos {
        match self.0.load(Ordering::Relaxed) {
            PARKED => Nanos::ZERO,
            turn => now.since(Nanos(turn)),
        }
    }

    /// The thread makes a turn of its event loop.
    pub(crate) fn on_turn(&self, now: Nanos) {
        self.0.store(now.0, Ordering::Relaxed);
    }

    /// The thread is about to wait for events.
    pub(crate) fn on_park(&self) {
        self.0.store(PARKED, Ordering::Relaxed);
    }
}
