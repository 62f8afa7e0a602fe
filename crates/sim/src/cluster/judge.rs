//! The checker of one process's handshakes. It checks how each connect ends, and that the transport
//! counts one use of a peer for each session with it. If a peer's address differs from its
//! connection's, it checks that no session with the peer is open before the peer has proven the
//! address (rule C13). Called by `control`.

use std::collections::{BTreeMap, BTreeSet};

use dunlin_control::{
    ConnectFailure, ConnectTicket, Event, Handshake, Proving, SessionKey, WrongStage,
};
use dunlin_core::{CloseReason, Closed, Nanos, Session};
use dunlin_wire::control::{EndpointUid, RefuseCode};
use dunlin_wire::{SessionNum, Token};

use super::handlers::Endpoint;
use super::ways::Ways;
use crate::cluster::plan::Plan;
use crate::world::net::channels::Pending;
use crate::world::net::{Fd, PortId};

/// A connect ends at most this long after its deadline; handlers that compute cause the delay.
const SLACK: Nanos = Nanos::from_millis(100);
/// Over a sound network, a connect succeeds if it has at least this much time.
const PATIENT: Nanos = Nanos::from_millis(200);

/// The endpoint that asks for a session, and the number and token that it chose for it.
type Asked = (EndpointUid, SessionNum, Token);

/// The checker.
#[derive(Debug)]
pub(super) struct Judge {
    port: PortId,
    /// Whether sessions or memory may run out.
    tight: bool,
    /// Whether sessions that have ended may keep their places while a handler runs.
    slow: bool,
    /// Sessions that this side asked for: when it asked, and the deadline.
    asked: BTreeMap<Session, (Nanos, Nanos)>,
    /// From this time on, no faults strike.
    sound_from: Nanos,
    /// No fault strikes a session that begins at this time or later.
    calm_from: Nanos,
    /// Whether sessions may have begun or ended since the last check.
    changed: bool,
    /// Endpoint, number and token of each session that was granted to another endpoint.
    granted: BTreeSet<(EndpointUid, SessionNum, u32)>,
    /// Requests of other processes that are not granted yet.
    requests: BTreeMap<ConnectTicket, Asked>,
    proofs: Proofs,
    violation: Option<String>,
}

/// The proofs of addresses that this process has asked for.
#[derive(Debug, Default)]
struct Proofs {
    /// The secret bytes of the challenges that the process has sent.
    secrets: BTreeMap<u64, Proving>,
    /// How often it has sent each challenge.
    sent: BTreeMap<Proving, u32>,
    /// The challenges that came back.
    proven: BTreeSet<Proving>,
    /// Sessions whose address was proven.
    sessions: BTreeSet<(SessionNum, u32)>,
}

/// The most challenges for one session (rule C13).
const CHALLENGES: u32 = 3;

impl Judge {
    pub(super) fn new(port: PortId, plan: &Plan) -> Self {
        Self {
            port,
            tight: plan.tight,
            slow: plan.workload.sloth.is_some(),
            asked: BTreeMap::new(),
            sound_from: Nanos::MAX,
            calm_from: Nanos::MAX,
            changed: false,
            granted: BTreeSet::new(),
            requests: BTreeMap::new(),
            proofs: Proofs::default(),
            violation: None,
        }
    }

    pub(super) fn take_violation(&mut self) -> Option<String> {
        self.violation.take()
    }

    pub(super) fn on_connect(&mut self, session: Session, now: Nanos, deadline: Nanos) {
        self.asked.insert(session, (now, deadline));
    }

    pub(super) fn on_phase(&mut self, calm: bool, now: Nanos) {
        self.sound_from = self.sound_from.min(now);
        if calm {
            self.calm_from = now;
        }
    }

    /// Notes an event for the endpoint. Returns the request that it may grant.
    pub(super) fn on_event(&mut self, event: &Event<Fd>) -> Option<ConnectTicket> {
        match event {
            Event::Incoming { ticket, peer, side } => {
                let by = (peer.endpoint, side.offer.session, side.offer.token);
                self.requests.insert(*ticket, by);
                Some(*ticket)
            }
            Event::Challenge { proving, secret } => {
                self.proofs.secrets.insert(*secret, *proving);
                let sent = self.proofs.sent.entry(*proving).or_default();
                *sent += 1;
                if *sent > CHALLENGES {
                    let what = format!("{proving:?} gets more than {CHALLENGES} challenges");
                    self.violate(&what);
                }
                None
            }
            Event::Proven {
                proving: Proving::Asked { ticket, .. },
                ..
            } => Some(*ticket),
            _ => None,
        }
    }

    /// Notes that the bytes of a challenge have come back over a connection.
    pub(super) fn on_proof(&mut self, secret: u64) {
        if let Some(proving) = self.proofs.secrets.get(&secret).copied() {
            self.proofs.proven.insert(proving);
            if let Proving::Granted(key) = proving {
                let session = (key.session, key.token.0);
                self.proofs.sessions.insert(session);
            }
        }
    }

    /// Number of addresses that were proven.
    pub(super) fn proofs(&self) -> u64 {
        self.proofs.proven.len() as u64
    }

