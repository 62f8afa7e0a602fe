//! A process's part of the control plane: core's `Plane`, and the handshakes of its endpoint's
//! sessions with it (design §9). What the nexus does with sockets and threads, in virtual time.
//!
//! Invariant: the plane belongs to the control thread; the endpoint hears from it only in `hear`,
//! in an iteration of its own thread. Called by `node`.

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr};

use dunlin_control::{
    Action, Command, ConnectFailure, Event, HeartbeatConfig, Identity, LinkId, Plane, PlaneConfig,
    SessionKey, Side, Target, TransportOffer,
};
use dunlin_core::transport::PeerId;
use dunlin_core::{CloseReason, Closed, Nanos, Session, SessionOffer, SessionOptions};
use dunlin_wire::control::{
    BootId, EndpointIndex, EndpointUid, Incarnation, RefuseCode, TransportKind,
};
use dunlin_wire::{SessionNum, Token};

use super::app::Known;
use super::handlers::Endpoint;
use crate::net::{HostId, PortId};
use crate::plan::Plan;
use crate::rng::Rng;
use crate::world::{ProcessId, StreamEvent, StreamRequest};

/// Longest time until the control thread gets to what an endpoint wants.
const COMMAND_DELAY: Nanos = Nanos::from_micros(50);

/// Descriptors do not exist here: shared memory is not simulated.
type NoFd = u32;

/// The control plane of one process.
#[derive(Debug)]
pub(super) struct Control {
    id: ProcessId,
    plane: Plane<NoFd>,
    index: EndpointIndex,
    /// What the plane has for the endpoint.
    events: VecDeque<Event<NoFd>>,
    /// What the endpoint wants of the plane, and when the control thread gets to it.
    commands: VecDeque<(Nanos, Command<NoFd>)>,
    rng: Rng,
    requests: Vec<StreamRequest>,
    /// When the plane wants to run: asking it is work, so it is asked when it has changed.
    next_tick: Nanos,
    /// How long a connect may take.
    patience: Nanos,
}

impl Control {
    /// The control plane of a process that has just started on `host`.
    pub(super) fn new(id: ProcessId, host: HostId, plan: &Plan, rng: &mut Rng) -> Self {
        let config = PlaneConfig {
            heartbeat: HeartbeatConfig {
                timeout: plan.endpoint.failure_timeout,
                ..HeartbeatConfig::default()
            },
            linger: plan.linger,
            ..PlaneConfig::default()
        };
        let us = Identity {
            boot_id: BootId([u8::try_from(host.0).unwrap_or(u8::MAX); 16]),
            incarnation: Incarnation(rng.next_u64()),
            port: PORT,
            unix_name: if plan.unix {
                unix_name(id.port)
            } else {
                String::new()
            },
        };
        let mut plane = Plane::new(config, us, rng.next_u64());
        let mut uid = EndpointUid::default();
        rng.fill(&mut uid.0);
        let index = plane
            .add_endpoint(None, uid)
            .expect("a new plane has no endpoints");
        let patience = plan.patience;
        Self {
            id,
            plane,
            index,
            events: VecDeque::new(),
            commands: VecDeque::new(),
            rng: rng.fork(),
            requests: Vec::new(),
            next_tick: Nanos::ZERO,
            patience,
        }
    }

    /// Sessions that the plane believes to be open.
    pub(super) fn session_count(&self) -> usize {
        self.plane.session_count()
    }

    /// Begins to make a session with the process on `peer`.
    pub(super) fn connect(
        &mut self,
        rpc: &mut Endpoint,
        peer: PortId,
        options: &SessionOptions,
        now: Nanos,
    ) -> Option<Session> {
        let session = rpc.lifecycle().open(options).ok()?;
        let offer = rpc.lifecycle().offer_of(session)?;
        let connect = Command::Connect {
            key: self.key(offer.session, offer.token),
            to: vec![address(peer)],
            target: EndpointIndex::ANY,
            deadline: now + self.patience,
        };
        rpc.app_mut().add_session(Known {
            session,
            peer,
            ours: true,
        });
        self.command(connect, now);
        Some(session)
    }

