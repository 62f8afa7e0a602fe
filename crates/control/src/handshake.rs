//! The handshakes of one endpoint's sessions, from the request to connect until the session is
//! open, and the resources that each handshake returns at its end (rules C4 to C6).
//!
//! Three other parts carry out its [`Step`]s: the plane talks to the other process, the transport
//! makes and takes offers, and core owns the session itself. A session that this side asks for goes
//! through these stages:
//!
//! | stage | event | steps | next stage |
//! |---|---|---|---|
//! | none | `on_connect` | plane: Connect | Asked |
//! | Asked | Found | none | Waiting |
//! | Waiting | a turn of the channel | transport: Offer | Offering |
//! | Offering | `on_offered`: an offer | plane: Offer | Offered |
//! | Offering | `on_offered`: no offer | plane: Abandon; core: Close | failed |
//! | Offered | Accepted | transport, core: Complete | Completing |
//! | Completing | `on_completed`: open | none | open |
//! | Completing | `on_completed`: the answer is unusable | core: Rename | Renaming |
//! | Completing | the same, once too often or too late | plane: Disconnect; core: Close | failed |
//! | Completing | `on_completed`: the address is to be proven | plane: Challenge | Proving |
//! | Proving | Challenge | core: Challenge | Proving |
//! | Proving | Proven: yes | core: Open | Completing |
//! | Proving | Proven: no | Release; Unproven | Completing |
//! | Proving | Closed: by the peer's program | Release; core: Close | failed |
//! | Proving | Closed: otherwise | Release; Unproven | Completing |
//! | Completing | `on_completed`: unfit | Release; plane: Disconnect; core: Close | failed |
//! | Waiting, Offering, Offered | OfferVoid | transport: Abandon | Asked |
//! | Offered | OfferVoid, lost | transport: Abandon; core: Rename | Renaming |
//! | Renaming | `on_renamed` | plane: Connect, Abandon of the old name | Asked |
//! | any above | ConnectFailed | transport: Abandon; core: Close | failed |
//! | any above | `on_ended` | plane: Abandon; transport: Abandon | gone |
//! | Completing | Closed | core: Close, once it is open | open |
//! | all but Completing, Proving, open | Closed | none: a grant was given back before | same |
//! | open | Closed | core: Close | open |
//! | open | `on_ended` | plane: Disconnect; transport: Release or Remove | gone |
//!
//! If the peer may have granted a session before, this side asks for it again under another token,
//! so that late packets of the earlier grant do not belong to the later one (rule W5).
//!
//! Too often means more than [`MAX_RETRIES`] times; too late means after the wish's deadline.
//!
//! Inquiries about requests of open sessions (rule C11) only pass through: `Inquired` and `Account`
//! become one step each, and a question of core becomes one command.
//!
//! A session that the peer asks for has no stage. `Incoming` becomes one step, [`Step::Answer`];
//! its result ([`Handshake::on_answered`]) opens or refuses the session, or keeps the request until
//! the peer has proven its address (`handshake/proofs.rs`, rule C13). That file also decides which
//! challenges of the peer are answered.
//!
//! Invariants:
//! - Every offer that the transport made is completed or abandoned, exactly once.
//! - The transport counts one use of a peer for each open session with it.
//! - Each session that waits for its turn gets one: when a turn of a channel ends, the next begins.
//! - In any order of events, an event that does not fit the stage gives the caller an error and
//!   leaves no state behind.
//!
//! The sharing of channels is in `handshake/channels.rs`; `handshake/failed_grants.rs` handles
//! grants and attempts that fail. Called by `handshake/drive.rs`.

mod channels;
mod drive;
mod failed_grants;
mod failures;
mod proofs;
mod stages;
mod steps;

use std::collections::VecDeque;
use std::net::SocketAddr;

use dunlin_core::ordered::Map;
use dunlin_core::transport::PeerId;
use dunlin_core::{CloseReason, Closed, Nanos, Session};
use dunlin_wire::SessionNum;
use dunlin_wire::control::{EndpointIndex, RefuseCode};

#[cfg(feature = "mutants")]
use crate::mutant::Mutant;
use crate::types::{
    Command, ConnectFailure, ConnectTicket, Event, LinkId, PeerIdentity, SessionKey, Side,
};
use channels::{Channels, OtherEnd};
use failures::Failures;
use proofs::Unproven;
use stages::{Connecting, Stage};

pub use drive::{HalvesMut, Peering};
pub use failures::Overdue;
pub use stages::Wish;
pub use steps::{Answer, Completion, Step, WrongStage};

/// The most retries for a session that was granted and could not be completed.
pub const MAX_RETRIES: u32 = 3;

