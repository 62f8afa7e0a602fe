//! A server that runs: its threads, and the end of all of them.

use std::net::SocketAddr;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use dunlin_nexus::{EndpointBuilder, Nexus};
use dunlin_transport::auto::Auto;
use dunlin_wire::control::Serving;

use crate::error::ServeError;
use crate::phase::Phase;
use crate::thread::{Make, Report};

/// Changes the options of an endpoint.
pub(crate) type Endpoint = dyn Fn(EndpointBuilder<Auto>) -> EndpointBuilder<Auto> + Send + Sync;

/// A server that runs. Dropping it ends it at once, without a drain.
#[derive(Debug)]
#[must_use = "dropping it ends the server"]
pub struct Running {
    threads: Vec<JoinHandle<Report>>,
    phase: Arc<Phase>,
    times: Times,
    /// Last: it says goodbye after the endpoints have ended.
    nexus: Nexus,
}

/// The times of a drain.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    pub(crate) delay: Duration,
    pub(crate) timeout: Duration,
}

/// The requests of a drain.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Drained {
    /// Requests that handlers had when the drain began, and have finished.
    pub finished: u64,
    /// Requests that came after it, and were refused before a handler had them.
    pub refused: u64,
    /// Requests whose handlers were cut off by the time limit.
    pub cut_off: u64,
}

impl Running {
    pub(crate) fn new(nexus: Nexus, times: Times) -> Self {
        Self {
            threads: Vec::new(),
            phase: Arc::default(),
            times,
            nexus,
        }
    }

    /// The address at which it listens.
    pub fn address(&self) -> SocketAddr {
        self.nexus.address()
    }

    /// Its nexus.
    pub const fn nexus(&self) -> &Nexus {
        &self.nexus
    }

    /// Ends the server in order. Its clients learn that it drains, new requests are refused before
    /// a handler has them, and those that handlers have are finished. It returns when no client has
    /// a session any more, or after the time-out.
    pub fn drain(mut self) -> Drained {
        std::thread::sleep(self.times.delay);
        self.nexus.serve(Serving {
            draining: true,
            endpoints: 0,
        });
        self.phase.drain(Instant::now() + self.times.timeout);
        let mut drained = Drained::default();
        for thread in self.threads.drain(..) {
            match thread.join() {
                Ok(report) => drained.add(report),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        drained
    }

    /// Starts one more thread, and waits until it serves.
    pub(crate) fn spawn(
        &mut self,
        make: &Arc<Make>,
        endpoint: &Arc<Endpoint>,
    ) -> Result<(), ServeError> {
        let index = self.threads.len();
        let (nexus, phase) = (self.nexus.clone(), Arc::clone(&self.phase));
        let (make, endpoint) = (Arc::clone(make), Arc::clone(endpoint));
        let (report, started) = mpsc::sync_channel(1);
        let thread = move || {
            let number = u16::try_from(index).unwrap_or(u16::MAX);
            let builder = endpoint(nexus.endpoint_builder().index(number));
            // The endpoint has a handle too.
            drop((endpoint, nexus));
            let made = make(index, builder).map_err(ServeError::Endpoint);
            let made = made.and_then(|mut seat| match seat.same_number() {
                Some(number) => Err(ServeError::SameNumber(number)),
                None => Ok(seat),
            });
            drop(make);
            // The starter waits for this.
            match made {
                Ok(mut seat) => {
                    let _ = report.send(Ok(()));
                    seat.run(&phase)
                }
                Err(error) => {
                    let _ = report.send(Err(error));
                    Report::default()
                }
            }
        };
        let name = format!("dunlin-serve-{index}");
        let thread = std::thread::Builder::new().name(name).spawn(thread);
        self.threads.push(thread.map_err(ServeError::Thread)?);
        started.recv().unwrap_or(Err(ServeError::Panicked))
    }

    /// Tells clients which endpoints serve.
    pub(crate) fn announce(&self) {
        self.nexus.serve(Serving {
            draining: false,
            endpoints: u16::try_from(self.threads.len()).unwrap_or(u16::MAX),
        });
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.phase.end();
        for thread in self.threads.drain(..) {
            // It has panicked, or not; it has ended.
            let _ = thread.join();
        }
    }
}

impl Drained {
    fn add(&mut self, report: Report) {
        self.finished += report.begun.saturating_sub(report.left);
        self.refused += report.refused;
        self.cut_off += report.left;
    }
}
