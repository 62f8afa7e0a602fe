//! Random histories against a model without counters: the stages of all sessions determine which
//! offers are under way, how many sessions share a channel, and what must be left at the end.

use std::collections::{BTreeMap, BTreeSet};

use dunlin_core::Rng;
use proptest::prelude::*;

use super::*;
use crate::types::Proving;

mod checks;

/// Number of other endpoints.
const PEERS: u32 = 3;

/// The stage of a session, by the table in the header of `handshake.rs`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stands {
    Asked,
    Renaming,
    Waiting(u8, LinkId),
    Offering(u8, LinkId),
    Offered(u8, u64),
    Completing(u8, bool),
    Proving(u8),
    /// Completing after a proof: the transport already counts a use.
    Opening(u8, bool),
    Open(u8),
}

struct Model {
    tested: Tested,
    rng: Rng,
    stands: BTreeMap<u32, Stands>,
    /// Sessions in the order in which they were found.
    found: Vec<u32>,
    retries: BTreeMap<u32, u32>,
    /// How many times each session has got another token.
    names: BTreeMap<u32, u32>,
    last: u32,
    last_offer: u64,
    /// Offers that the transport has made and that are neither completed nor abandoned.
    offers: BTreeSet<u64>,
    /// Uses of each peer that the transport counts.
    uses: BTreeMap<u32, u32>,
    /// Attempts and sessions of the plane.
    attempts: BTreeSet<SessionKey>,
    opened: BTreeSet<SessionKey>,
    /// Steps whose results come late, because the transport is slow.
    late: Vec<Taken>,
}

impl Model {
    fn new(seed: u64) -> Self {
        Self {
            tested: fresh(),
            rng: Rng::new(seed),
            stands: BTreeMap::new(),
            found: Vec::new(),
            retries: BTreeMap::new(),
            names: BTreeMap::new(),
            last: 0,
            last_offer: 0,
            offers: BTreeSet::new(),
            uses: BTreeMap::new(),
            attempts: BTreeSet::new(),
            opened: BTreeSet::new(),
            late: Vec::new(),
        }
    }

    fn key(&self, number: u32) -> SessionKey {
        let token = Token(self.names.get(&number).copied().unwrap_or(0));
        SessionKey {
            token,
            ..key(number)
        }
    }

    fn below(&mut self, limit: usize) -> usize {
        let limit = u32::try_from(limit).unwrap();
        usize::try_from(self.rng.below(limit)).unwrap()
    }

    /// Makes one event that the plane, core, the user or the transport may have now.
    fn act(&mut self) {
        if self.below(4) == 0 || self.stands.is_empty() {
            self.last += 1;
            self.stands.insert(self.last, Stands::Asked);
            self.tested
                .on_connect(Session::NONE, self.key(self.last), wish());
        } else if self.below(3) > 0 && !self.late.is_empty() {
            let at = self.below(self.late.len());
            let step = self.late.remove(at);
            self.result(step);
        } else {
            let at = self.below(self.stands.len());
            let (number, stands) = self.stands.iter().nth(at).unwrap();
            let (number, stands) = (*number, *stands);
            self.event(number, stands);
        }
        // Takes the turns before core closes sessions that ended while they were completing.
        self.turns();
        self.take();
        self.check();
    }

    fn event(&mut self, number: u32, stands: Stands) {
        let key = self.key(number);
        let chance = self.below(8);
        if chance == 0 {
            return self.end(number, stands);
        }
        let attempt = matches!(
            stands,
            Stands::Asked | Stands::Waiting(..) | Stands::Offering(..) | Stands::Offered(..)
        );
        if chance == 1 && attempt {
            let failure = ConnectFailure::Unreachable;
            self.attempts.remove(&key);
            self.forget(number);
            let failed = Event::ConnectFailed { key, failure };
            return self.tested.on_event(failed).unwrap();
        }
        match stands {
            Stands::Asked => {
                let peer = u8::try_from(self.rng.below(PEERS)).unwrap();
                let via = LinkId(u64::from(self.rng.next_u32()));
                self.stands.insert(number, Stands::Waiting(peer, via));
                self.found.push(number);
                let peer = identity(peer);
                self.tested
                    .on_event(Event::Found { key, via, peer })
                    .unwrap();
            }
            Stands::Offered(peer, _) if chance > 2 => {
                self.attempts.remove(&key);
                self.opened.insert(key);
                self.stands.insert(number, Stands::Completing(peer, false));
                let side = side(number);
                self.tested.on_event(Event::Accepted { key, side }).unwrap();
            }
            Stands::Waiting(..) | Stands::Offering(..) | Stands::Offered(..) => {
                self.found.retain(|found| *found != number);
                let lost = self.below(2) == 0;
                let next = match stands {
                    Stands::Offered(..) if lost => {
                        // The plane makes the session wait for the next connection.
                        Stands::Renaming
                    }
                    _ => Stands::Asked,
                };
                self.stands.insert(number, next);
                self.tested
                    .on_event(Event::OfferVoid { key, lost })
                    .unwrap();
            }
            Stands::Completing(..)
            | Stands::Proving(_)
            | Stands::Opening(..)
            | Stands::Open(_)
            | Stands::Renaming => self.after_grant(number, stands, chance),
        }
    }

