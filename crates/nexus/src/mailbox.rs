//! The queues between the control thread and the endpoints. Both directions belong to the slow
//! path, so they use a lock. The fast path only checks a doorbell, which costs one relaxed load.
//!
//! The queues have no limit of their own, because the numbers of events and commands are limited.
//! An endpoint gets at most a handful of events for each session that it has or asks for, and for
//! each request that it may leave unanswered or unproven (`PlaneConfig::max_pending_per_endpoint`,
//! `max_unproven`). An endpoint sends at most one command for each of these events, one for the end
//! of each of its sessions, and three for the challenges of a session. All these numbers have
//! limits. In one turn, the control thread takes only the commands that were in the queue when the
//! turn began.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, PoisonError};

use dunlin_control::{AddError, Command, Event, PlaneCounters};
use dunlin_wire::control::{EndpointIndex, EndpointUid, Serving};

use crate::doorbell::Doorbell;

/// A queue that rings its reader's doorbell with each message.
#[derive(Debug)]
pub(crate) struct Mailbox<M> {
    queue: Mutex<VecDeque<M>>,
    pub(crate) doorbell: Arc<Doorbell>,
}

/// A request to the control thread.
#[derive(Debug)]
pub(crate) enum Request {
    /// An endpoint's command for the plane.
    Plane(Command<OwnedFd>),
    /// A new endpoint.
    Add {
        index: Option<EndpointIndex>,
        uid: EndpointUid,
        events: Arc<Mailbox<Event<OwnedFd>>>,
        answer: SyncSender<Result<EndpointIndex, AddError>>,
    },
    /// An endpoint was dropped.
    Remove(EndpointIndex),
    /// The new services of the process. The sender waits until they are announced.
    Serve(Serving, SyncSender<()>),
    /// Asks for the counters.
    Counters(SyncSender<PlaneCounters>),
    /// Ends the control thread.
    Stop,
}

impl<M> Mailbox<M> {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            queue: Mutex::default(),
            doorbell: Arc::new(Doorbell::new()?),
        })
    }

    /// Puts a message in and rings.
    pub(crate) fn send(&self, message: M) {
        self.queue
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push_back(message);
        self.doorbell.ring();
    }

    /// The number of messages.
    pub(crate) fn len(&self) -> usize {
        self.queue
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .len()
    }

    /// Takes the oldest message.
    pub(crate) fn receive(&self) -> Option<M> {
        self.queue
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop_front()
    }
}
