//! Items that leave on their own. A checker of histories needs these events: without them, a miss
//! would look like a lost write.

use std::fmt;

use crate::item::Version;

/// The reason why an item left although no client deleted it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    /// The item was the oldest one, and the log needed its memory.
    Evicted,
    /// The index had no memory for another entry in the item's chain, in which this item was the
    /// oldest.
    Crowded,
    /// The item has expired.
    Expired,
    /// A flush has removed the item.
    Flushed,
}

/// An item that leaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Departure<'a> {
    /// The item's key.
    pub key: &'a [u8],
    /// The item's version.
    pub version: Version,
    /// The reason why the item leaves.
    pub reason: Reason,
}

type See = dyn FnMut(Departure<'_>) + Send;

/// The function that is called with departures, if there is one.
#[derive(Default)]
pub(super) struct Watcher(Option<Box<See>>);

impl Watcher {
    pub(super) fn new(see: impl FnMut(Departure<'_>) + Send + 'static) -> Self {
        Self(Some(Box::new(see)))
    }

    pub(super) fn see(&mut self, departure: Departure<'_>) {
        if let Some(see) = &mut self.0 {
            see(departure);
        }
    }
}

impl fmt::Debug for Watcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Watcher({})", self.0.is_some())
    }
}
