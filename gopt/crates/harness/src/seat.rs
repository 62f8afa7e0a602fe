//! Where the busy threads of an experiment run, and with which priority, so that a noisy machine
//! disturbs them little: each on a processor of its own, and optionally before all other threads.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::{Deserialize, Serialize};

use crate::sys;

/// Whether [`use_realtime`] was called: once, before the first measurement.
static REALTIME: AtomicBool = AtomicBool::new(false);

/// A thread's place.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Seat {
    /// The processor to run on. With `None`, the system chooses.
    pub cpu: Option<usize>,
    /// True to run before all ordinary threads.
    pub first: bool,
}

/// The places of client and server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seats {
    /// The place of the process that measures.
    pub client: Seat,
    /// The place of the process that serves it.
    pub server: Seat,
}

/// Makes [`Seats::pick`] give places before all ordinary threads from now on.
pub fn use_realtime() {
    REALTIME.store(true, Ordering::Relaxed);
}

/// Priority of threads that spin.
const SPINNING: u8 = 1;

/// Priority of threads that mostly sleep and that the spinning ones wait for. It is higher:
/// otherwise they would not run at all.
const SLEEPING: u8 = 2;

impl Seat {
    /// Puts the calling thread on this place.
    ///
    /// # Errors
    /// There is no such processor, or this process may not use it; or the place is before other
    /// threads, and this is not root.
    pub fn take(self) -> io::Result<()> {
        self.cpu.map_or(Ok(()), sys::pin_to)?;
        self.go(SPINNING)
    }

    /// Makes threads that the calling one starts from now on, until it takes its place, run before
    /// it.
    ///
    /// # Errors
    /// Only root may go first.
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

    /// The same place, but on any processor: for threads that mostly sleep.
    pub fn anywhere(self) -> Self {
        let anywhere = |seat| Seat { cpu: None, ..seat };
        Self {
            client: anywhere(self.client),
            server: anywhere(self.server),
        }
    }
}