    /// Makes an event of a session that the peer has granted, or that gets another token.
    fn after_grant(&mut self, number: u32, stands: Stands, chance: usize) {
        let key = self.key(number);
        match stands {
            Stands::Proving(peer) if chance > 2 => self.prove(number, peer),
            Stands::Proving(peer) if self.opened.remove(&key) => {
                let reason = if self.below(2) == 0 {
                    self.forget(number);
                    CloseReason::Disconnected
                } else {
                    self.stands.insert(number, Stands::Completing(peer, false));
                    CloseReason::PeerFailed
                };
                self.tested.on_event(Event::Closed { key, reason }).unwrap();
            }
            Stands::Completing(peer, _) | Stands::Opening(peer, _) if self.opened.remove(&key) => {
                let over = match stands {
                    Stands::Completing(..) => Stands::Completing(peer, true),
                    _ => Stands::Opening(peer, true),
                };
                self.stands.insert(number, over);
                let reason = CloseReason::PeerFailed;
                self.tested.on_event(Event::Closed { key, reason }).unwrap();
            }
            Stands::Open(_) if self.opened.remove(&key) => {
                let reason = CloseReason::Reset;
                self.tested.on_event(Event::Closed { key, reason }).unwrap();
            }
            _ => {}
        }
    }

    /// The plane asks for a challenge to be sent, or reports how the proof has ended.
    fn prove(&mut self, number: u32, peer: u8) {
        let proving = Proving::Granted(self.key(number));
        let event = match self.below(3) {
            0 => {
                let secret = u64::from(self.rng.next_u32());
                Event::Challenge { proving, secret }
            }
            ends => {
                let proven = ends == 1;
                let next = match proven {
                    true => Stands::Opening(peer, false),
                    false => Stands::Completing(peer, false),
                };
                self.stands.insert(number, next);
                Event::Proven { proving, proven }
            }
        };
        self.tested.on_event(event).unwrap();
    }

    /// The user or core ends the session.
    fn end(&mut self, number: u32, stands: Stands) {
        self.forget(number);
        let reasons = [
            CloseReason::Disconnected,
            CloseReason::PeerFailed,
            CloseReason::Reset,
        ];
        let reason = reasons[self.below(3)];
        let peer = match stands {
            Stands::Open(peer) => Some(u32::from(peer)),
            _ => None,
        };
        let key = self.key(number);
        let tell = self.opened.contains(&key);
        self.tested.on_ended(key, &closed(reason, peer, tell));
    }

    fn forget(&mut self, number: u32) {
        self.stands.remove(&number);
        self.found.retain(|found| *found != number);
    }

    /// Reports the transport's result of a step.
    fn result(&mut self, step: Taken) {
        match step {
            Step::Offer { key, via, peer } => {
                let (number, peer) = (key.session.0, peer.endpoint.0[0]);
                let waits = self.stands.get(&number) == Some(&Stands::Offering(peer, via));
                if self.below(6) == 0 {
                    if waits {
                        self.forget(number);
                    }
                    let made = Err(RefuseCode::Busy);
                    return self.tested.on_offered(key, via, made);
                }
                self.last_offer += 1;
                let offer = self.last_offer;
                self.offers.insert(offer);
                if waits {
                    self.stands.insert(number, Stands::Offered(peer, offer));
                }
                self.tested.on_offered(key, via, Ok((offer, side(number))));
            }
            Step::Complete { key, pending, .. } => {
                assert!(self.offers.remove(&pending), "each offer is completed once");
                self.completed(key);
            }
            Step::Open { key, peer, .. } => {
                let done = match self.below(5) {
                    0 => Completion::Unfit(peer),
                    _ => Completion::Open(peer),
                };
                self.finish_completing(key, done);
            }
            Step::Unproven { key } => {
                self.finish_completing(key, Completion::Failed(RefuseCode::UnprovenAddress));
            }
            Step::Rename { key: old } => {
                let number = old.session.0;
                let waits = self.stands.get(&number) == Some(&Stands::Renaming);
                if waits {
                    *self.names.entry(number).or_default() += 1;
                    self.stands.insert(number, Stands::Asked);
                }
                let new = waits.then(|| self.key(number));
                self.tested.on_renamed(old, new);
            }
            other => panic!("{other:?} has no result"),
        }
    }

