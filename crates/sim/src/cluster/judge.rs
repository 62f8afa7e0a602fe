//! The checker of one process's handshakes: how each connect ends, and that the transport counts
//! as many uses of each peer as there are sessions with it. Called by `control`.

use std::collections::{BTreeMap, BTreeSet};

use dunlin_control::{ConnectFailure, WrongStage};
use dunlin_core::{CloseReason, Closed, Nanos, Session};
use dunlin_wire::control::{EndpointUid, RefuseCode};
use dunlin_wire::{SessionNum, Token};

use super::handlers::Endpoint;
use crate::cluster::plan::Plan;
use crate::world::net::PortId;

/// A connect is over at most this long after its deadline: handlers compute meanwhile.
const SLACK: Nanos = Nanos::from_millis(100);
/// Over a sound network, a connect with this deadline succeeds.
const PATIENT: Nanos = Nanos::from_millis(200);

/// The endpoint that asks for a session, and its number and token for it.
type Asked = (EndpointUid, SessionNum, Token);

/// The checker.
#[derive(Debug)]
pub(super) struct Judge {
    port: PortId,
    /// Sessions or memory may run out.
    tight: bool,
    /// Sessions that have ended may keep their places while a handler runs.
    slow: bool,
    /// Sessions that this side asked for: when it asked, and the deadline.
    asked: BTreeMap<Session, (Nanos, Nanos)>,
    /// When the faults had ended, and the sessions that they struck as well.
    sound_from: Nanos,
    calm_from: Nanos,
    /// Sessions may have come or gone since the last check.
    changed: bool,
    /// Endpoints, numbers and tokens under which others were granted sessions.
    granted: BTreeSet<(EndpointUid, SessionNum, u32)>,
    violation: Option<String>,
}

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

    pub(super) fn on_event(&mut self, fits: Result<(), WrongStage>) {
        self.changed = true;
        if let Err(wrong) = fits {
            self.violate(&wrong.to_string());
        }
    }

    /// Notes that another endpoint was granted a session; its token must differ from those of all
    /// earlier grants (rule W5).
    pub(super) fn on_grant(&mut self, (peer, session, token): Asked) {
        if !self.granted.insert((peer, session, token.0)) {
            let session = session.0;
            let what = format!("session {session} is granted twice under one token");
            self.violate(&what);
        }
    }

    /// A session has ended at this side.
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
    pub(super) fn check(&mut self, rpc: &mut Endpoint, now: Nanos) {
        let sound_from = self.sound_from;
        let overdue =
            |(_, deadline): &&(Nanos, Nanos)| now.since(sound_from.max(*deadline)) > SLACK;
        if self.changed || self.asked.values().any(|asked| overdue(&asked)) {
            self.changed = false;
            self.asked
                .retain(|session, _| rpc.session_info(*session).is_some_and(|info| !info.open));
            if self.asked.values().any(|asked| overdue(&asked)) {
                self.violate("a session connects after its deadline");
            }
            self.check_uses(rpc);
        }
    }

    fn check_uses(&mut self, rpc: &mut Endpoint) {
        let mut sessions = BTreeMap::new();
        for session in rpc.sessions() {
            if let Some(info) = rpc.session_info(session).filter(|info| info.open) {
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
                "{count} sessions use {peer:?}, which counts {uses}"
            ));
        } else if total != channels.all_uses() {
            let uses = channels.all_uses();
            self.violate(&format!(
                "{total} sessions use channels, which count {uses}"
            ));
        }
    }

    fn violate(&mut self, what: &str) {
        let port = self.port.0;
        self.violation.get_or_insert(format!("port {port}: {what}"));
    }
}
