//! Makes an endpoint: takes its options, and gives it a place in the nexus. Called by the user's
//! program, through [`Nexus::endpoint_builder`].

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use dunlin_control::Event;
use dunlin_core::{Config, Endpoint as Engine, EndpointNum, Workers};
use dunlin_insight::Whereabouts;
use dunlin_insight::writer::Page;
use dunlin_wire::control::{EndpointIndex, EndpointUid};

use super::Rpc;
use super::handshakes::Handshakes;
use crate::clock::TscClock;
use crate::error::EndpointError;
use crate::ffi;
use crate::idle::{Idle, Sleeper};
use crate::mailbox::{Mailbox, Request};
use crate::nexus::{Nexus, random};
use crate::publisher::{OwnFn, Publisher};
use crate::pulse::Pulse;
use crate::transports::Open;

/// The options of a new endpoint.
#[derive(Debug)]
pub struct EndpointBuilder<T: Open> {
    nexus: Nexus,
    index: Option<u16>,
    idle: Idle,
    config: Config,
    transport: T::Options,
}

impl Nexus {
    /// Makes an endpoint with default options, for the thread that calls `run_once` on it.
    ///
    /// # Errors
    /// See [`EndpointError`].
    pub fn endpoint<T: Open, App>(&self, app: App) -> Result<Rpc<T, App>, EndpointError> {
        self.endpoint_builder().build(app)
    }

    /// Begins an endpoint with options.
    pub fn endpoint_builder<T: Open>(&self) -> EndpointBuilder<T> {
        EndpointBuilder::new(self.clone())
    }
}

impl<T: Open> EndpointBuilder<T> {
    pub(crate) fn new(nexus: Nexus) -> Self {
        let config = Config {
            failure_timeout: nexus.failure_timeout(),
            ..Config::default()
        };
        let transport = T::defaults(nexus.reach());
        Self {
            nexus,
            index: None,
            idle: Idle::default(),
            config,
            transport,
        }
    }

    /// Sets the endpoint's index in its nexus, by which others connect to it. The default is the
    /// lowest free one.
    #[must_use]
    pub const fn index(mut self, index: u16) -> Self {
        self.index = Some(index);
        self
    }

    /// Sets how the endpoint's thread waits while it is idle.
    #[must_use]
    pub const fn idle(mut self, idle: Idle) -> Self {
        self.idle = idle;
        self
    }

    /// Changes the options of the endpoint itself.
    #[must_use]
    pub fn config(mut self, change: impl FnOnce(&mut Config)) -> Self {
        change(&mut self.config);
        self
    }

    /// Changes the options of the transport.
    #[must_use]
    pub fn transport(mut self, change: impl FnOnce(&mut T::Options)) -> Self {
        change(&mut self.transport);
        self
    }

    /// Makes the endpoint.
    ///
    /// # Errors
    /// See [`EndpointError`].
    pub fn build<App>(self, app: App) -> Result<Rpc<T, App>, EndpointError> {
        self.config.check()?;
        let halves = T::open_halves(self.transport).map_err(EndpointError::Transport)?;
        let events = Arc::new(Mailbox::new()?);
        let mut fds = Vec::new();
        T::fds(&halves.rx, &halves.tx, &mut fds);
        let idle = self.idle.at_least(T::least_spin(&halves.rx));
        let sleeper = Sleeper::new(idle, Arc::clone(&events.doorbell), &fds)?;
        let workers = self.nexus.pool().handle(Arc::clone(&events.doorbell));
        let workers = workers.map(|handle| Box::new(handle) as Box<dyn Workers>);
        let seed = random()?;
        let index = register(&self.nexus, self.index, &events)?;
        // Takes the number last, because a process has only 2^24 numbers, and uses each only once.
        let made = EndpointNum::take_for(|number| {
            let clock = TscClock::new();
            Engine::new(app, clock, halves, self.config, seed, workers, number)
        });
        let made = made.map_or(Err(EndpointError::NumbersUsedUp), |made| Ok(made?));
        let mut engine = made.inspect_err(|_| {
            self.nexus.requests().send(Request::Remove(index));
        })?;
        engine.set_waker(Arc::clone(&events.doorbell).into());
        let mut publisher = Publisher::new(self.nexus.page().and_then(Page::block));
        let own: OwnFn<App> = |_, _| {};
        publisher.publish(&mut engine, index.0, own, |_| Whereabouts::default());
        let pulse = Pulse::new(engine.now());
        Ok(Rpc {
            engine,
            sleeper,
            events,
            requests: Arc::clone(self.nexus.requests()),
            handshakes: Handshakes::new(index),
            index,
            serving: |_, _, _| {},
            failed: |_, _, _| {},
            services: Vec::new(),
            facts: Vec::new(),
            publisher,
            own,
            pulse,
            nexus: self.nexus,
        })
    }
}

/// Adds the endpoint to the control thread.
fn register(
    nexus: &Nexus,
    index: Option<u16>,
    events: &Arc<Mailbox<Event<OwnedFd>>>,
) -> Result<EndpointIndex, EndpointError> {
    let (answer, added) = sync_channel(1);
    nexus.requests().send(Request::Add {
        index: index.map(EndpointIndex),
        uid: EndpointUid(ffi::random_bytes()?),
        events: Arc::clone(events),
        answer,
    });
    // The control thread answers quickly; if it has panicked, no answer comes.
    let added = added.recv_timeout(Duration::from_secs(10));
    Ok(added.map_err(|_| EndpointError::NexusGone)??)
}
