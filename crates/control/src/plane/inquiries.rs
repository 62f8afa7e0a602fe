//! Inquiries about the fates of unanswered requests, over the control connection, which packets
//! cannot influence (rule C11).
//!
//! An endpoint whose thread is in a handler cannot answer. So every inquiry has a time by which the
//! endpoint must answer; after that the plane answers that the endpoint is away, and since when.
//! The endpoint publishes nothing for this purpose: the unread inquiry in its queue is proof
//! enough.
//!
//! Invariants: an endpoint has at most one inquiry about a session in its queue, however often the
//! peer asks. For each of its own inquiries it gets one account, or its session ends.

use dunlin_core::ordered::{Map, Set};
use dunlin_core::{Account, Nanos};
use dunlin_wire::ReqNum;
use dunlin_wire::control::{self as wire, Fate, Fates, Features, Inquiry, Message, Requests};

use super::Plane;
#[cfg(feature = "mutants")]
use crate::mutant::Mutant;
use crate::types::{Event, LinkId, SessionKey};

/// An inquiry of a peer that an endpoint has not answered.
#[derive(Clone, Copy, Debug)]
struct Posed {
    /// When the inquiry came.
    since: Nanos,
    /// The time until which the peer waits for an account; `None`: it does not wait.
    due: Option<Nanos>,
}

/// All inquiries of peers.
#[derive(Debug, Default)]
pub(super) struct Inquiries {
    posed: Map<SessionKey, Posed>,
    /// The inquiries with a `due`, in the order of that time.
    due: Set<(Nanos, SessionKey)>,
}

impl Inquiries {
    /// Takes a peer's inquiry. True if the endpoint does not yet have the question.
    fn pose(&mut self, key: SessionKey, now: Nanos, due: Nanos) -> bool {
        let known = self.posed.contains_key(&key);
        let posed = self.posed.get_or_insert(
            key,
            Posed {
                since: now,
                due: None,
            },
        );
        if posed.due.is_none() {
            posed.due = Some(due);
            self.due.insert((due, key));
        }
        !known
    }

    /// Forgets the inquiry, because the endpoint has answered or the session has ended. True if the
    /// peer waits for the answer.
    pub(super) fn take(&mut self, key: SessionKey) -> bool {
        let due = self.posed.remove(&key).and_then(|posed| posed.due);
        due.is_some_and(|due| self.due.remove(&(due, key)))
    }

    /// Takes the next inquiry that has waited too long for its endpoint, and returns how long it
    /// has waited.
    fn pop_due(&mut self, now: Nanos) -> Option<(SessionKey, Nanos)> {
        let first = self.due.first().filter(|(at, _)| *at <= now);
        let (at, key) = *first?;
        self.due.remove(&(at, key));
        let posed = self.posed.get_mut(&key)?;
        posed.due = None;
        Some((key, now.since(posed.since)))
    }

    pub(super) fn next_due(&self) -> Nanos {
        self.due.first().map_or(Nanos::MAX, |(at, _)| *at)
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.posed.is_empty() && self.due.is_empty()
    }
}

impl<F> Plane<F> {
    /// Sends an endpoint's question about requests of its session.
    pub(super) fn inquire(&mut self, key: SessionKey, requests: &[ReqNum]) {
        let Some(open) = self.sessions.get_mut(key) else {
            // The session's end is on the way to the endpoint.
            return;
        };
        let (link, session) = (open.link, open.remote);
        open.inquires = true;
        let peer = self.links.get(&link).and_then(|link| link.peer.as_ref());
        let answers = peer.is_some_and(|peer| peer.features.has(Features::INQUIRY));
        let mut bytes = [0; _];
        let sent = match Requests::list(requests, &mut bytes) {
            Some(requests) if answers => {
                let inquiry = Inquiry { session, requests };
                self.send(link, &Message::Inquiry(inquiry), Vec::new())
            }
            _ => false,
        };
        if !sent {
            self.give_account(key, Account::Nothing);
        }
    }

    pub(super) fn on_inquiry(&mut self, link: LinkId, inquiry: &Inquiry<'_>, now: Nanos) {
        let Some(key) = self.find(link, inquiry.session) else {
            self.counters.unknown_sessions += 1;
            return;
        };
        let patience = Nanos(self.config.heartbeat.timeout.0 / 8);
        #[cfg(feature = "mutants")]
        let patience = match self.mutant {
            Some(Mutant::AbsenceNotSaid) => Nanos::from_secs(1_000),
            _ => patience,
        };
        if self.inquiries.pose(key, now, now + patience) {
            let requests = inquiry.requests.iter().collect();
            self.tell(key.endpoint, Event::Inquired { key, requests });
        }
    }

    /// Takes an endpoint's account of the requests in an inquiry.
    pub(super) fn account(&mut self, key: SessionKey, fates: &[(ReqNum, Fate)]) {
        let waits = self.inquiries.take(key);
        let mut bytes = [0; _];
        if let (true, Some(fates)) = (waits, Fates::list(fates, &mut bytes)) {
            self.send_account(key, 0, fates);
        }
    }

    pub(super) fn on_account(&mut self, link: LinkId, account: &wire::Account<'_>) {
        let key = self.find(link, account.session);
        let open = key.and_then(|key| self.sessions.get_mut(key));
        // If the peer could send more accounts than there are inquiries, it could fill the
        // endpoint's queue.
        let (Some(key), true) = (key, open.is_some_and(|open| open.inquires)) else {
            self.counters.unknown_sessions += u64::from(key.is_none());
            return;
        };
        let account = match account.away {
            0 => Account::Fates(account.fates.iter().collect()),
            away => Account::Away(Nanos(away)),
        };
        self.give_account(key, account);
    }

    /// Answers for the endpoints that have left an inquiry unread for too long.
    pub(super) fn poll_inquiries(&mut self, now: Nanos) {
        while let Some((key, away)) = self.inquiries.pop_due(now) {
            self.counters.answered_for_busy += 1;
            self.send_account(key, away.0.max(1), Fates::NONE);
        }
    }

    fn give_account(&mut self, key: SessionKey, account: Account) {
        if let Some(open) = self.sessions.get_mut(key) {
            open.inquires = false;
            self.tell(key.endpoint, Event::Account { key, account });
        }
    }

    fn send_account(&mut self, key: SessionKey, away: u64, fates: Fates<'_>) {
        if let Some(open) = self.sessions.get(key) {
            let (link, session) = (open.link, open.remote);
            let account = wire::Account {
                session,
                away,
                fates,
            };
            self.send(link, &Message::Account(account), Vec::new());
        }
    }
}
