//! The whole control plane of one process: links, routes, endpoints, sessions that are being
//! opened, and open sessions.
//!
//! This file has the tables and the inputs.
//!
//! | file | its subject |
//! |---|---|
//! | `plane/links.rs` | a connection, from its beginning to its end |
//! | `plane/admission.rs` | limits |
//! | `plane/upgrade.rs` | the move of a connection from TCP to a UNIX socket |
//! | `plane/connecting.rs` | sessions that this side asks for |
//! | `plane/accepting.rs` | sessions that the other side asks for, and the end of all sessions |
//! | `plane/inquiries.rs` | questions about unanswered requests |
//! | `plane/proofs.rs` | proofs of addresses |
//! | `plane/serving.rs` | announcements of services |
//! | `plane/sessions.rs` | the table of open sessions |
//!
//! Called by the control thread of `dunlin-nexus` and by the simulator.

mod accepting;
mod admission;
mod connecting;
mod inquiries;
mod links;
mod proofs;
mod serving;
mod sessions;
mod upgrade;

use std::collections::VecDeque;
use std::net::SocketAddr;

use dunlin_core::ordered::{Map, Set};
use dunlin_core::{Nanos, Rng};
use dunlin_wire::control::{
    AttemptId, ControlError, EndpointIndex, EndpointUid, GoodbyeReason, Insight, MAX_FRAME,
    Message, Serving,
};

use super::agenda::Agenda;
use super::attempt::Attempt;
use super::config::{PlaneConfig, PlaneCounters};
use super::link::Link;
use super::places::{Places, Shares};
use super::proofs::Proofs;
use super::route::{Route, RouteId};
use super::secrets::Secrets;
use super::types::{Action, Command, ConnectTicket, Event, Identity, LinkId, SessionKey};
use accepting::Incoming;
use inquiries::Inquiries;
use sessions::Sessions;

/// The control plane of one process. `F` stands for a descriptor.
#[derive(Debug)]
pub struct Plane<F> {
    config: PlaneConfig,
    us: Identity,
    rng: Rng,
    /// The source of numbers that peers must not be able to guess from earlier ones.
    secrets: Secrets,
    counters: PlaneCounters,
    endpoints: Map<EndpointIndex, LocalEndpoint>,
    links: Map<LinkId, Link>,
    /// The connections that other processes have made, each with its place within the limits.
    places: Places,
    /// When each link must be polled.
    link_times: Agenda<LinkId>,
    routes: Map<RouteId, Route>,
    /// When each waiting route must be dialled again.
    route_times: Agenda<RouteId>,
    /// When the plane next looks for unused connections that this side made.
    next_idle_look: Nanos,
    route_to: Map<Vec<SocketAddr>, RouteId>,
    attempts: Map<AttemptId, Attempt>,
    attempt_for: Map<SessionKey, AttemptId>,
    /// Each attempt, with the time at which the plane must look at it.
    due: Set<(Nanos, AttemptId)>,
    tickets: Map<ConnectTicket, Incoming>,
    sessions: Sessions,
    inquiries: Inquiries,
    proofs: Proofs,
    /// The requests whose peers must prove an address, each with its place within the limits.
    unproven: Shares<ConnectTicket>,
    actions: VecDeque<Action<F>>,
    last_id: u64,
    /// Where the search for "any endpoint" begins.
    next_any: EndpointIndex,
    /// The services that this process has announced.
    serving: Option<Serving>,
    #[cfg(feature = "mutants")]
    mutant: Option<crate::mutant::Mutant>,
}

/// An endpoint of this process.
#[derive(Clone, Debug)]
struct LocalEndpoint {
    uid: EndpointUid,
    /// The number of requests for a session that wait for an answer of the endpoint, and not for a
    /// proof.
    pending: usize,
}

/// Why an endpoint cannot be added.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AddError {
    /// Another endpoint of this process has the index, or it is 65535, which stands for any
    /// endpoint.
    Taken(EndpointIndex),
    /// No index is free.
    TooMany,
}

impl std::fmt::Display for AddError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Taken(EndpointIndex::ANY) => {
                f.write_str("the index 65535 stands for any endpoint; choose one from 0 to 65534")
            }
            Self::Taken(index) => write!(f, "another endpoint has the index {}", index.0),
            Self::TooMany => f.write_str("all 65 535 endpoint indexes are in use"),
        }
    }
}

impl std::error::Error for AddError {}

impl<F> Plane<F> {
    /// Makes a plane without endpoints and connections. `seed` determines how retries are spread in
    /// time, and the counters of heartbeats.
    pub fn new(config: PlaneConfig, us: Identity, seed: u64) -> Self {
        Self {
            config,
            us,
            rng: Rng::new(seed),
            secrets: Secrets::new(!seed),
            counters: PlaneCounters::default(),
            endpoints: Map::new(),
            links: Map::new(),
            places: Places::default(),
            link_times: Agenda::default(),
            routes: Map::new(),
            route_times: Agenda::default(),
            next_idle_look: Nanos::ZERO,
            route_to: Map::new(),
            attempts: Map::new(),
            attempt_for: Map::new(),
            due: Set::new(),
            tickets: Map::new(),
            sessions: Sessions::default(),
            inquiries: Inquiries::default(),
            proofs: Proofs::default(),
            unproven: Shares::default(),
            actions: VecDeque::new(),
            last_id: 0,
            next_any: EndpointIndex(0),
            serving: None,
            #[cfg(feature = "mutants")]
            mutant: None,
        }
    }

