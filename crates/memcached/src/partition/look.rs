//! `mg`: reads an item, or makes an empty one, and decides which client rewrites it.

use dunlin_store::{Item, Seconds, Stamp, Verb, Write};

use crate::operation::{Answer, Expiry, Found, Look, Step, Steps};
use crate::partition::Partition;

/// A value that is copied in slices.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LongValue {
    /// The stamp of its write, which prevents slices of two values from being mixed.
    pub(crate) stamp: Stamp,
    pub(crate) len: usize,
}

impl LongValue {
    /// The value of an item, if it is longer than a slice.
    pub(crate) fn of(item: &Item<'_>) -> Option<Self> {
        let (stamp, len) = (item.stamp()?, item.value().len());
        Some(Self { stamp, len })
    }
}

/// The result of all steps of a read.
struct Outcome {
    expiry: Expiry,
    is_won: bool,
}

impl Partition<'_> {
    /// Appends the next slice of a value, whose first `from` bytes are already copied, and returns
    /// the slice's length. `None`: the item now has another value, or is gone.
    pub(crate) fn copy_slice(
        &mut self,
        key: &[u8],
        stamp: Stamp,
        from: usize,
        out: &mut Vec<u8>,
        now: Seconds,
    ) -> Option<usize> {
        let key = self.key(key);
        self.table.append_slice(&key, stamp, from, out, now)
    }

    pub(super) fn look<T>(
        &mut self,
        look: &Look<'_>,
        now: Seconds,
        see: impl FnOnce(&Answer<'_>) -> T,
    ) -> T {
        let key = self.key(look.key);
        let mut is_new = false;
        if look.steps.makes_item() && self.table.peek(&key, now).is_none() {
            let empty = Write {
                verb: Verb::Add,
                version: look.version,
                ..Write::set(b"")
            };
            is_new = self.table.write(&key, &empty, now).is_ok();
        }
        match self.make_room(&key, look.steps.latest(is_new), now) {
            Ok(()) => {}
            // memcached answers with a miss if it has no memory for a new item.
            Err(_) if is_new => {
                self.take_back(&key, now);
                is_new = false;
            }
            Err(error) => return see(&Answer::Written(Err(error))),
        }
        let item = if look.counts {
            self.table.get(&key, now)
        } else {
            self.table.peek(&key, now)
        };
        self.ledger
            .figures
            .on_get(item.is_some(), look.steps.touches());
        let Some(item) = item else {
            return see(&Answer::Missing);
        };
        let before = item.expiry();
        let outcome = outcome(&look.steps, &item, is_new);
        let found = Found {
            item,
            is_new,
            is_won: outcome.is_won,
        };
        let seen = see(&Answer::Found(found));
        // The answer shows the item as it was before.
        if outcome.is_won {
            self.table.claim(&key, now);
        }
        if outcome.expiry != before {
            self.change_expiry(&key, outcome.expiry, now);
        }
        seen
    }
}

fn outcome(steps: &Steps, item: &Item<'_>, is_new: bool) -> Outcome {
    let (mut expiry, mut is_won) = (item.expiry(), is_new);
    for step in steps.iter() {
        expiry = step.expiry(expiry, is_new);
        if let (Step::Recache(Some(until)), Some(at)) = (step, expiry) {
            is_won |= !is_new && !item.is_claimed() && at < until;
        }
    }
    is_won |= item.is_stale() && !item.is_claimed();
    Outcome { expiry, is_won }
}