/// The handshakes of one endpoint. `F` stands for a descriptor, `P` for an offer that a transport
/// has made.
#[derive(Debug)]
pub struct Handshake<F, P> {
    endpoint: EndpointIndex,
    connecting: Map<SessionNum, Connecting<P>>,
    channels: Channels,
    failures: Failures,
    unproven: Map<ConnectTicket, Unproven<F>>,
    /// Challenges that were answered for open sessions.
    answered: Map<SessionKey, u8>,
    steps: VecDeque<Step<F, P>>,
    #[cfg(feature = "mutants")]
    mutant: Option<Mutant>,
}

impl<F, P> Handshake<F, P> {
    /// Makes the state of an endpoint that has no sessions.
    pub fn new(endpoint: EndpointIndex) -> Self {
        Self {
            endpoint,
            connecting: Map::new(),
            channels: Channels::default(),
            failures: Failures::default(),
            unproven: Map::new(),
            answered: Map::new(),
            steps: VecDeque::new(),
            #[cfg(feature = "mutants")]
            mutant: None,
        }
    }

    /// Switches a planted bug on or off.
    #[cfg(feature = "mutants")]
    pub fn plant(&mut self, mutant: Option<Mutant>) {
        self.mutant = mutant;
        self.channels.unlimited = self.shows(Mutant::OfferedTogether);
    }

    #[cfg(feature = "mutants")]
    fn shows(&self, mutant: Mutant) -> bool {
        self.mutant == Some(mutant)
    }

    /// The next step to take.
    pub fn next_step(&mut self) -> Option<Step<F, P>> {
        self.steps.pop_front()
    }

    /// The address at which a peer's nexus listens, and the peer's index there, where known.
    pub fn whereabouts(&self, peer: PeerId) -> (Option<SocketAddr>, Option<EndpointIndex>) {
        self.channels.whereabouts(peer)
    }

    /// Whether no session is connecting, and none is open.
    pub fn is_idle(&self) -> bool {
        self.connecting.is_empty()
            && self.unproven.is_empty()
            && self.answered.is_empty()
            && self.channels.is_empty()
    }

    /// The number of sessions that are connecting.
    pub fn connecting(&self) -> usize {
        self.connecting.len()
    }

    /// Begins a session for the user; core has opened it on this side.
    pub fn on_connect(&mut self, session: Session, key: SessionKey, wish: Wish) {
        self.ask(key, &wish);
        let entry = Connecting {
            session,
            key,
            wish,
            retries: 0,
            met: false,
            proofs: 0,
            stage: Stage::Asked,
        };
        self.connecting.insert(key.session, entry);
    }

    /// Takes an event from the plane. An event about a session that has ended changes nothing.
    ///
    /// # Errors
    /// [`WrongStage`]: the plane must not send this event now.
    pub fn on_event(&mut self, event: Event<F>) -> Result<(), WrongStage> {
        match event {
            Event::Found { key, via, peer } => self.on_found(key, via, peer),
            Event::OfferVoid { key, lost } => self.on_offer_void(key, lost),
            Event::Accepted { key, side } => self.on_accepted(key, side),
            Event::ConnectFailed { key, failure } => {
                self.on_failed(key, failure);
                Ok(())
            }
            Event::Incoming { ticket, peer, side } => {
                self.steps.push_back(Step::Answer { ticket, peer, side });
                Ok(())
            }
            Event::Closed { key, reason } => {
                self.on_closed(key, reason);
                Ok(())
            }
            Event::Inquired { key, requests } => {
                self.steps.push_back(Step::Inquired { key, requests });
                Ok(())
            }
            Event::Account { key, account } => {
                self.steps.push_back(Step::Account { key, account });
                Ok(())
            }
            Event::Challenge { proving, secret } => {
                self.on_challenge(proving, secret);
                Ok(())
            }
            Event::Proven { proving, proven } => {
                self.on_proven(proving, proven);
                Ok(())
            }
            // Only the program uses this event.
            Event::Serving { .. } => Ok(()),
        }
    }

    /// Takes the result of [`Step::Offer`]: an offer, or why there is none.
    pub fn on_offered(
        &mut self,
        key: SessionKey,
        via: LinkId,
        made: Result<(P, Side<F>), RefuseCode>,
    ) {
        let entry = self.named(key);
        let offering = entry.and_then(|entry| match entry.stage {
            Stage::Offering { via: asked, other } if asked == via => Some((entry, other)),
            _ => None,
        });
        match (offering, made) {
            (Some((entry, other)), Ok((pending, side))) => {
                entry.stage = Stage::Offered { other, pending };
                entry.proofs = 0;
                self.command(Command::Offer { key, via, side });
            }
            (Some(_), Err(code)) => {
                self.command(Command::Abandon { key });
                self.on_failed(key, ConnectFailure::Refused(code));
            }
            // The session and its turn have ended meanwhile.
            (None, Ok((pending, _))) => self.steps.push_back(Step::Abandon { pending }),
            (None, Err(_)) => {}
        }
    }

