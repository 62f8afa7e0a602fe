//! The judge of turns on shared sessions: while a channel waits and may have more attempts, each
//! other channel begins one attempt at most. So a channel whose calls fill the sessions delays a
//! call of another channel by one attempt.
//!
//! Called by the channels of a client.

use std::collections::BTreeMap;

use dunlin_channel::{Member, TrunkId};

#[derive(Clone, Debug, Default)]
struct Standing {
    /// Attempts that have begun and have not ended.
    issued: u32,
    /// `Some`: the member waits. The attempts that others have begun since then.
    waits: Option<BTreeMap<Member, u32>>,
}

pub(super) struct Turns {
    all: BTreeMap<(TrunkId, Member), Standing>,
    /// Every member may have this many attempts, whatever the number of sessions.
    owed: u32,
    violation: Option<String>,
}

impl Turns {
    /// `window`: that of each session. One of several members leaves an eighth of the room.
    pub(super) const fn new(window: u32) -> Self {
        Self {
            all: BTreeMap::new(),
            owed: window - window / 8,
            violation: None,
        }
    }

    pub(super) const fn take_violation(&mut self) -> Option<String> {
        self.violation.take()
    }

    /// A member has an attempt that waits.
    pub(super) fn on_wait(&mut self, trunk: TrunkId, member: Member) {
        let standing = self.all.entry((trunk, member)).or_default();
        standing.waits.get_or_insert_default();
    }

    /// It is a member's turn.
    pub(super) fn on_turn(&mut self, trunk: TrunkId, member: Member) {
        self.all.entry((trunk, member)).or_default().waits = None;
    }

    /// An attempt of a member begins.
    pub(super) fn on_attempt(&mut self, trunk: TrunkId, member: Member) {
        let others = self.all.iter_mut();
        let others = others.filter(|((of, other), _)| *of == trunk && *other != member);
        for ((_, other), standing) in others {
            let owes = standing.issued < self.owed;
            let Some(begun) = standing.waits.as_mut().filter(|_| owes) else {
                continue;
            };
            let count = begun.entry(member).or_default();
            *count += 1;
            if *count > 1 {
                let what = format!("{member:?} begins a second attempt while {other:?} waits");
                self.violation.get_or_insert(what);
            }
        }
        self.all.entry((trunk, member)).or_default().issued += 1;
    }

    pub(super) fn on_attempt_end(&mut self, trunk: TrunkId, member: Member) {
        if let Some(standing) = self.all.get_mut(&(trunk, member)) {
            standing.issued -= 1;
        }
    }

    /// A member has left its trunk, or has lost it.
    pub(super) fn on_leave(&mut self, trunk: TrunkId, member: Member) {
        self.all.remove(&(trunk, member));
    }
}