    /// Time passes.
    pub(super) fn tick(&mut self, now: Nanos) {
        while self.commands.front().is_some_and(|(due, _)| *due <= now) {
            if let Some((_, command)) = self.commands.pop_front() {
                self.plane.on_command(command, now);
            }
        }
        self.plane.on_tick(now);
        self.act();
    }

    /// When time is to be told next.
    pub(super) fn next_tick(&self) -> Nanos {
        let command = self.commands.front().map_or(Nanos::MAX, |(due, _)| *due);
        self.next_tick.min(command)
    }

    /// The process ends: everybody is told.
    pub(super) fn shut_down(&mut self, now: Nanos) {
        self.plane.shut_down(now);
        self.act();
    }

    /// Somebody connects.
    pub(super) fn on_incoming(&mut self, now: Nanos) -> Option<u64> {
        let link = self.plane.on_accepted(false, now);
        self.act();
        link.map(|link| link.0)
    }

    /// Something happened to a connection.
    pub(super) fn on_stream(&mut self, event: StreamEvent, now: Nanos) {
        match event {
            StreamEvent::Dialled(name) => self.plane.on_dialled(LinkId(name), now),
            StreamEvent::Frame(name, frame) => {
                self.plane
                    .on_frame(LinkId(name), &frame, &mut Vec::new(), now);
            }
            StreamEvent::Closed(name) => self.plane.on_closed(LinkId(name), now),
        }
        self.act();
    }

    /// Moves out what is to be done with connections.
    pub(super) fn take_requests(&mut self, out: &mut Vec<StreamRequest>) {
        out.append(&mut self.requests);
    }

    /// True if the plane has something for the endpoint.
    pub(super) fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    /// The endpoint hears what the plane has for it.
    pub(super) fn hear(&mut self, rpc: &mut Endpoint, now: Nanos) {
        while let Some(event) = self.events.pop_front() {
            self.on_event(rpc, event, now);
        }
    }

    /// The plane hears which sessions have ended at the endpoint.
    pub(super) fn report_closed(&mut self, rpc: &mut Endpoint, now: Nanos) {
        while let Some(closed) = rpc.lifecycle().take_closed() {
            self.on_ended(&closed, now);
        }
    }

    fn on_ended(&mut self, closed: &Closed, now: Nanos) {
        let key = self.key(closed.session.number(), closed.token);
        if closed.remote.is_none() {
            self.command(Command::Abandon { key }, now);
        } else if closed.tell {
            self.command(
                Command::Disconnect {
                    key,
                    reason: closed.reason,
                },
                now,
            );
        }
    }

    fn on_event(&mut self, rpc: &mut Endpoint, event: Event<NoFd>, now: Nanos) {
        match event {
            Event::Found { key, via, .. } => {
                let named = rpc.lifecycle().session_named(key.session, key.token);
                if let Some(offer) = named.and_then(|session| rpc.lifecycle().offer_of(session)) {
                    let side = self.side(offer);
                    self.command(Command::Offer { key, via, side }, now);
                }
            }
            // An offer of this transport holds nothing.
            Event::OfferVoid { .. } => {}
            Event::Accepted { key, side } => self.on_accepted(rpc, key, &side, now),
            Event::ConnectFailed { key, failure } => {
                if let Some(session) = rpc.lifecycle().session_named(key.session, key.token) {
                    rpc.lifecycle().close(session, reason_of(failure));
                }
            }
            Event::Incoming { ticket, side, .. } => {
                let accepted = port_of(&side).and_then(|port| accept(rpc, port, &side.offer));
                let command = match accepted {
                    Some(offer) => {
                        let key = self.key(offer.session, offer.token);
                        Command::Accept {
                            ticket,
                            key,
                            side: self.side(offer),
                        }
                    }
                    None => Command::Refuse {
                        ticket,
                        code: RefuseCode::TooManySessions,
                    },
                };
                self.command(command, now);
            }
            Event::Closed { key, reason } => {
                if let Some(session) = rpc.lifecycle().session_named(key.session, key.token) {
                    rpc.lifecycle().close(session, reason);
                }
            }
        }
    }

