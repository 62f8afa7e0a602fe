//! The processors and priorities of an experiment's busy threads. Each thread has a processor of
//! its own and may have priority over all ordinary threads, so that other work on the machine
//! disturbs it little.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::{Deserialize, Serialize};

use crate::sys;

/// Whether [`use_realtime`] was called. A program calls it before its first measurement.
static REALTIME: AtomicBool = AtomicBool::new(false);

/// A thread's processor and priority.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Seat {
    /// The processor to run on. With `None`, the system chooses.
    pub cpu: Option<usize>,
    /// True to run before all ordinary threads.
    pub first: bool,
}

/// The seats of client and server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seats {
    /// The seat of the process that measures.
    pub client: Seat,
    /// The seat of the process that serves it.
    pub server: Seat,
}

/// From now on, [`Seats::pick`] gives seats whose threads run before all ordinary threads.
pub fn use_realtime() {
    REALTIME.store(true, Ordering::Relaxed);
}

/// Priority of threads that spin.
const SPINNING: u8 = 1;

/// Priority of threads that mostly sleep and for which spinning threads wait. It is the higher one:
/// otherwise the sleeping threads would not run at all.
const SLEEPING: u8 = 2;

impl Seat {
    /// Puts the calling thread on this seat.
    ///
    /// # Errors
    /// There is no such processor, or this process may not use it. Or the seat has priority over
    /// ordinary threads, and this process is not root's.
    pub fn take(self) -> io::Result<()> {
        self.cpu.map_or(Ok(()), sys::pin_to)?;
        self.go(SPINNING)
    }

    /// Gives the calling thread the priority of threads that mostly sleep. Threads that it starts
    /// before it takes its own seat keep this priority, and so run before it.
    ///
    /// # Errors
    /// The seat has priority over ordinary threads, and this process is not root's.
    pub fn prepare(self) -> io::Result<()> {
        self.go(SLEEPING)
    }

    /// Makes the calling thread an ordinary one again.
    ///
    /// # Errors
    /// The system refuses.
    pub fn step_back(self) -> io::Result<()> {
        self.go(0)
    }

    fn go(self, priority: u8) -> io::Result<()> {
        if self.first {
            sys::set_priority(priority)?;
        }
        Ok(())
    }
}

impl Seats {
    /// The first processor for the client, the second for the server. If there is only one, neither
    /// is fixed, because two spinning processes on it would wait for their time slices.
    pub fn pick() -> Self {
        let first = REALTIME.load(Ordering::Relaxed);
        let on = |cpu: &usize| Seat {
            cpu: Some(*cpu),
            first,
        };
        match sys::allowed_cpus().as_deref() {
            Ok([client, server, ..]) => Self {
                client: on(client),
                server: on(server),
            },
            _ => Self {
                client: Seat::default(),
                server: Seat::default(),
            },
        }
    }

    /// The same priority, on any processor: for threads that mostly sleep.
    pub fn anywhere(self) -> Self {
        let anywhere = |seat| Seat { cpu: None, ..seat };
        Self {
            client: anywhere(self.client),
            server: anywhere(self.server),
        }
    }
}
