//! A running server: its threads, and how all of them end.

use std::net::SocketAddr;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use dunlin_nexus::{EndpointBuilder, Nexus};
use dunlin_transport::auto::Auto;
use dunlin_wire::control::{EndpointIndex, Serving};

use crate::error::ServeError;
use crate::health::Health;
use crate::own::{Answers, OwnEndpoint};
use crate::phase::Phase;
#[cfg(feature = "reflect")]
use crate::reflection::{Converter, Reflection};
use crate::thread::{Make, Report, Vitals};

/// Changes the options of an endpoint.
pub(crate) type Endpoint = dyn Fn(EndpointBuilder<Auto>) -> EndpointBuilder<Auto> + Send + Sync;

/// A running server. Dropping it ends it immediately, without a drain.
#[derive(Debug)]
#[must_use = "dropping it ends the server"]
pub struct Running {
    threads: Vec<JoinHandle<Report>>,
    /// The facts by which the health of the threads is judged, until its endpoint takes them.
    vitals: Vec<Vitals>,
    /// The index of the server's own endpoint. `None`: it answers no questions.
    health: Option<EndpointIndex>,
    own: Option<OwnEndpoint>,
    phase: Arc<Phase>,
    times: Times,
    /// Dropped last: the nexus says goodbye after the endpoints have ended.
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
    /// Requests that came after the drain began, and were refused before they reached a handler.
    pub refused: u64,
    /// Requests whose handlers were cut off by the time limit.
    pub cut_off: u64,
}

impl Running {
    pub(crate) fn new(nexus: Nexus, times: Times) -> Self {
        Self {
            threads: Vec::new(),
            vitals: Vec::new(),
            health: None,
            own: None,
            phase: Arc::default(),
            times,
            nexus,
        }
    }

    /// The address at which the server listens.
    pub fn address(&self) -> SocketAddr {
        self.nexus.address()
    }

    /// The server's nexus.
    pub const fn nexus(&self) -> &Nexus {
        &self.nexus
    }

    /// Shuts the server down cleanly. From now on, it answers questions about its health with "not
    /// serving", but it goes on serving for the delay of
    /// [`drain_delay`](crate::ServerBuilder::drain_delay). Then clients learn that it drains; new
    /// requests are refused before they reach a handler; and handlers finish the requests that they
    /// have. Returns when the last session of a client has ended, or after the time-out.
    pub fn drain(mut self) -> Drained {
        self.phase.leave();
        std::thread::sleep(self.times.delay);
        self.announce(true);
        // No clock shows the end of a time-out such as `Duration::MAX`.
        self.phase
            .drain(Instant::now().checked_add(self.times.timeout));
        // If a thread has panicked, the others are joined first, so that none outlives the server.
        let ended: Vec<_> = self.threads.drain(..).map(JoinHandle::join).collect();
        let mut drained = Drained::default();
        for thread in ended {
            match thread {
                Ok(report) => drained.add(report),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        drained
    }

    /// Starts one more thread, and waits until it serves. `longest`: the length of the longest
    /// message that a service takes, if that is limited.
    pub(crate) fn spawn(
        &mut self,
        make: &Arc<Make>,
        endpoint: &Arc<Endpoint>,
        longest: Option<usize>,
    ) -> Result<(), ServeError> {
        let index = self.threads.len();
        let (nexus, phase) = (self.nexus.clone(), Arc::clone(&self.phase));
        let (make, endpoint) = (Arc::clone(make), Arc::clone(endpoint));
        let (report, started) = mpsc::sync_channel(1);
        let thread = move || {
            let number = u16::try_from(index).unwrap_or(u16::MAX);
            let builder = endpoint(nexus.endpoint_builder().index(number));
            // The endpoint's builder has its own handle of the nexus, so the thread needs no other
            // handle.
            drop((endpoint, nexus));
            let made = receives(builder, longest)
                .and_then(|builder| make(index, builder).map_err(ServeError::Endpoint));
            let made = made.and_then(|mut seat| match seat.mistake() {
                Some(mistake) => Err(mistake),
                None => Ok(seat),
            });
            drop(make);
            // `spawn` waits for this report.
            match made {
                Ok(mut seat) => {
                    let _ = report.send(Ok(seat.vitals()));
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
        let vitals = started.recv().unwrap_or(Err(ServeError::Panicked))?;
        self.vitals.push(vitals);
        Ok(())
    }

    /// Announces the server to its clients, once all other threads have started, and starts its own
    /// endpoint, unless that has nothing to answer. A thread that makes no turn for longer than
    /// `stuck` makes the server unhealthy; without that time, health is off.
    pub(crate) fn answer_questions(
        &mut self,
        stuck: Option<Duration>,
        endpoint: &Arc<Endpoint>,
        #[cfg(feature = "reflect")] reflect: bool,
    ) -> Result<(), ServeError> {
        let vitals = std::mem::take(&mut self.vitals);
        #[cfg(feature = "reflect")]
        let reflection = match reflect {
            true => {
                let converter = Converter::start(Reflection::of(&vitals)?);
                Some(converter.map_err(ServeError::Thread)?)
            }
            false => None,
        };
        let answers = Answers {
            health: stuck.map(|stuck| Health::of(vitals, Arc::clone(&self.phase), stuck)),
            #[cfg(feature = "reflect")]
            reflection,
        };
        let own = EndpointIndex(self.endpoints());
        self.health = answers.are_some().then_some(own);
        // Announced before the endpoint exists: without an announcement, a client that asks for any
        // endpoint may get each one that exists.
        self.announce(false);
        if answers.are_some() {
            let builder = endpoint(self.nexus.endpoint_builder().index(own.0));
            let phase = Arc::clone(&self.phase);
            self.own = Some(OwnEndpoint::start(builder, answers, phase)?);
        }
        Ok(())
    }

    /// Tells clients which endpoints serve, none if `draining`, and which one is the server's own.
    fn announce(&self, draining: bool) {
        self.nexus.serve(Serving {
            draining,
            endpoints: if draining { 0 } else { self.endpoints() },
            health: self.health,
        });
    }

    fn endpoints(&self) -> u16 {
        u16::try_from(self.threads.len()).unwrap_or(u16::MAX)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.phase.end();
        for thread in self.threads.drain(..) {
            // Whether the thread has panicked does not matter: it has ended.
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

/// The same builder, if its endpoint can receive the longest message that a service takes.
fn receives(
    builder: EndpointBuilder<Auto>,
    longest: Option<usize>,
) -> Result<EndpointBuilder<Auto>, ServeError> {
    let mut endpoint = 0;
    let builder = builder.config(|config| endpoint = config.max_message);
    match longest.filter(|longest| *longest > endpoint as usize) {
        Some(service) => Err(ServeError::MaxMessage { service, endpoint }),
        None => Ok(builder),
    }
}