    /// Switches a planted bug on or off.
    #[cfg(feature = "mutants")]
    pub fn plant(&mut self, mutant: Option<crate::mutant::Mutant>) {
        self.mutant = mutant;
    }

    /// The content of this process's Hello.
    pub const fn identity(&self) -> &Identity {
        &self.us
    }

    /// The counters since the start.
    pub const fn counters(&self) -> &PlaneCounters {
        &self.counters
    }

    /// The number of open sessions.
    pub fn session_count(&self) -> usize {
        self.sessions.len()
    }

    /// Whether a connection has not ended.
    pub fn has_link(&self, link: LinkId) -> bool {
        self.links.contains_key(&link)
    }

    /// Whether a connection has sessions, or is used to make one.
    pub fn carries(&self, link: LinkId) -> bool {
        let link = self.links.get(&link);
        link.is_some_and(|link| link.route.is_some() || !link.is_unused())
    }

    /// The number of connections in any state.
    pub fn link_count(&self) -> usize {
        self.links.len()
    }

    /// Adds an endpoint, so that others can connect to it and it can connect to others. Without an
    /// index it gets the lowest free one.
    ///
    /// # Errors
    /// The index is taken, or none is free.
    pub fn add_endpoint(
        &mut self,
        index: Option<EndpointIndex>,
        uid: EndpointUid,
    ) -> Result<EndpointIndex, AddError> {
        let free = |index: &EndpointIndex| !self.endpoints.contains_key(index);
        let index = match index {
            Some(EndpointIndex::ANY) => return Err(AddError::Taken(EndpointIndex::ANY)),
            Some(index) if free(&index) => index,
            Some(index) => return Err(AddError::Taken(index)),
            None => (0..EndpointIndex::ANY.0)
                .map(EndpointIndex)
                .find(free)
                .ok_or(AddError::TooMany)?,
        };
        self.endpoints
            .insert(index, LocalEndpoint { uid, pending: 0 });
        Ok(index)
    }

    /// Removes an endpoint: the peers of its sessions get an event, its attempts are given up, and
    /// it gets no more events.
    pub fn remove_endpoint(&mut self, endpoint: EndpointIndex, now: Nanos) {
        if self.endpoints.remove(&endpoint).is_none() {
            return;
        }
        self.abandon_attempts_of(endpoint, now);
        self.refuse_tickets_of(endpoint);
        self.reset_sessions_of(endpoint);
    }

    /// Carries out an endpoint's command. Commands about sessions that have ended are ignored.
    pub fn on_command(&mut self, command: Command<F>, now: Nanos) {
        match command {
            Command::Connect {
                key,
                to,
                target,
                deadline,
            } => {
                self.connect(key, to, target, deadline, now);
            }
            Command::Offer { key, via, side } => self.offer(key, via, side, now),
            Command::Abandon { key } => self.abandon(key, now),
            Command::Accept { ticket, key, side } => self.accept(ticket, key, side),
            Command::Refuse { ticket, code } => self.refuse(ticket, code),
            Command::Disconnect { key, reason } => self.disconnect(key, reason),
            Command::Inquire { key, requests } => self.inquire(key, &requests),
            Command::Challenge { proving } => self.challenge(proving, now),
            Command::Prove { key, secret } => self.prove(key, secret),
            Command::Account { key, fates } => self.account(key, &fates),
        }
    }

    /// Takes one frame from a connection. `fds` has the descriptors that came with the frame or
    /// before it, except those that earlier frames took. This function removes those that belong to
    /// the frame.
    pub fn on_frame(&mut self, link: LinkId, frame: &[u8], fds: &mut Vec<F>, now: Nanos) {
        if !self.links.contains_key(&link) {
            return;
        }
        let result = match Message::decode(frame) {
            Ok(message) => self.on_message(link, &message, fds, now),
            Err(ControlError::Version) => Err(GoodbyeReason::Version),
            Err(_) => Err(GoodbyeReason::BadMessage),
        };
        if let Err(reason) = result {
            self.close_link(link, reason, now);
        }
    }

    /// Answers [`Action::Show`].
    pub fn show(&mut self, link: LinkId, offset: u64, bytes: &[u8]) {
        if self.links.contains_key(&link) {
            let sent = self.send(
                link,
                &Message::Insight(Insight { offset, bytes }),
                Vec::new(),
            );
            debug_assert!(sent, "no more was asked for than a message holds");
        }
    }

