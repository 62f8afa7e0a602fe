//! Operations that a connection asks of a partition, and their answers.
//!
//! A command becomes one operation, or one for each of its keys. If another thread's partition has
//! the key, the command goes there as an [`Errand`](crate::Errand) with a ticket. The connection
//! keeps answers in ticket order.

use dunlin_store::{Item, SLICE, Seconds, Verb, Version, WriteError};

/// The number of an operation that waits for other partitions. A connection numbers these one after
/// the other.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct OperationTicket(pub(crate) u64);

/// When an item expires: `None` for never.
pub type Expiry = Option<Seconds>;

/// A request to a partition.
#[derive(Clone, Copy, Debug)]
pub enum Operation<'a> {
    /// Reads an item. With `touch`, also sets its expiry.
    Get {
        /// Its key.
        key: &'a [u8],
        /// Its new expiry.
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
    /// Replaces an item's value by an empty one.
    Empty(Emptying<'a>),
    /// Marks an item as out of date.
    Invalidate {
        /// Its key.
        key: &'a [u8],
        /// If given, marks the item only if it has this version.
        if_version: Option<Version>,
        /// The item's new expiry; `None` leaves the old one.
        touch: Option<Expiry>,
        /// The item's new version; `None`: the table's next one.
        version: Option<Version>,
    },
    /// Changes a counter.
    Count(Count<'a>),
    /// Sets an item's expiry.
    Touch {
        /// Its key.
        key: &'a [u8],
        /// Its new expiry.
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
    /// Resets the counts in all partitions, for memcached's clients; the table's own counts, which
    /// other tools show, go on.
    Reset,
}

/// A step of an operation: it sets the item's expiry, or compares it with a time. Steps keep the
/// order of the client's flags.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// The item then expires at this time.
    Touch(Expiry),
    /// The item expires at this time if the operation has created it.
    Vivify(Expiry),
    /// If the item expires before this time, and no other client has the task, this client must
    /// rewrite it.
    Recache(Expiry),
}

/// The most steps of one operation: one of each kind.
pub(crate) const MAX_STEPS: usize = 3;

/// The steps of an operation.
#[derive(Clone, Copy, Default, Debug)]
pub struct Steps {
    steps: [Option<Step>; MAX_STEPS],
}

/// A read with all options of `mg`.
#[derive(Clone, Copy, Debug)]
pub struct Look<'a> {
    /// The key.
    pub key: &'a [u8],
    /// The steps that change its expiry.
    pub steps: Steps,
    /// Whether this counts as a read of the item.
    pub counts: bool,
    /// The version of a new item; `None`: the table's next one.
    pub version: Option<Version>,
}

/// A write.
#[derive(Clone, Copy, Debug)]
pub struct Store<'a> {
    /// The key.
    pub key: &'a [u8],
    /// The value.
    pub value: &'a [u8],
    /// The condition for the write, and its effect on an existing value.
    pub verb: Verb,
    /// The client's flags.
    pub flags: u32,
    /// When the item expires.
    pub expiry: Expiry,
    /// If given, the write happens only if there is an item with this version.
    pub if_version: Option<Version>,
    /// Whether the write replaces even an item with a newer version, and then marks the new item as
    /// out of date.
    pub stale_if_older: bool,
    /// The item's new version; `None`: the table's next one.
    pub version: Option<Version>,
    /// If given, an append or prepend without an item makes one, which then expires at this time.
    pub vivify: Option<Expiry>,
}

/// How an item loses its value.
#[derive(Clone, Copy, Debug)]
pub struct Emptying<'a> {
    /// The key.
    pub key: &'a [u8],
    /// If given, the item changes only if it has this version.
    pub if_version: Option<Version>,
    /// The item's new flags.
    pub flags: u32,
    /// When the item expires.
    pub expiry: Expiry,
    /// The item's new version; `None`: it keeps its version.
    pub version: Option<Version>,
    /// Whether the item is then marked as out of date.
    pub invalidates: bool,
}

/// A value that was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Written {
    /// The item's version.
    pub version: Version,
    /// The length of its value, with the bytes to which an append or prepend has added others.
    pub len: usize,
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
    /// The number of a new item, if the steps include [`Step::Vivify`].
    pub initial: u64,
    /// The steps that change its expiry.
    pub steps: Steps,
    /// The item's new version; `None`: the table's next one.
    pub version: Option<Version>,
}

/// The result of an operation.
#[derive(Clone, Copy, Debug)]
pub enum Answer<'a> {
    /// There is no such item.
    Missing,
    /// The item, as it was before the operation changed its expiry and its marks.
    Found(Found<'a>),
    /// The result of a write.
    Written(Result<Written, WriteError>),
    /// The result of a count.
    Counted(Result<Counted, CountError>),
    /// The operation has succeeded.
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
    /// Whether this client must rewrite the item.
    pub is_won: bool,
}

/// A counter that has changed.
#[derive(Clone, Copy, Debug)]
pub struct Counted {
    /// Its number now.
    pub number: u64,
    /// Its version now.
    pub version: Version,
    /// Its expiry before the steps.
    pub expiry: Expiry,
    /// True if the operation has created it.
    pub is_new: bool,
}

/// The reason why a counter did not change.
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

impl Store<'_> {
    /// Whether the item's value may be longer than a slice.
    pub(crate) fn may_be_long(&self) -> bool {
        self.value.len() > SLICE || self.verb.joins()
    }
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

    /// The latest time that a step may set as the expiry; `is_new`: for a new item. `None` if the
    /// steps set no time.
    pub(crate) fn latest(&self, is_new: bool) -> Expiry {
        let expiry = |step: Step| step.expiry(None, is_new);
        self.iter().filter_map(expiry).max()
    }

    /// Whether the operation creates a missing item.
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
    /// An item's expiry after this step, if it was `before`.
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
            Self::Empty(emptying) => Some(emptying.key),
            Self::Write(store) => Some(store.key),
            Self::Count(count) => Some(count.key),
            Self::Flush { .. } | Self::Reset => None,
        }
    }

    /// Whether a read ends its own item: the item's new expiry is not in the future. The value can
    /// then be read only now.
    pub(crate) fn ends_item(&self, now: Seconds) -> bool {
        let is_past = |expiry: Expiry| expiry.is_some_and(|at| at <= now);
        match self {
            Self::Get { touch, .. } => touch.is_some_and(is_past),
            Self::Look(look) => is_past(look.steps.latest(false)),
            _ => false,
        }
    }
}