    /// Takes the result of [`Step::Complete`].
    pub fn on_completed(&mut self, key: SessionKey, done: Completion, now: Nanos) {
        let entry = self.take(key);
        let Some((entry, other, ended)) = entry.and_then(|entry| match entry.stage {
            Stage::Completing { other, ended } => Some((entry, other, ended)),
            _ => None,
        }) else {
            // The session and its turn have ended meanwhile.
            if let Completion::Open(peer)
            | Completion::Unfit(peer)
            | Completion::Unproven { peer, .. } = done
            {
                self.steps.push_back(Step::Release { peer });
            }
            return;
        };
        match done {
            Completion::Open(peer) => {
                self.channels.on_open(other, peer);
                if let Some(reason) = ended {
                    self.steps.push_back(Step::Close { key, reason });
                }
            }
            Completion::Unfit(peer) => {
                self.steps.push_back(Step::Release { peer });
                self.give_back(&entry, ConnectFailure::Refused(RefuseCode::BadParameters));
            }
            Completion::Unproven { peer, offer } => {
                return self.prove_grant(entry, other, (peer, offer), ended);
            }
            Completion::Failed(code) => self.on_unusable(entry, code, now),
        }
        // This comes last: the channel's state is removed with the last session that needs it.
        self.channels.on_turn_over(other);
        self.take_turns(other);
    }

    /// Takes the result of [`Step::Answer`].
    pub fn on_answered(&mut self, ticket: ConnectTicket, peer: &PeerIdentity, answer: Answer<F>) {
        match answer {
            Answer::Granted { peer: id, side } => {
                self.channels.meet(peer);
                self.channels.on_open(OtherEnd::of(peer), id);
                let key = SessionKey {
                    endpoint: self.endpoint,
                    session: side.offer.session,
                    token: side.offer.token,
                };
                self.command(Command::Accept { ticket, key, side });
            }
            Answer::NoRoom { peer, code } => {
                self.steps.push_back(Step::Release { peer });
                self.command(Command::Refuse { ticket, code });
            }
            Answer::Unproven { peer: id, side } => self.prove_request(ticket, *peer, id, side),
            Answer::NoWay(code) => self.command(Command::Refuse { ticket, code }),
        }
    }

    /// Takes core's report that a session has ended at this side.
    pub fn on_ended(&mut self, key: SessionKey, closed: &Closed) {
        let reason = closed.reason;
        self.answered.remove(&key);
        if let Some(remote) = closed.remote {
            if closed.tell {
                self.command(Command::Disconnect { key, reason });
            }
            let peer = remote.peer;
            let last = self.channels.on_ended(peer);
            let failed = matches!(reason, CloseReason::PeerFailed | CloseReason::Reset);
            // A session whose peer must still prove its address also uses the peer.
            let last = last && failed && !self.unproven().any(|other| other == peer);
            // A dead peer returns none of the shared resources.
            self.steps.push_back(match last {
                true => Step::Remove { peer },
                false => Step::Release { peer },
            });
        } else if let Some(entry) = self.take(key) {
            self.command(Command::Abandon { key });
            self.give_up(key.session, entry.stage);
        }
    }

    fn on_found(
        &mut self,
        key: SessionKey,
        via: LinkId,
        peer: PeerIdentity,
    ) -> Result<(), WrongStage> {
        let Some(entry) = self.named(key) else {
            return Ok(());
        };
        if !matches!(entry.stage, Stage::Asked) {
            return Err(WrongStage {
                key,
                event: "Found",
            });
        }
        entry.stage = Stage::Waiting { via, peer };
        entry.met = true;
        self.channels.meet(&peer);
        self.channels.queue(OtherEnd::of(&peer), key.session);
        self.take_turns(OtherEnd::of(&peer));
        Ok(())
    }

