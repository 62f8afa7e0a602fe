//! Whether the machine itself stood still. On each processor a process with priority over all
//! ordinary ones naps, and measures how long each nap takes. No attacker can delay it, so a long
//! nap means that the host of this machine did not run that processor.

use std::time::{Duration, Instant};

use harness::process::{Parent, Process, Role};
use harness::seat::Seat;

use crate::honest::questions;
use crate::words::Ask;

pub(crate) const ROLE: Role = Role::new("watch", run);

/// Length of a nap.
const NAP: Duration = Duration::from_millis(10);

/// The watches of all processors.
pub(crate) struct Watches(Vec<Process>);

impl Watches {
    /// Starts the watches. There are none if this process is not root, because only root may set
    /// such a priority; then no delay is blamed on the machine.
    pub(crate) fn start(patience: Duration) -> Self {
        let processors = std::thread::available_parallelism().map_or(1, Into::into);
        let watch = |cpu| {
            let seat = Seat {
                cpu: Some(cpu),
                first: true,
            };
            let mut process = Process::spawn(ROLE, seat, &())?;
            process.receive::<()>(patience)?;
            anyhow::Ok(process)
        };
        let all: anyhow::Result<Vec<_>> = (0..processors).map(watch).collect();
        Self(all.unwrap_or_default())
    }

    /// The longest nap of all watches since the last call.
    ///
    /// # Errors
    /// A watch has ended.
    pub(crate) fn longest(&mut self, patience: Duration) -> anyhow::Result<Duration> {
        let mut longest = Duration::ZERO;
        for watch in &mut self.0 {
            watch.send(&Ask)?;
            longest = longest.max(watch.receive(patience)?);
        }
        Ok(longest)
    }
}

fn run(parent: &Parent) -> anyhow::Result<()> {
    parent.receive::<()>()?;
    let asked = questions();
    parent.say(&())?;
    let mut longest = Duration::ZERO;
    loop {
        let begun = Instant::now();
        std::thread::sleep(NAP);
        longest = longest.max(begun.elapsed());
        if asked.try_recv().is_ok() {
            parent.say(&std::mem::take(&mut longest))?;
        }
    }
}
