//! One control connection: Hello, then heartbeats until it ends (rules C2, C7, C8).
//!
//! ```text
//! accepted ─▶ Fresh ────Hello────▶ Up
//! dialled ──▶ Dialling ─▶ Greeting ──HelloAck──▶ Up
//! ```
//! Every phase but `Up` has a time limit, and `Up` has the failure detector, so no connection stays
//! without a live peer. This file has one link's counts; `plane` has the tables.
//!
//! Owned and called by `plane`.

use std::net::{IpAddr, SocketAddr};

use dunlin_core::Nanos;
use dunlin_wire::control::{BootId, Features, GoodbyeReason, Hello, Incarnation, Serving};

use super::config::PlaneConfig;
use super::heartbeat::{Detector, Secret, Verdict};
use super::places::Origin;
use super::route::RouteId;
use super::types::Identity;

/// How many times each side may announce its services over a connection (rule C14). Each
/// announcement is an event for every session over the connection.
const MAX_SAID: u8 = 8;

/// The phase of a link.
#[derive(Clone, Debug)]
enum Phase {
    /// The connection is being made.
    Dialling,
    /// We have sent Hello and wait for the answer.
    Greeting,
    /// The other side must send Hello first.
    Fresh,
    /// Both sides have sent Hello.
    Up(Detector),
}

/// The process at the other end, as it describes itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Peer {
    pub(super) incarnation: Incarnation,
    pub(super) boot_id: BootId,
    pub(super) features: Features,
    pub(super) unix_name: String,
}

/// One connection.
#[derive(Clone, Debug)]
pub(super) struct Link {
    phase: Phase,
    /// The end of the phase's time limit; unused in `Up`.
    until: Nanos,
    /// The time at which the connection began or, once Hello has come, the time of Hello.
    pub(super) begun: Nanos,
    /// The origin of the connection; `None` if this side dialled it.
    pub(super) origin: Option<Origin>,
    /// The connection can carry descriptors.
    pub(super) carries_fds: bool,
    /// The address of our end, if it has one.
    pub(super) local: Option<SocketAddr>,
    /// The address of the other end, if this side has accepted the connection and that end has one.
    pub(super) remote: Option<IpAddr>,
    /// The other end is a socket of this host and, if the other side made the connection, of this
    /// user.
    pub(super) here: bool,
    /// The nonce with which a process proves, on another connection, that it is the same process.
    /// The side that dialled has drawn it, and has sent it to the other side.
    pub(super) nonce: Option<u64>,
    /// The other side has sent a nonce of its own, which it may do once.
    pub(super) has_got_nonce: bool,
    /// The time by which the other side must send our nonce back.
    proof_by: Nanos,
    /// The address at which the nexus at the other end listens, if that is known.
    pub(super) nexus: Option<SocketAddr>,
    /// The route that dialled the connection; `None` if the other side did.
    pub(super) route: Option<RouteId>,
    /// Known once Hello has come.
    pub(super) peer: Option<Peer>,
    /// Number of sessions over the connection.
    pub(super) sessions: usize,
    /// Number of requests for sessions over the connection that endpoints have not answered.
    pub(super) pending: usize,
    /// Number of our look-ups that the other side has not answered.
    pub(super) lookups: usize,
    /// The time since which nothing has used the connection.
    pub(super) idle_since: Option<Nanos>,
    /// The services of the process at the other end, if it has announced them.
    pub(super) serving: Option<Serving>,
    /// How many times this side, and the other side, have announced their services.
    said: [u8; 2],
}

/// This side's part of a Hello exchange.
#[derive(Clone, Copy, Debug)]
pub(super) struct Greeting<'a> {
    pub(super) us: &'a Identity,
    /// The secret for the counters of heartbeats.
    pub(super) secret: Secret,
}

/// The next step of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum LinkStep {
    Quiet,
    Heartbeat(u64),
    /// Our nonce has not come back in time.
    Unproven,
    End(GoodbyeReason),
}

impl Link {
    /// A link that the other side has made.
    pub(super) fn accepted(origin: Origin, now: Nanos, config: &PlaneConfig) -> Self {
        let until = now + config.hello_timeout;
        Self {
            origin: Some(origin),
            here: origin.is_own(),
            ..Self::new(Phase::Fresh, None, origin.carries_fds(), now, until)
        }
    }

    /// A link that this side begins to dial.
    pub(super) fn dialling(
        route: RouteId,
        carries_fds: bool,
        now: Nanos,
        config: &PlaneConfig,
    ) -> Self {
        Self::new(
            Phase::Dialling,
            Some(route),
            carries_fds,
            now,
            now + config.dial_timeout,
        )
    }

    const fn new(
        phase: Phase,
        route: Option<RouteId>,
        carries_fds: bool,
        begun: Nanos,
        until: Nanos,
    ) -> Self {
        Self {
            phase,
            until,
            begun,
            origin: None,
            carries_fds,
            local: None,
            remote: None,
            here: carries_fds,
            nonce: None,
            has_got_nonce: false,
            proof_by: Nanos::MAX,
            nexus: None,
            route,
            peer: None,
            sessions: 0,
            pending: 0,
            lookups: 0,
            idle_since: None,
            serving: None,
            said: [0; 2],
        }
    }

    /// Notes that the connection is made, and expects Hello. False if the link was not being
    /// dialled.
    pub(super) fn on_dialled(&mut self, now: Nanos, config: &PlaneConfig) -> bool {
        let dialling = matches!(self.phase, Phase::Dialling);
        if dialling {
            self.phase = Phase::Greeting;
            self.until = now + config.hello_timeout;
        }
        dialling
    }