    /// The other side grants a session. If it was given up meanwhile, the plane knows or is about
    /// to.
    fn on_accepted(&mut self, rpc: &mut Endpoint, key: SessionKey, side: &Side<NoFd>, now: Nanos) {
        let Some(session) = rpc.lifecycle().session_named(key.session, key.token) else {
            return;
        };
        let opened = port_of(side).is_some_and(|port| {
            rpc.lifecycle()
                .opened(session, peer_id(port), &side.offer)
                .is_ok()
        });
        if !opened {
            self.command(
                Command::Disconnect {
                    key,
                    reason: CloseReason::Reset,
                },
                now,
            );
            rpc.lifecycle().close(session, CloseReason::Refused);
        }
    }

    fn command(&mut self, command: Command<NoFd>, now: Nanos) {
        let last = self.commands.back().map_or(Nanos::ZERO, |(due, _)| *due);
        let due = last.max(now + Nanos(self.rng.log_between(500, COMMAND_DELAY.0)));
        self.commands.push_back((due, command));
    }

    /// Does what the plane wants done.
    fn act(&mut self) {
        while let Some(action) = self.plane.next_action() {
            match action {
                Action::Dial { link, to } => self.dial(link, &to),
                Action::Send { link, frame, .. } => {
                    self.requests.push(StreamRequest::Send(link.0, frame));
                }
                Action::Close { link } => self.requests.push(StreamRequest::Close(link.0)),
                // Nobody here asks what a process does.
                Action::Show { .. } => {}
                Action::Tell { event, .. } => self.events.push_back(event),
            }
        }
        self.next_tick = self.plane.next_wakeup();
    }

    fn dial(&mut self, link: LinkId, to: &Target) {
        let (to, local) = match to {
            Target::Tcp(address) => (port_at(address), false),
            Target::Unix(name) => (port_named(name), true),
        };
        // The plane dials what processes of this world have said of themselves.
        let to = to.unwrap_or(self.id.port);
        self.requests.push(StreamRequest::Dial {
            name: link.0,
            to,
            local,
        });
    }

    fn key(&self, session: SessionNum, token: Token) -> SessionKey {
        SessionKey {
            endpoint: self.index,
            session,
            token,
        }
    }

    fn side(&self, offer: SessionOffer) -> Side<NoFd> {
        let bytes = (self.id.port.0 as u64).to_le_bytes().to_vec();
        let here = TransportOffer {
            kind: TransportKind::SIM,
            bytes,
            fds: Vec::new(),
        };
        Side {
            offer,
            transports: vec![here],
        }
    }
}

fn accept(rpc: &mut Endpoint, peer: PortId, offer: &SessionOffer) -> Option<SessionOffer> {
    let (session, answer) = rpc.lifecycle().accept(peer_id(peer), offer).ok()?;
    rpc.app_mut().add_session(Known {
        session,
        peer,
        ours: false,
    });
    Some(answer)
}

fn reason_of(failure: ConnectFailure) -> CloseReason {
    match failure {
        ConnectFailure::Refused(_) | ConnectFailure::TooMany => CloseReason::Refused,
        ConnectFailure::Unreachable | ConnectFailure::TimedOut(_) => CloseReason::ConnectTimeout,
    }
}

/// Where every nexus listens.
const PORT: u16 = 31850;

fn address(port: PortId) -> SocketAddr {
    let number = u32::try_from(port.0).expect("a world has fewer than 2^32 ports");
    SocketAddr::new(Ipv4Addr::from_bits(number).into(), PORT)
}

fn port_at(address: &SocketAddr) -> Option<PortId> {
    match address {
        SocketAddr::V4(address) => Some(PortId(address.ip().to_bits() as usize)),
        SocketAddr::V6(_) => None,
    }
}

fn unix_name(port: PortId) -> String {
    format!("\0dunlin-{}", port.0)
}

fn port_named(name: &str) -> Option<PortId> {
    name.strip_prefix("\0dunlin-")?.parse().ok().map(PortId)
}

/// How the transport reaches the other side.
fn port_of(side: &Side<NoFd>) -> Option<PortId> {
    let offer = side
        .transports
        .iter()
        .find(|offer| offer.kind == TransportKind::SIM)?;
    let number = u64::from_le_bytes(offer.bytes.as_slice().try_into().ok()?);
    usize::try_from(number).ok().map(PortId)
}

fn peer_id(port: PortId) -> PeerId {
    PeerId(u32::try_from(port.0).expect("a world has fewer than 2^32 ports"))
}
