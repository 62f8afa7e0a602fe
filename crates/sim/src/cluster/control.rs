//! A process's part of the control plane: a `Plane` for its control thread, a `Handshake` for its
//! endpoint, and the faults that strike grants. The nexus does the same with sockets and threads;
//! here it happens in virtual time.
//!
//! Invariant: the plane belongs to the control thread; the endpoint gets its events only in
//! `deliver_events`, in an iteration of its own thread. Called by `node`; `judge` checks the
//! results.

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr};

use dunlin_control::{
    Action, Event, Handshake, HeartbeatConfig, Identity, LinkId, Origin, Overdue, Plane,
    PlaneConfig, Target, Wish,
};
use dunlin_core::{Nanos, Report, Session, SessionOptions};
use dunlin_wire::control::{BootId, EndpointIndex, EndpointUid, Incarnation, Message};

use super::app::Known;
use super::handlers::Endpoint;
use super::judge::Judge;
use super::ways::Ways;
use crate::cluster::plan::{Handshakes, Plan};
use crate::world::net::Fd;
use crate::world::net::channels::Pending;
use crate::world::net::{HostId, PortId};
use crate::world::rng::Rng;
use crate::world::{ProcessId, StreamEvent, StreamRequest};

/// The control plane of one process.
#[derive(Debug)]
pub(super) struct Control {
    id: ProcessId,
    plane: Plane<Fd>,
    /// Events of the plane for the endpoint.
    events: VecDeque<Event<Fd>>,
    handshake: Handshake<Fd, Pending>,
    ways: Ways,
    judge: Judge,
    faults: Handshakes,
    chaos_end: Nanos,
    rng: Rng,
    requests: Vec<StreamRequest>,
    /// When the plane must run next. This is expensive to compute, so it is updated only when the
    /// plane has changed.
    next_tick: Nanos,
    /// How long a connect may take.
    patience: Nanos,
    /// The endpoint takes no events before this time, as if its thread were busy elsewhere.
    away_until: Nanos,
    /// Whether the connection breaks as the next proof of an address arrives.
    loses_proof: bool,
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
        #[cfg_attr(
            not(feature = "mutants"),
            expect(unused_mut, reason = "for planted bugs")
        )]
        let mut handshake = Handshake::new(index);
        #[cfg(feature = "mutants")]
        {
            let mutant = plan
                .mutant
                .and_then(crate::cluster::mutants::Mutant::in_control);
            plane.plant(mutant);
            handshake.plant(mutant);
        }
        let patience = plan.patience;
        Self {
            id,
            plane,
            events: VecDeque::new(),
            handshake,
            ways: Ways::new(rng.fork(), plan.handshakes.gone, plan.elsewhere),
            judge: Judge::new(id.port, plan),
            faults: plan.handshakes,
            chaos_end: plan.chaos_end,
            rng: rng.fork(),
            requests: Vec::new(),
            next_tick: Nanos::ZERO,
            patience,
            away_until: Nanos::ZERO,
            loses_proof: false,
        }
    }

    /// Sessions that are open for the plane.
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
        let deadline = now + self.patience;
        let wish = Wish {
            to: vec![address(peer)],
            target: EndpointIndex::ANY,
            deadline,
        };
        self.ways.commands.on_time(now);
        let begun = self
            .handshake
            .connect(rpc, &mut self.ways, options, wish, now);
        let session = begun.ok()?;
        self.judge.on_connect(session, now, deadline);
        let offer = rpc.lifecycle().offer_of(session);
        rpc.app_mut().add_session(Known {
            session,
            peer,
            ours: true,
            token: offer.map(|offer| offer.token).unwrap_or_default(),
        });
        Some(session)
    }

    /// Runs the control thread: gives the plane the endpoint's commands and the time.
    pub(super) fn tick(&mut self, now: Nanos) {
        while let Some(command) = self.ways.commands.next(now) {
            self.plane.on_command(command, now);
        }
        self.plane.on_tick(now);
        self.act();
    }

    /// When the plane must run next.
    pub(super) fn next_tick(&self) -> Nanos {
        self.next_tick.min(self.ways.commands.next_due())
    }

    /// Ends the process, which sends its peers a goodbye.
    pub(super) fn shut_down(&mut self, now: Nanos) {
        self.plane.shut_down(now);
        self.act();
    }

    /// Accepts another process's connection. `local`: it is a UNIX socket, which carries
    /// descriptors.
    pub(super) fn on_incoming(&mut self, local: bool, now: Nanos) -> Option<u64> {
        let origin = if local {
            Origin::Process(0)
        } else {
            // No simulated process lies about its host.
            Origin::OwnUser
        };
        let link = self.plane.on_accepted(origin, now);
        self.act();
        Some(link.0)
    }

    /// Handles an event of a connection.
    pub(super) fn on_stream(&mut self, event: StreamEvent, now: Nanos) {
        match event {
            StreamEvent::Dialled(name) => {
                self.plane.on_here(LinkId(name));
                self.plane.on_dialled(LinkId(name), now);
            }
            StreamEvent::Frame(name, frame, fds) => {
                self.on_frame(LinkId(name), &frame, fds, now);
            }
            StreamEvent::Closed(name) => self.plane.on_closed(LinkId(name), now),
        }
        self.act();
    }

    /// Moves out the requests to connections.
    pub(super) fn take_requests(&mut self, out: &mut Vec<StreamRequest>) {
        out.append(&mut self.requests);
    }

    /// When the endpoint takes the next event of the plane.
    pub(super) fn next_event(&self) -> Nanos {
        match self.events.is_empty() {
            true => Nanos::MAX,
            false => self.away_until,
        }
    }

    /// Gives the plane's events to the endpoint.
    pub(super) fn deliver_events(&mut self, rpc: &mut Endpoint, now: Nanos) {
        self.ways.commands.on_time(now);
        if now < self.away_until {
            return;
        }
        while let Some(event) = self.events.pop_front() {
            let request = self.judge.on_event(&event);
            let fits = self.handshake.handle_event(rpc, &mut self.ways, event, now);
            self.judge.on_handled(fits);
            if let Some(ticket) = request
                && let Some(key) = self.ways.commands.granted(ticket)
            {
                let token = self.judge.on_grant(ticket, key);
                rpc.app_mut()
                    .on_grant(key.session, token.unwrap_or_default());
            }
        }
    }

    /// Passes the endpoint's reports on to the handshake: sessions that have ended, questions about
    /// peers, and challenges that have reached it. Then checks that all counts add up.
    pub(super) fn report_closed(&mut self, rpc: &mut Endpoint, now: Nanos) {
        self.ways.commands.on_time(now);
        while let Some(report) = rpc.lifecycle().take_report() {
            let ended = match &report {
                Report::Closed(closed) => Some(*closed),
                Report::Question(_) | Report::Challenged(_) => None,
            };
            self.handshake.report(rpc, &mut self.ways, report, now);
            let Some(closed) = ended else { continue };
            let failure = self.handshake.failure(closed.session);
            self.judge.on_ended(&closed, failure, now);
        }
        self.judge.check(rpc, &self.handshake, &self.ways, now);
    }

    /// Ends the faults. `calm`: no fault strikes the sessions that begin from now on.
    pub(super) fn on_phase(&mut self, calm: bool, now: Nanos) {
        self.judge.on_phase(calm, now);
    }

    /// The first invariant that was found broken.
    pub(super) fn take_violation(&mut self) -> Option<String> {
        self.judge.take_violation()
    }

    /// Describes the uses of channels, sessions and turns that have not been given back.
    pub(super) fn left(&self, rpc: &mut Endpoint) -> Option<String> {
        let in_use = rpc.lifecycle().halves_mut().1.channels().in_use();
        let idle = self.handshake.is_idle();
        let left = !idle || in_use > 0;
        left.then(|| format!("{in_use} uses of channels; turns and sessions are back: {idle}"))
    }

    /// Number of addresses that other processes have proven to this one.
    pub(super) fn proofs(&self) -> u64 {
        self.judge.proofs()
    }

    /// Number of this process's sessions whose deadline passed before they were open, by stage.
    pub(super) const fn overdue(&self) -> Overdue {
        self.handshake.overdue()
    }

    /// Handles a message; a fault may strike a grant.
    fn on_frame(&mut self, link: LinkId, frame: &[u8], mut fds: Vec<Fd>, now: Nanos) {
        let message = Message::decode(frame);
        let chaos = now < self.chaos_end;
        if let Ok(Message::Proof { secret }) = message {
            if std::mem::take(&mut self.loses_proof) && chaos {
                return self.plane.on_closed(link, now);
            }
            self.judge.on_proof(secret);
        }
        let is_grant = matches!(message, Ok(Message::Accept(_)));
        if is_grant && chaos && self.rng.chance(self.faults.lost) {
            return self.plane.on_closed(link, now);
        }
        if is_grant && self.rng.chance(self.faults.doubled) {
            self.plane.on_frame(link, frame, &mut fds.clone(), now);
        }
        self.plane.on_frame(link, frame, &mut fds, now);
        if is_grant && chaos && self.rng.chance(self.faults.restarted) {
            self.ways.restarted = true;
            // A restart ends all sessions of the peer, and each new session is a grant. So most
            // restarts end only this connection; otherwise, each restart would cause further ones.
            match self.rng.one_in(RESTARTS) {
                true => self.requests.push(StreamRequest::Restart(link.0)),
                false => self.plane.on_closed(link, now),
            }
        }
        if is_grant && chaos && self.rng.chance(self.faults.late) {
            self.away_until = self.chaos_end.min(now + self.patience);
            (self.ways.restarted, self.loses_proof) = (true, true);
        }
    }

    /// Carries out the plane's actions.
    fn act(&mut self) {
        while let Some(action) = self.plane.next_action() {
            match action {
                Action::Dial { link, to } => self.dial(link, &to),
                Action::Send { link, frame, fds } => {
                    self.requests.push(StreamRequest::Send(link.0, frame, fds));
                }
                Action::Close { link } => self.requests.push(StreamRequest::Close(link.0)),
                // No process here asks another one for its counters.
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
        // The plane dials the addresses that processes of this world have published.
        let to = to.unwrap_or(self.id.port);
        self.requests.push(StreamRequest::Dial {
            name: link.0,
            to,
            local,
        });
    }
}

/// Of this number of restarts, one ends the peer's process and starts another.
const RESTARTS: u64 = 8;

/// The port at which every nexus listens.
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