    /// The address of the other end: the one that this side dialled, or the one from which it
    /// accepted the connection.
    pub(super) fn remote(&self) -> Option<IpAddr> {
        if self.carries_fds {
            return None;
        }
        let dialled = self.nexus.map(|nexus| nexus.ip().to_canonical());
        // The unspecified address leads to this host, so the other end has the address of our own
        // end.
        let dialled = match dialled {
            Some(ip) if ip.is_unspecified() => self.local.map(|local| local.ip().to_canonical()),
            dialled => dialled,
        };
        self.remote.or(dialled)
    }

    /// Takes the other side's Hello, or its answer to ours.
    ///
    /// # Errors
    /// The reason to close: it was not the other side's turn, or there is no common version.
    pub(super) fn on_hello(
        &mut self,
        hello: &Hello<'_>,
        is_answer: bool,
        greeting: &Greeting<'_>,
        now: Nanos,
        config: &PlaneConfig,
    ) -> Result<(), GoodbyeReason> {
        match (&self.phase, is_answer) {
            (Phase::Fresh, false) | (Phase::Greeting, true) => {}
            _ => return Err(GoodbyeReason::BadMessage),
        }
        if greeting.us.hello().common_version(hello).is_none() {
            return Err(GoodbyeReason::Version);
        }
        self.peer = Some(Peer {
            incarnation: hello.incarnation,
            boot_id: hello.boot_id,
            features: hello.features,
            unix_name: hello.unix_name.to_owned(),
        });
        if let (Some(remote), 1..) = (self.remote, hello.port) {
            self.nexus = Some(SocketAddr::new(remote, hello.port));
        }
        self.begun = now;
        self.phase = Phase::Up(Detector::new(&config.heartbeat, greeting.secret, now));
        Ok(())
    }

    /// Notes that this side sends a nonce, which must come back in time.
    pub(super) fn on_nonce_sent(&mut self, nonce: u64, now: Nanos, config: &PlaneConfig) {
        self.nonce = Some(nonce);
        self.proof_by = now + config.hello_timeout;
    }

    /// Notes that the nonce has come back.
    pub(super) const fn on_nonce_returned(&mut self) {
        self.proof_by = Nanos::MAX;
    }

    /// Takes the acknowledgement of a heartbeat.
    ///
    /// # Errors
    /// The reason to close: no such heartbeat was sent.
    pub(super) fn on_heartbeat_ack(&mut self, counter: u64) -> Result<(), GoodbyeReason> {
        match &mut self.phase {
            Phase::Up(detector) => detector
                .on_ack(counter)
                .map_err(|_| GoodbyeReason::BadMessage),
            _ => Err(GoodbyeReason::BadMessage),
        }
    }

    /// The step that is due now.
    pub(super) fn poll(&mut self, now: Nanos) -> LinkStep {
        if now >= self.proof_by {
            self.proof_by = Nanos::MAX;
            return LinkStep::Unproven;
        }
        match &mut self.phase {
            Phase::Up(detector) => match detector.poll(now) {
                Verdict::Quiet => LinkStep::Quiet,
                Verdict::Send(counter) => LinkStep::Heartbeat(counter),
                Verdict::Failed => LinkStep::End(GoodbyeReason::DeclaredFailed),
            },
            _ if now >= self.until => LinkStep::End(GoodbyeReason::Silent),
            _ => LinkStep::Quiet,
        }
    }

    /// The counter of the heartbeat that is due; makes no other check.
    pub(super) fn beat(&mut self, now: Nanos) -> Option<u64> {
        match &mut self.phase {
            Phase::Up(detector) => detector.beat(now),
            _ => None,
        }
    }

    /// When [`Link::poll`] is due.
    pub(super) fn next_wakeup(&self) -> Nanos {
        match &self.phase {
            Phase::Up(detector) => detector.next_wakeup().min(self.proof_by),
            _ => self.until,
        }
    }

    /// Counts an announcement of this side; false if it is not allowed. The last announcement is
    /// reserved for a drain.
    pub(super) fn may_say_serving(&mut self, serving: Serving) -> bool {
        let most = MAX_SAID - u8::from(!serving.draining);
        count(&mut self.said[0], most)
    }

    /// Notes that the other side has announced its services. `None`: nothing has changed.
    ///
    /// # Errors
    /// The reason to close: it has announced them too often.
    pub(super) fn on_serving(
        &mut self,
        serving: Serving,
    ) -> Result<Option<Serving>, GoodbyeReason> {
        if !count(&mut self.said[1], MAX_SAID) {
            return Err(GoodbyeReason::BadMessage);
        }
        let is_new = self.serving.replace(serving) != Some(serving);
        Ok(is_new.then_some(serving))
    }

    pub(super) const fn is_up(&self) -> bool {
        matches!(self.phase, Phase::Up(_))
    }

    /// Whether messages can be sent: the connection is made.
    pub(super) const fn can_send(&self) -> bool {
        !matches!(self.phase, Phase::Dialling)
    }

    /// Whether no session uses the connection, and the other side is making none over it.
    pub(super) const fn is_unused(&self) -> bool {
        self.sessions == 0 && self.pending == 0
    }
}

/// Adds 1 to `said`, unless it has reached `most`; false if it has.
fn count(said: &mut u8, most: u8) -> bool {
    let is_few = *said < most;
    *said += u8::from(is_few);
    is_few
}
