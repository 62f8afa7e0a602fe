//! Turns, and checks that the handshake's state equals the model's.

use super::*;

impl Model {
    /// Lets waiting sessions begin offers, in the order in which they were found: one at a time to
    /// each peer until a session with it is open, then up to `MAX_OFFERS` together.
    pub(super) fn turns(&mut self) {
        let waiting = std::mem::take(&mut self.found);
        for number in waiting {
            let Some(Stands::Waiting(peer, via)) = self.stands.get(&number).copied() else {
                continue;
            };
            let under_way = self.count(|stands| {
                matches!(stands, Stands::Offering(it, _) | Stands::Offered(it, _)
                    | Stands::Completing(it, _) | Stands::Proving(it)
                    | Stands::Opening(it, _) if it == peer)
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

    pub(super) fn check(&self) {
        for (number, stands) in &self.stands {
            let entry = self.tested.connecting.get(&SessionNum(*number));
            let fits = match (stands, entry.map(|entry| &entry.stage)) {
                (Stands::Asked, Some(Stage::Asked))
                | (Stands::Renaming, Some(Stage::Renaming))
                | (Stands::Open(_), None) => true,
                (Stands::Waiting(at, _), Some(Stage::Waiting { peer, .. })) => {
                    peer.endpoint == uid(*at)
                }
                (Stands::Offering(at, _), Some(Stage::Offering { other, .. })) => {
                    *other == end(*at)
                }
                (Stands::Offered(_, offer), Some(Stage::Offered { pending, .. })) => {
                    offer == pending
                }
                (
                    Stands::Completing(_, over) | Stands::Opening(_, over),
                    Some(Stage::Completing { ended, .. }),
                ) => *over == ended.is_some(),
                (Stands::Proving(at), Some(Stage::Proving { other, .. })) => *other == end(*at),
                _ => false,
            };
            assert!(fits, "session {number}: {stands:?} is {entry:?}");
        }
        let open = self.count(|stands| matches!(stands, Stands::Open(_)));
        assert_eq!(self.tested.connecting(), self.stands.len() - open);
        let proving = self.count(|stands| matches!(stands, Stands::Proving(_)));
        assert_eq!(self.tested.unproven().count(), proving);
        for (peer, uses) in &self.uses {
            let with = self.count(|stands| {
                matches!(stands, Stands::Open(it) | Stands::Proving(it) if u32::from(it) == *peer)
            });
            let opens =
                |step: &&Taken| matches!(step, Step::Open { peer: it, .. } if it.0 == *peer);
            let with = with + self.late.iter().filter(opens).count();
            assert_eq!(usize::try_from(*uses), Ok(with), "uses of peer {peer}");
        }
    }

    /// Ends everything: nothing may be left.
    pub(super) fn finish(&mut self) {
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
        let left = (&self.offers, &self.attempts);
        assert_eq!(
            left,
            (&BTreeSet::new(), &BTreeSet::new()),
            "offers, attempts"
        );
        assert!(self.tested.channels.is_empty());
    }
}
