//! Operations that a connection asks of a partition, and their answers.
//!
//! A command becomes one operation, or one for each of its keys. If another thread's partition has
//! the key, the command goes there as an [`Errand`](crate::Errand) with a ticket, and the
//! connection keeps answers in the order of their tickets.

use dunlin_store::{Item, Seconds, Verb, Version, WriteError};

/// The number of a command of one connection that waits for other partitions. Numbers go up by one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct OperationTicket(pub(crate) u64);

/// When an item expires: `None` for never.
pub type Expiry = Option<Seconds>;

/// An order to a partition.
#[derive(Clone, Copy, Debug)]
pub enum Operation<'a> {
    /// Reads an item, and changes when it expires if `touch` is given.
    Get {
        /// Its key.
        key: &'a [u8],
        /// When it expires from now on.
        touch: Option<Expiry>,
    },
    /// `mg`: reads an item, or makes an empty one.
    Look(Look<'a>),
    /// Writes an item.
    Write(Store<'a>),
    /// Deletes an item.
    Delete {
        /// Its key.
        key: &'a [u8],
        /// If given, deletes the item only if it has this version.
        if_version: Option<Version>,
    },
    /// Marks an item as out of date.
    Invalidate {
        /// Its key.
        key: &'a [u8],
        /// If given, marks the item only if it has this version.
        if_version: Option<Version>,
        /// The item's new expiry; `None` leaves the old one.
        touch: Option<Expiry>,
        /// The version that it gets; `None`: the table's next one.
        version: Option<Version>,
    },
    /// Changes a counter.
    Count(Count<'a>),
    /// Changes when an item expires.
    Touch {
        /// Its key.
        key: &'a [u8],
        /// When it expires from now on.
        expiry: Expiry,
    },
    /// Reads an item without counting it as read.
    Inspect {
        /// Its key.
        key: &'a [u8],
    },
    /// Forgets all items of all partitions that were written before this second.
    Flush {
        /// The second.
        at: Seconds,
    },
    /// Sets to zero the figures of all partitions that count since the start.
    Reset,
}

/// A step of an operation that changes when an item expires. Steps keep the order of the client's
/// flags.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// The item then expires at this time.
    Touch(Expiry),
    /// If this operation has created the item, it expires at this time.
    Vivify(Expiry),
    /// If the item expires before this time, and no other client has the task, this client must
    /// write it anew.
    Recache(Expiry),
}

/// The most steps of one operation: one of each kind.
pub(crate) const MAX_STEPS: usize = 3;

/// The steps of an operation.
#[derive(Clone, Copy, Default, Debug)]
pub struct Steps {
    steps: [Option<Step>; MAX_STEPS],
}

/// A read with all that `mg` can ask for.
#[derive(Clone, Copy, Debug)]
pub struct Look<'a> {
    /// The key.
    pub key: &'a [u8],
    /// The steps that change its expiry.
    pub steps: Steps,
    /// False if the read does not count as a read of the item.
    pub counts: bool,
    /// The version that a new item gets; `None`: the table's next one.
    pub version: Option<Version>,
}

/// A write.
#[derive(Clone, Copy, Debug)]
pub struct Store<'a> {
    /// The key.
    pub key: &'a [u8],
    /// The value.
    pub value: &'a [u8],
    /// When the write happens.
    pub verb: Verb,
    /// The client's flags.
    pub flags: u32,
    /// When the item expires.
    pub expiry: Expiry,
    /// If given, the write happens only if there is an item with this version.
    pub if_version: Option<Version>,
    /// If the item has a newer version, replaces it all the same, and marks the new item as out of
    /// date.
    pub stale_if_older: bool,
    /// The version that the item gets; `None`: the table's next one.
    pub version: Option<Version>,
}

/// A change of a counter.
#[derive(Clone, Copy, Debug)]
pub struct Count<'a> {
    /// The key.
    pub key: &'a [u8],
    /// The amount.
    pub by: u64,
    /// True to count down.
    pub is_down: bool,
    /// If given, the counter changes only if it has this version.
    pub if_version: Option<Version>,
    /// The number of a new item, if [`Step::Vivify`] is one of the steps.
    pub initial: u64,
    /// The steps that change its expiry.
    pub steps: Steps,
    /// The version that the item gets; `None`: the table's next one.
    pub version: Option<Version>,
}

/// The outcome of an operation.
#[derive(Clone, Copy, Debug)]
pub enum Answer<'a> {
    /// There is no such item.
    Missing,
    /// The item, as it was before the operation changed its expiry and its marks.
    Found(Found<'a>),
    /// The outcome of a write.
    Written(Result<Version, WriteError>),
    /// The outcome of a count.
    Counted(Result<Counted, CountError>),
    /// It is done.
    Done,
    /// The item has another version.
    Differs,
}

/// An item that was found.
#[derive(Clone, Copy, Debug)]
pub struct Found<'a> {
    /// The item.
    pub item: Item<'a>,
    /// True if the operation has created the item.
    pub is_new: bool,
    /// True if this client must write the item anew.
    pub is_won: bool,
}

/// A counter that has changed.
#[derive(Clone, Copy, Debug)]
pub struct Counted {
    /// Its number now.
    pub number: u64,
    /// Its version now.
    pub version: Version,
    /// When it expired before the steps were taken.
    pub expiry: Expiry,
    /// True if the operation has created it.
    pub is_new: bool,
}

/// Why a counter did not change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CountError {
    /// There is no item.
    Missing,
    /// The item has another version.
    Differs,
    /// Its value is not a number.
    NotANumber,
    /// There is no memory for the item's new number or expiry.
    NoMemory,
    /// There is no memory for a new item.
    NoNewItem,
}

impl Steps {
    /// Appends a step; at most three fit.
    pub(crate) fn push(&mut self, step: Step) {
        let free = self.steps.iter_mut().find(|free| free.is_none());
        *free.expect("each kind of step comes once") = Some(step);
    }

    /// The steps in order.
    pub fn iter(&self) -> impl Iterator<Item = Step> {
        self.steps.into_iter().flatten()
    }

    /// An expiry that some step sets for an item that is new, or that was there before.
    pub(crate) fn latest(&self, is_new: bool) -> Expiry {
        let expiry = |step: Step| step.expiry(None, is_new);
        self.iter().filter_map(expiry).max()
    }

    /// True if a missing item is to be created.
    #[must_use]
    pub fn makes_item(&self) -> bool {
        self.iter().any(|step| matches!(step, Step::Vivify(_)))
    }

    /// True if the steps change the item's expiry.
    #[must_use]
    pub fn touches(&self) -> bool {
        self.iter().any(|step| matches!(step, Step::Touch(_)))
    }
}

impl Step {
    /// The expiry after this step of an item whose expiry was `before`.
    pub(crate) fn expiry(self, before: Expiry, is_new: bool) -> Expiry {
        match self {
            Self::Touch(expiry) => expiry,
            Self::Vivify(expiry) if is_new => expiry,
            Self::Vivify(_) | Self::Recache(_) => before,
        }
    }
}

impl<'a> Operation<'a> {
    /// The key whose partition runs the operation; `None` if all partitions run it.
    #[must_use]
    pub const fn key(&self) -> Option<&'a [u8]> {
        match self {
            Self::Get { key, .. }
            | Self::Delete { key, .. }
            | Self::Invalidate { key, .. }
            | Self::Touch { key, .. }
            | Self::Inspect { key } => Some(key),
            Self::Look(look) => Some(look.key),
            Self::Write(store) => Some(store.key),
            Self::Count(count) => Some(count.key),
            Self::Flush { .. } | Self::Reset => None,
        }
    }
}