    /// Lets time pass. The caller calls it at [`Plane::next_wakeup`], after it has handed over all
    /// received frames; more calls do no harm.
    pub fn on_tick(&mut self, now: Nanos) {
        self.poll_links(now);
        self.poll_attempts(now);
        self.poll_routes(now);
        self.poll_inquiries(now);
        self.poll_proofs(now);
    }

    /// Sends the heartbeats that are due and does nothing else. The caller calls it while frames
    /// keep coming in, because [`Plane::on_tick`] must wait until they are handed over (rule C7).
    pub fn beat(&mut self, now: Nanos) {
        for id in self.link_times.due(now) {
            if let Some(counter) = self.links.get_mut(&id).and_then(|link| link.beat(now)) {
                self.send(id, &Message::Heartbeat { counter }, Vec::new());
            }
            self.on_link_time(id);
        }
    }

    /// When [`Plane::on_tick`] is due.
    pub fn next_wakeup(&self) -> Nanos {
        let links = self.link_times.next();
        let routes = self.route_times.next();
        let attempts = self.due.first().map(|(at, _)| *at);
        let inquiries = Some(self.inquiries.next_due());
        let proofs = Some(self.proofs.next_due());
        [links, routes, attempts, inquiries, proofs]
            .into_iter()
            .flatten()
            .min()
            .unwrap_or(Nanos::MAX)
    }

    /// Takes the next action; the caller carries actions out in order.
    pub fn next_action(&mut self) -> Option<Action<F>> {
        self.actions.pop_front()
    }

    /// Ends the process: all its peers are informed.
    pub fn shut_down(&mut self, now: Nanos) {
        while let Some(endpoint) = self.endpoints.first().map(|(endpoint, _)| *endpoint) {
            self.remove_endpoint(endpoint, now);
        }
        while let Some(link) = self.links.first().map(|(link, _)| *link) {
            self.close_link(link, GoodbyeReason::Shutdown, now);
        }
    }

    /// Brings each message to the function for its kind.
    fn on_message(
        &mut self,
        link: LinkId,
        message: &Message<'_>,
        fds: &mut Vec<F>,
        now: Nanos,
    ) -> Result<(), GoodbyeReason> {
        match message {
            Message::Hello(hello) => return self.on_hello(link, hello, now),
            Message::HelloAck(hello) => return self.on_hello_ack(link, hello, now),
            Message::Goodbye { reason } => {
                self.lose_link(link, Some(*reason), now);
                return Ok(());
            }
            _ => {}
        }
        if !self.links.get(&link).is_some_and(Link::is_up) {
            return Err(GoodbyeReason::BadMessage);
        }
        match message {
            Message::Lookup(lookup) => self.on_lookup(link, lookup),
            Message::Found(found) => return self.on_found(link, found, now),
            Message::Connect(connect) => return self.on_connect(link, connect, fds),
            Message::Accept(accept) => return self.on_accept(link, accept, fds, now),
            Message::Refuse(refuse) => return self.on_refuse(link, refuse, now),
            Message::Disconnect(session) => self.on_disconnect(link, *session),
            Message::Reset { session, .. } => self.on_reset(link, *session),
            Message::InsightRead(read) => self.actions.push_back(Action::Show {
                link,
                offset: read.offset,
                len: read.len,
            }),
            // Readers of counters have connections of their own.
            Message::Insight(_) => {}
            Message::Inquiry(inquiry) => self.on_inquiry(link, inquiry, now),
            Message::Account(account) => self.on_account(link, account),
            Message::Nonce { nonce } => return self.on_nonce(link, *nonce, now),
            Message::Proof { secret } => self.on_proof(link, *secret),
            Message::Serving(serving) => return self.on_serving(link, *serving),
            // The session was removed when `Disconnect` was sent.
            Message::DisconnectAck(_) => {}
            Message::Heartbeat { counter } => {
                self.send(
                    link,
                    &Message::HeartbeatAck { counter: *counter },
                    Vec::new(),
                );
            }
            Message::HeartbeatAck { counter } => {
                let found = self.links.get_mut(&link);
                found
                    .ok_or(GoodbyeReason::BadMessage)?
                    .on_heartbeat_ack(*counter)?;
                self.on_link_time(link);
            }
            Message::Hello(_) | Message::HelloAck(_) | Message::Goodbye { .. } => {}
        }
        Ok(())
    }

    /// Sends a message. False if one of its fields exceeds its limit, which can happen only to the
    /// numbers and offers of an endpoint of this process.
    fn send(&mut self, link: LinkId, message: &Message<'_>, fds: Vec<F>) -> bool {
        let mut out = [0; MAX_FRAME];
        let Ok(length) = message.encode(&mut out) else {
            return false;
        };
        self.actions.push_back(Action::Send {
            link,
            frame: out[..length].to_vec(),
            fds,
        });
        true
    }

    /// Gives an event to an endpoint, if it is still there.
    fn tell(&mut self, endpoint: EndpointIndex, event: Event<F>) {
        if self.endpoints.contains_key(&endpoint) {
            self.actions.push_back(Action::Tell { endpoint, event });
        }
    }

    const fn fresh_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }
}

#[cfg(test)]
mod tests;