    fn on_offer_void(&mut self, key: SessionKey, lost: bool) -> Result<(), WrongStage> {
        #[cfg(feature = "mutants")]
        let kept = self.shows(Mutant::TokenKept);
        let Some(entry) = self.named(key) else {
            return Ok(());
        };
        let granted = matches!(
            entry.stage,
            Stage::Completing { .. } | Stage::Proving { .. }
        );
        if granted || matches!(entry.stage, Stage::Asked) {
            let event = "OfferVoid";
            return Err(WrongStage { key, event });
        }
        let renamed = lost && matches!(entry.stage, Stage::Offered { .. });
        #[cfg(feature = "mutants")]
        let renamed = renamed && !kept;
        let next = if renamed {
            Stage::Renaming
        } else {
            Stage::Asked
        };
        let stage = std::mem::replace(&mut entry.stage, next);
        if renamed {
            self.steps.push_back(Step::Rename { key });
        }
        #[cfg(feature = "mutants")]
        if let (Stage::Offered { other, .. }, true) =
            (&stage, self.shows(Mutant::OfferKeptAfterLoss))
        {
            self.channels.on_turn_over(*other);
            return Ok(());
        }
        self.give_up(key.session, stage);
        Ok(())
    }

    fn on_accepted(&mut self, key: SessionKey, side: Side<F>) -> Result<(), WrongStage> {
        let Some(entry) = self.named(key) else {
            // The session has ended: the plane knows, or will get the command soon.
            return Ok(());
        };
        match std::mem::replace(&mut entry.stage, Stage::Asked) {
            Stage::Offered { other, pending } => {
                entry.stage = Stage::Completing { other, ended: None };
                self.steps.push_back(Step::Complete { key, pending, side });
                Ok(())
            }
            stage => {
                self.give_up(key.session, stage);
                if let Some(entry) = self.take(key) {
                    let failure = ConnectFailure::Refused(RefuseCode::BadParameters);
                    self.give_back(&entry, failure);
                }
                let event = "Accepted";
                Err(WrongStage { key, event })
            }
        }
    }

    fn on_closed(&mut self, key: SessionKey, reason: CloseReason) {
        #[cfg(feature = "mutants")]
        let believed = self.shows(Mutant::StaleEndBelieved);
        let entry = self.connecting.get_mut(&key.session);
        let entry = entry.filter(|entry| entry.key == key);
        match entry.map(|entry| &mut entry.stage) {
            Some(Stage::Completing { ended, .. }) => *ended = Some(reason),
            Some(Stage::Proving { .. }) => self.on_unproven_closed(key, reason),
            #[cfg(feature = "mutants")]
            Some(_) if believed => self.steps.push_back(Step::Close { key, reason }),
            // A grant that this side gave back has ended at the peer too.
            Some(_) => {}
            None => self.steps.push_back(Step::Close { key, reason }),
        }
    }

    /// Gives back the resources of a stage, and passes its turn to the next session.
    fn give_up(&mut self, number: SessionNum, stage: Stage<P>) {
        let other = match stage {
            Stage::Asked | Stage::Renaming => return,
            Stage::Waiting { peer, .. } => {
                self.channels.leave_queue(OtherEnd::of(&peer), number);
                return;
            }
            Stage::Offering { other, .. } | Stage::Completing { other, .. } => other,
            Stage::Proving { other, peer, .. } => {
                self.steps.push_back(Step::Release { peer });
                other
            }
            Stage::Offered { other, pending } => {
                self.steps.push_back(Step::Abandon { pending });
                other
            }
        };
        self.channels.on_turn_over(other);
        self.take_turns(other);
    }

    /// Asks the transport for offers to an endpoint, one for each turn.
    fn take_turns(&mut self, other: OtherEnd) {
        while let Some(number) = self.channels.next_turn(other) {
            let Some(entry) = self.connecting.get_mut(&number) else {
                debug_assert!(false, "a session that ended leaves the queue");
                self.channels.on_turn_over(other);
                continue;
            };
            let Stage::Waiting { via, peer } = entry.stage else {
                debug_assert!(false, "only sessions that wait are in the queue");
                self.channels.on_turn_over(other);
                continue;
            };
            entry.stage = Stage::Offering { via, other };
            let key = entry.key;
            self.steps.push_back(Step::Offer { key, via, peer });
        }
    }

    /// Asks the plane for a session.
    fn ask(&mut self, key: SessionKey, wish: &Wish) {
        let (to, target, deadline) = (wish.to.clone(), wish.target, wish.deadline);
        self.command(Command::Connect {
            key,
            to,
            target,
            deadline,
        });
    }

    fn command(&mut self, command: Command<F>) {
        self.steps.push_back(Step::Command(command));
    }

    /// The session that a key names, if it is still connecting under this key.
    fn named(&mut self, key: SessionKey) -> Option<&mut Connecting<P>> {
        let entry = self.connecting.get_mut(&key.session);
        entry.filter(|entry| entry.key == key && !matches!(entry.stage, Stage::Renaming))
    }

    fn take(&mut self, key: SessionKey) -> Option<Connecting<P>> {
        let is_there = self.connecting.get(&key.session)?.key == key;
        is_there.then(|| self.connecting.remove(&key.session))?
    }
}

#[cfg(test)]
mod tests;
