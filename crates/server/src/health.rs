//! The endpoint that answers questions about the server's health (rule C15). Its thread runs no
//! service, so it answers even if all other threads are stuck.

mod ask;

use std::sync::Arc;
use std::task::Waker;
use std::thread::JoinHandle;
use std::time::Duration;
use std::{fmt, sync::mpsc};

use dunlin_core::{Cx, Nanos, Request};
use dunlin_nexus::{EndpointBuilder, Idle};
use dunlin_transport::auto::Auto;
use dunlin_wire::control::EndpointIndex;
use dunlin_wire::{HEALTH, HealthAnswer, HealthStatus, MAX_HEALTH_ANSWER};

use crate::error::ServeError;
use crate::phase::Phase;
use crate::thread::Vitals;

pub use ask::{HealthError, HealthState, ask_health};

/// Questions are rare, so the thread blocks at once when there is none.
const IDLE: Idle = Idle::Adaptive {
    spin: Duration::ZERO,
};

/// The thread of the endpoint. Dropping this waits for the thread, which ends with the server's
/// last phase.
#[derive(Debug)]
pub(crate) struct Health {
    index: EndpointIndex,
    waker: Waker,
    thread: Option<JoinHandle<()>>,
}

/// The facts from which the endpoint makes its answers.
struct Facts {
    threads: Vec<Vitals>,
    phase: Arc<Phase>,
    stuck: Nanos,
}

impl Health {
    /// Starts the thread, and waits until its endpoint answers.
    pub(crate) fn start(
        index: EndpointIndex,
        builder: EndpointBuilder<Auto>,
        threads: Vec<Vitals>,
        phase: Arc<Phase>,
        stuck: Duration,
    ) -> Result<Self, ServeError> {
        let facts = Facts {
            threads,
            phase,
            stuck: stuck.into(),
        };
        let (report, started) = mpsc::sync_channel(1);
        let run = move || match own(builder).build(facts) {
            Ok(mut rpc) => {
                rpc.on(HEALTH, answer);
                let _ = report.send(Ok(rpc.waker()));
                rpc.run_until(|rpc| rpc.app().phase.has_ended());
            }
            Err(error) => drop(report.send(Err(ServeError::Endpoint(error)))),
        };
        let thread = std::thread::Builder::new().name("dunlin-health".into());
        let thread = thread.spawn(run).map_err(ServeError::Thread)?;
        Ok(Self {
            index,
            waker: started.recv().unwrap_or(Err(ServeError::Panicked))?,
            thread: Some(thread),
        })
    }

    /// The endpoint's index.
    pub(crate) const fn index(&self) -> EndpointIndex {
        self.index
    }
}

impl Drop for Health {
    fn drop(&mut self) {
        self.waker.wake_by_ref();
        if let Some(thread) = self.thread.take() {
            // Whether the thread has panicked does not matter: it has ended.
            let _ = thread.join();
        }
    }
}

impl Facts {
    fn has_service(&self, name: &str) -> bool {
        name.is_empty() || self.services().any(|service| service == name)
    }

    fn services(&self) -> impl Iterator<Item = &'static str> {
        let threads = self.threads.iter();
        threads.flat_map(|thread| thread.services.iter().copied())
    }

    /// The first thread that is stuck, and the time since its last turn.
    fn stuck(&self, now: Nanos) -> Option<(usize, Nanos)> {
        let quiet = self.threads.iter().map(|it| it.pulse.quiet_for(now));
        quiet.enumerate().find(|(_, quiet)| *quiet > self.stuck)
    }

    fn judge(&self, service: &str, now: Nanos) -> (HealthStatus, String) {
        if !self.has_service(service) {
            let mut names: Vec<_> = self.services().collect();
            names.sort_unstable();
            names.dedup();
            return (HealthStatus::NoSuchService, services_are(&names));
        }
        if self.phase.is_leaving() {
            return (HealthStatus::NotServing, "the server shuts down".to_owned());
        }
        match self.stuck(now) {
            None => (HealthStatus::Serving, String::new()),
            Some((thread, quiet)) => {
                let quiet = Duration::from(quiet).as_secs_f64();
                let reason = format!("thread {thread} has made no turn for {quiet:.1} s");
                (HealthStatus::NotServing, reason)
            }
        }
    }
}

impl fmt::Debug for Facts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Facts")
            .field("threads", &self.threads)
            .finish_non_exhaustive()
    }
}

/// Changes the options of the server's endpoints for this one: it blocks at once when it is idle,
/// and takes any UDP port, because an endpoint with a service may have the port of the options.
fn own(builder: EndpointBuilder<Auto>) -> EndpointBuilder<Auto> {
    builder.idle(IDLE).transport(|options| options.udp.port = 0)
}

fn services_are(names: &[&str]) -> String {
    match names {
        [] => "the server has no service with a name".to_owned(),
        names => format!("its services are {}", names.join(", ")),
    }
}

fn answer(facts: &mut Facts, request: Request<'_>, cx: &mut Cx<'_>) {
    // No service has a name that is not UTF-8, or this one.
    let name = std::str::from_utf8(request.data()).unwrap_or("\u{FFFD}");
    let (status, reason) = facts.judge(name, cx.now());
    let mut bytes = [0; MAX_HEALTH_ANSWER];
    let reason = &reason;
    let len = HealthAnswer { status, reason }.encode(&mut bytes);
    request.reply_bytes(cx, &bytes[..len]);
}
