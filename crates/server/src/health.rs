//! The answers to questions about the server's health (rule C15), which its own endpoint gives.

mod question;

use std::sync::Arc;
use std::time::Duration;

use dunlin_core::{Cx, Nanos, Request};
use dunlin_wire::{HealthAnswer, HealthStatus, MAX_HEALTH_ANSWER};

use crate::phase::Phase;
use crate::thread::Vitals;

pub use question::{HealthError, HealthState, ask_health};

/// The facts from which the endpoint makes its answers.
#[derive(Debug)]
pub(crate) struct Health {
    threads: Vec<Vitals>,
    phase: Arc<Phase>,
    stuck: Nanos,
}

impl Health {
    /// The health of these threads, one of which is stuck if it makes no turn for longer than
    /// `stuck`.
    pub(crate) fn of(threads: Vec<Vitals>, phase: Arc<Phase>, stuck: Duration) -> Self {
        Self {
            threads,
            phase,
            stuck: stuck.into(),
        }
    }

    /// Answers a question.
    pub(crate) fn answer(&self, request: Request<'_>, cx: &mut Cx<'_>) {
        // A name that is not UTF-8 becomes this one, which no service has.
        let name = std::str::from_utf8(request.data()).unwrap_or("\u{FFFD}");
        let (status, reason) = self.judge(name, cx.now());
        let mut bytes = [0; MAX_HEALTH_ANSWER];
        let reason = &reason;
        let len = HealthAnswer { status, reason }.encode(&mut bytes);
        request.reply_bytes(cx, &bytes[..len]);
    }

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

fn services_are(names: &[&str]) -> String {
    match names {
        [] => "the server has no service with a name".to_owned(),
        names => format!("its services are {}", names.join(", ")),
    }
}