    fn completed(&mut self, key: SessionKey) {
        let number = key.session.0;
        let stands = self.stands.get(&number).copied();
        let peer = match stands {
            Some(Stands::Completing(peer, _)) => peer,
            _ => 0,
        };
        let fails = self.below(3) == 0;
        if !fails {
            *self.uses.entry(u32::from(peer)).or_default() += 1;
        }
        let id = PeerId(u32::from(peer));
        let offer = side(number + 1000).offer;
        let done = match (fails, self.below(5)) {
            (true, _) => Completion::Failed(RefuseCode::Busy),
            (false, 0) => Completion::Unfit(id),
            (false, 1) => Completion::Unproven { peer: id, offer },
            (false, _) => Completion::Open(id),
        };
        self.finish_completing(key, done);
    }

    /// Reports the result of completing a session.
    fn finish_completing(&mut self, key: SessionKey, done: Completion) {
        self.tested.on_completed(key, done, NOW);
        let number = key.session.0;
        let stands = self.stands.get(&number).copied();
        let stands = stands.filter(|_| self.key(number) == key);
        let retries = self.retries.entry(number).or_default();
        match (stands, done) {
            (Some(Stands::Completing(peer, _) | Stands::Opening(peer, _)), Completion::Open(_)) => {
                self.stands.insert(number, Stands::Open(peer));
            }
            (Some(Stands::Completing(peer, over)), Completion::Unproven { .. }) => {
                let next = match over {
                    true => Stands::Completing(peer, false),
                    false => Stands::Proving(peer),
                };
                self.stands.insert(number, next);
            }
            (Some(Stands::Completing(..)), Completion::Failed(_)) if *retries < MAX_RETRIES => {
                *retries += 1;
                self.found.retain(|found| *found != number);
                self.stands.insert(number, Stands::Renaming);
            }
            (Some(Stands::Completing(..) | Stands::Opening(..)), _) => self.forget(number),
            _ => {}
        }
    }

    /// Takes the steps. Steps of the plane and core take effect now, those with a result later.
    fn take(&mut self) {
        for step in steps(&mut self.tested) {
            match step {
                Step::Offer { .. }
                | Step::Complete { .. }
                | Step::Open { .. }
                | Step::Unproven { .. }
                | Step::Rename { .. } => self.late.push(step),
                Step::Challenge { peer, to, .. } => self.challenged(peer, to),
                Step::Abandon { pending } => assert!(self.offers.remove(&pending)),
                Step::Release { peer } | Step::Remove { peer } => {
                    *self.uses.get_mut(&peer.0).unwrap() -= 1;
                }
                Step::Command(command) => self.command(&command),
                Step::Close { key, reason } => self.close(key, reason),
                Step::Account { .. } => panic!("no session has asked"),
                Step::Answer { .. } | Step::Admit { .. } | Step::Inquired { .. } => {
                    panic!("no other side has asked")
                }
            }
        }
    }

    /// Checks that a challenge goes to the peer of a session that waits for its proof, with the
    /// peer's numbers.
    fn challenged(&self, peer: PeerId, (session, token): (SessionNum, Token)) {
        let ours = session.0 - 1000;
        let proves = Stands::Proving(u8::try_from(peer.0).unwrap());
        assert_eq!(self.stands.get(&ours), Some(&proves));
        assert_eq!(token, side(session.0).offer.token);
    }

    fn close(&mut self, key: SessionKey, reason: CloseReason) {
        // Core reports that a session has ended, unless core ended it because of a failure.
        if let Some(Stands::Open(peer)) = self.stands.get(&key.session.0).copied() {
            self.forget(key.session.0);
            let closed = closed(reason, Some(u32::from(peer)), false);
            self.tested.on_ended(key, &closed);
            self.take();
        }
    }

    fn command(&mut self, command: &Command<u32>) {
        match command {
            Command::Connect { key, .. } => {
                assert!(
                    self.attempts.insert(*key),
                    "the session was asked for twice"
                );
                assert!(!self.opened.contains(key), "the session is already open");
            }
            Command::Abandon { key } => {
                // The session may have been granted: then the plane disconnects it.
                self.attempts.remove(key);
                self.opened.remove(key);
            }
            Command::Disconnect { key, .. } => {
                self.opened.remove(key);
            }
            Command::Offer { key, .. } => assert!(self.attempts.contains(key)),
            Command::Challenge {
                proving: Proving::Granted(key),
            } => assert!(self.opened.contains(key), "the session was granted"),
            Command::Challenge { .. } => panic!("no other side has asked"),
            Command::Prove { .. } => panic!("no challenge has come"),
            Command::Inquire { .. } => panic!("no session has asked"),
            Command::Accept { .. } | Command::Refuse { .. } | Command::Account { .. } => {
                panic!("no other side has asked")
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn the_handshake_obeys_its_table(seed in any::<u64>(), events in 1_usize..600) {
        let mut model = Model::new(seed);
        for _ in 0..events {
            model.act();
        }
        model.finish();
    }
}