    /// Checks that an event fitted the stage of its handshake.
    pub(super) fn on_handled(&mut self, fits: Result<(), WrongStage>) {
        self.changed = true;
        if let Err(wrong) = fits {
            self.violate(&wrong.to_string());
        }
    }

    /// Notes that another endpoint was granted a session. If that endpoint was already granted a
    /// session with this number, the token must be another one (rule W5). Returns the token that
    /// the other endpoint chose.
    pub(super) fn on_grant(&mut self, ticket: ConnectTicket, key: SessionKey) -> Option<Token> {
        let endpoint = key.endpoint;
        if self
            .proofs
            .proven
            .contains(&Proving::Asked { endpoint, ticket })
        {
            let session = (key.session, key.token.0);
            self.proofs.sessions.insert(session);
        }
        let Some((peer, session, token)) = self.requests.remove(&ticket) else {
            self.violate("a request is granted twice");
            return None;
        };
        if !self.granted.insert((peer, session, token.0)) {
            let session = session.0;
            let what = format!("session {session} is granted twice under one token");
            self.violate(&what);
        }
        Some(token)
    }

    /// Notes that a session has ended at this side.
    pub(super) fn on_ended(
        &mut self,
        closed: &Closed,
        failure: Option<ConnectFailure>,
        now: Nanos,
    ) {
        self.changed = true;
        let asked = self.asked.remove(&closed.session);
        let (None, Some((from, deadline))) = (closed.remote, asked) else {
            return;
        };
        let patient = deadline.since(from) >= PATIENT;
        let fine = match (closed.reason, failure) {
            (CloseReason::Disconnected | CloseReason::EndpointClosed, _) => true,
            (CloseReason::Refused, Some(ConnectFailure::Refused(code))) => match code {
                RefuseCode::Closing => true,
                RefuseCode::TooManySessions => self.tight || self.slow,
                RefuseCode::UnprovenAddress => self.slow || from < self.calm_from,
                _ => false,
            },
            (
                CloseReason::ConnectTimeout,
                Some(ConnectFailure::Unreachable | ConnectFailure::TimedOut(_)),
            ) => now >= deadline && !(patient && from >= self.calm_from),
            _ => false,
        };
        if !fine {
            let reason = closed.reason;
            self.violate(&format!(
                "a connect of {} ns ends with {reason:?}, {failure:?}",
                now.since(from).0
            ));
        }
    }

    /// Checks that all sessions and uses add up, and that no connect is overdue.
    pub(super) fn check(
        &mut self,
        rpc: &mut Endpoint,
        handshake: &Handshake<Fd, Pending>,
        ways: &Ways,
        now: Nanos,
    ) {
        let sound_from = self.sound_from;
        let overdue =
            |(_, deadline): &&(Nanos, Nanos)| now.since(sound_from.max(*deadline)) > SLACK;
        if self.changed || self.asked.values().any(|asked| overdue(&asked)) {
            self.changed = false;
            self.asked
                .retain(|session, _| rpc.session_info(*session).is_ok_and(|info| !info.open));
            if self.asked.values().any(|asked| overdue(&asked)) {
                self.violate("a session connects after its deadline");
            }
            self.check_proofs(rpc, ways);
            self.check_uses(rpc, handshake);
        }
    }

    /// Checks that the peer of every open session has proven its address.
    fn check_proofs(&mut self, rpc: &mut Endpoint, ways: &Ways) {
        let sessions: Vec<_> = rpc.sessions().collect();
        for session in sessions {
            let Some(info) = rpc.session_info(session).ok().filter(|info| info.open) else {
                continue;
            };
            let lifecycle = rpc.lifecycle();
            let Some(offer) = lifecycle.offer_of(session) else {
                continue;
            };
            let channels = lifecycle.halves_mut().1.channels();
            let proven = (offer.session, offer.token.0);
            if ways.is_elsewhere(channels, info.peer) && !self.proofs.sessions.contains(&proven) {
                let (session, peer) = (offer.session.0, info.peer);
                self.violate(&format!(
                    "session {session} is open, but {peer:?} is unproven"
                ));
            }
        }
    }

    fn check_uses(&mut self, rpc: &mut Endpoint, handshake: &Handshake<Fd, Pending>) {
        let mut sessions = BTreeMap::new();
        for peer in handshake.unproven() {
            *sessions.entry(peer).or_insert(0) += 1;
        }
        for session in rpc.sessions() {
            if let Some(info) = rpc.session_info(session).ok().filter(|info| info.open) {
                *sessions.entry(info.peer).or_insert(0) += 1;
            }
        }
        let channels = rpc.lifecycle().halves_mut().1.channels_mut();
        if let Some(what) = channels.take_violation() {
            self.violate(&what);
        }
        let total: u32 = sessions.values().sum();
        let apart = sessions
            .iter()
            .find(|(peer, count)| channels.uses(**peer) != **count);
        if let Some((peer, count)) = apart {
            let uses = channels.uses(*peer);
            self.violate(&format!(
                "{count} sessions use {peer:?}, but it counts {uses}"
            ));
        } else if total != channels.all_uses() {
            let uses = channels.all_uses();
            self.violate(&format!(
                "{total} sessions use channels, but these count {uses}"
            ));
        }
    }

    fn violate(&mut self, what: &str) {
        let port = self.port.0;
        self.violation.get_or_insert(format!("port {port}: {what}"));
    }
}
