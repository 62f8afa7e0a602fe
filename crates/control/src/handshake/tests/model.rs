//! Random histories against a model without counters: the stages of all sessions determine which
//! offers are under way, how many sessions share a channel, and what is left at the end.

use std::collections::{BTreeMap, BTreeSet};

use dunlin_core::Rng;
use proptest::prelude::*;

use super::*;

/// Endpoints at other sides.
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
    Open(u8),
}

struct Model {
    tested: Tested,
    rng: Rng,
    stands: BTreeMap<u32, Stands>,
    /// Sessions in the order in which they were found.
    found: Vec<u32>,
    retries: BTreeMap<u32, u32>,
    /// How often a session has got another token.
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
    /// Steps whose result is late, because the transport is slow.
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
        // Takes the turns before core ends sessions that were over before they were open.
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
        let attempt = !matches!(
            stands,
            Stands::Completing(..) | Stands::Open(_) | Stands::Renaming
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
                        // The plane makes it wait for the next connection.
                        Stands::Renaming
                    }
                    _ => Stands::Asked,
                };
                self.stands.insert(number, next);
                self.tested
                    .on_event(Event::OfferVoid { key, lost })
                    .unwrap();
            }
            Stands::Completing(peer, _) if self.opened.remove(&key) => {
                self.stands.insert(number, Stands::Completing(peer, true));
                let reason = CloseReason::PeerFailed;
                self.tested.on_event(Event::Closed { key, reason }).unwrap();
            }
            Stands::Open(_) if self.opened.remove(&key) => {
                let reason = CloseReason::Reset;
                self.tested.on_event(Event::Closed { key, reason }).unwrap();
            }
            Stands::Completing(..) | Stands::Open(_) | Stands::Renaming => {}
        }
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

    /// Gives the transport's result of a step.
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
                assert!(self.offers.remove(&pending), "it is completed once");
                self.completed(key);
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
        let done = match (fails, self.below(5)) {
            (true, _) => Completion::Failed(RefuseCode::Busy),
            (false, 0) => Completion::Unfit(id),
            (false, _) => Completion::Open(id),
        };
        let retries = self.retries.entry(number).or_default();
        match (stands, done) {
            (Some(Stands::Completing(..)), Completion::Open(_)) => {
                self.stands.insert(number, Stands::Open(peer));
            }
            (Some(Stands::Completing(..)), Completion::Failed(_)) if *retries < MAX_RETRIES => {
                *retries += 1;
                self.found.retain(|found| *found != number);
                self.stands.insert(number, Stands::Renaming);
            }
            (Some(Stands::Completing(..)), _) => self.forget(number),
            _ => {}
        }
        self.tested.on_completed(key, done, NOW);
    }

    /// Takes the steps: those of the plane and core at once, those with a result later.
    fn take(&mut self) {
        for step in steps(&mut self.tested) {
            match step {
                Step::Offer { .. } | Step::Complete { .. } | Step::Rename { .. } => {
                    self.late.push(step);
                }
                Step::Abandon { pending } => assert!(self.offers.remove(&pending)),
                Step::Release { peer } | Step::Remove { peer } => {
                    *self.uses.get_mut(&peer.0).unwrap() -= 1;
                }
                Step::Command(command) => self.command(&command),
                Step::Close { key, reason } => self.close(key, reason),
                Step::Account { .. } => panic!("no session has asked"),
                Step::Answer { .. } | Step::Inquired { .. } => panic!("no other side has asked"),
            }
        }
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
                assert!(self.attempts.insert(*key), "asked for twice");
                assert!(!self.opened.contains(key), "it is open");
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
            Command::Inquire { .. } => panic!("no session has asked"),
            Command::Accept { .. } | Command::Refuse { .. } | Command::Account { .. } => {
                panic!("no other side has asked")
            }
        }
    }

    /// Gives turns to sessions, by the stages of all.
    fn turns(&mut self) {
        let waiting = std::mem::take(&mut self.found);
        for number in waiting {
            let Some(Stands::Waiting(peer, via)) = self.stands.get(&number).copied() else {
                continue;
            };
            let under_way = self.count(|stands| {
                matches!(stands, Stands::Offering(it, _) | Stands::Offered(it, _)
                    | Stands::Completing(it, _) if it == peer)
            });
            let live = self.count(|stands| stands == Stands::Open(peer));
            if under_way == 0 || (live > 0 && under_way < MAX_OFFERS) {
                self.stands.insert(number, Stands::Offering(peer, via));
            } else {
                self.found.push(number);
            }
        }
    }

    fn count(&self, which: impl Fn(Stands) -> bool) -> usize {
        self.stands
            .values()
            .filter(|stands| which(**stands))
            .count()
    }

    fn check(&self) {
        for (number, stands) in &self.stands {
            let entry = self.tested.connecting.get(&SessionNum(*number));
            let fits = match (stands, entry.map(|entry| &entry.stage)) {
                (Stands::Asked, Some(Stage::Asked))
                | (Stands::Renaming, Some(Stage::Renaming))
                | (Stands::Open(_), None) => true,
                (Stands::Waiting(at, _), Some(Stage::Waiting { peer, .. })) => {
                    peer.endpoint == uid(*at)
                }
                (Stands::Offering(at, _), Some(Stage::Offering { uid: to, .. })) => *to == uid(*at),
                (Stands::Offered(_, offer), Some(Stage::Offered { pending, .. })) => {
                    offer == pending
                }
                (Stands::Completing(_, over), Some(Stage::Completing { ended, .. })) => {
                    *over == ended.is_some()
                }
                _ => false,
            };
            assert!(fits, "session {number}: {stands:?} is {entry:?}");
        }
        let open = self.count(|stands| matches!(stands, Stands::Open(_)));
        assert_eq!(self.tested.connecting(), self.stands.len() - open);
        for (peer, uses) in &self.uses {
            let with =
                self.count(|stands| matches!(stands, Stands::Open(it) if u32::from(it) == *peer));
            assert_eq!(usize::try_from(*uses), Ok(with), "uses of peer {peer}");
        }
    }

    /// Ends everything: nothing may be left.
    fn finish(&mut self) {
        while let Some((number, stands)) = self.stands.first_key_value() {
            let (number, stands) = (*number, *stands);
            self.end(number, stands);
            self.turns();
            self.take();
        }
        while let Some(step) = self.late.pop() {
            self.result(step);
            self.turns();
            self.take();
        }
        self.check();
        assert_eq!(
            self.offers,
            BTreeSet::new(),
            "offers that are neither used nor abandoned"
        );
        assert_eq!(self.attempts, BTreeSet::new(), "attempts of the plane");
        assert!(self.tested.channels.is_empty());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn the_handshake_is_what_its_table_says(seed in any::<u64>(), events in 1_usize..600) {
        let mut model = Model::new(seed);
        for _ in 0..events {
            model.act();
        }
        model.finish();
    }
}
