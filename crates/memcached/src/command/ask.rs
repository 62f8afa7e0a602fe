//! Commands of one operation, and their operations on the table.

use dunlin_store::{Seconds, Verb, Version};

use crate::command::{Skip, TOO_LARGE};
use crate::meta::{KeyBytes, Meta};
use crate::operation::{Count, Emptying, Expiry, Look, Operation, Store};

/// A command that is one operation. `render` writes its answer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ask<'a> {
    /// One key of `get` and its variants.
    Get {
        key: &'a [u8],
        with_version: bool,
        touch: Option<Expiry>,
    },
    /// `set` and its variants.
    Update(Update<'a>),
    /// Commands that change an item without a value.
    Change(Change<'a>),
    MetaGet(Meta<'a>),
    MetaSet(MetaSet<'a>),
    MetaDelete(Meta<'a>),
    MetaCount(Meta<'a>),
    Inspect(KeyBytes<'a>),
    Flush {
        at: Seconds,
        is_quiet: bool,
    },
    Reset,
}

/// A text command that writes a value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Update<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) verb: Verb,
    pub(crate) flags: u32,
    pub(crate) expiry: Expiry,
    pub(crate) len: usize,
    pub(crate) if_version: Option<Version>,
    pub(crate) is_quiet: bool,
}

/// A text command that changes an item without a value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Change<'a> {
    Delete {
        key: &'a [u8],
        is_quiet: bool,
    },
    Touch {
        key: &'a [u8],
        expiry: Expiry,
        is_quiet: bool,
    },
    Count {
        key: &'a [u8],
        by: u64,
        is_down: bool,
        is_quiet: bool,
    },
}

/// `ms`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MetaSet<'a> {
    pub(crate) meta: Meta<'a>,
    pub(crate) verb: Verb,
    pub(crate) len: usize,
}

impl<'a> Ask<'a> {
    /// The length of the value that follows the line, if one does.
    pub(crate) fn value_len(&self) -> Option<usize> {
        match self {
            Self::Update(update) => Some(update.len),
            Self::MetaSet(set) => Some(set.len),
            _ => None,
        }
    }

    /// The refusal of a value that is too long. A set deletes the item that it was meant to
    /// replace.
    pub(crate) fn refusal(&self) -> Skip<'a> {
        let (deletes, is_quiet) = match self {
            Self::Update(update) => {
                let replaces = update.verb == Verb::Set && update.if_version.is_none();
                (
                    replaces.then(|| KeyBytes::text(update.key)),
                    update.is_quiet,
                )
            }
            Self::MetaSet(set) => (Some(*set.meta.key()), false),
            _ => (None, false),
        };
        let len = self.value_len().unwrap_or(0);
        Skip {
            text: TOO_LARGE,
            is_quiet,
            len: u32::try_from(len).expect("a length was read as 31 bits"),
            deletes,
        }
    }

    /// True if the client wants no answer at all, not even an error.
    pub(crate) fn is_silent(&self) -> bool {
        match self {
            Self::Update(update) => update.is_quiet,
            Self::Change(
                Change::Delete { is_quiet, .. }
                | Change::Touch { is_quiet, .. }
                | Change::Count { is_quiet, .. },
            ) => *is_quiet,
            _ => false,
        }
    }

    /// The operation; `value` is empty if none follows.
    pub(crate) fn operation<'o>(&'o self, value: &'o [u8]) -> Operation<'o> {
        match self {
            Self::Get { key, touch, .. } => Operation::Get { key, touch: *touch },
            Self::Update(update) => Operation::Write(update.store(value)),
            Self::Change(change) => change.operation(),
            Self::MetaGet(meta) => look(meta),
            Self::MetaSet(set) => Operation::Write(set.store(value)),
            Self::MetaDelete(meta) => delete(meta),
            Self::MetaCount(meta) => count(meta),
            Self::Inspect(key) => Operation::Inspect { key: key.bytes() },
            Self::Flush { at, .. } => Operation::Flush { at: *at },
            Self::Reset => Operation::Reset,
        }
    }
}

impl<'a> Update<'a> {
    fn store(&self, value: &'a [u8]) -> Store<'a> {
        Store {
            key: self.key,
            value,
            verb: self.verb,
            flags: self.flags,
            expiry: self.expiry,
            if_version: self.if_version,
            stale_if_older: false,
            version: None,
            vivify: None,
        }
    }
}

impl MetaSet<'_> {
    /// Whether the command compares the version like `cas`. Such a command answers a missing item
    /// with a different error.
    pub(crate) fn compares(&self) -> bool {
        let is_plain = matches!(self.verb, Verb::Set | Verb::Replace);
        is_plain && self.meta.options().if_version.is_some()
    }

    fn store<'a>(&'a self, value: &'a [u8]) -> Store<'a> {
        let options = self.meta.options();
        let if_version = match self.verb {
            Verb::Set | Verb::Replace => options.if_version,
            Verb::Add => None,
            Verb::Append | Verb::Prepend => options.if_version.filter(|version| version.0 != 0),
        };
        Store {
            key: self.meta.key().bytes(),
            value,
            verb: self.verb,
            flags: options.client_flags,
            expiry: options.touch.flatten(),
            if_version,
            stale_if_older: options.invalidates && self.compares(),
            version: options.version,
            vivify: options.vivify,
        }
    }
}

impl Change<'_> {
    fn operation(&self) -> Operation<'_> {
        match *self {
            Self::Delete { key, .. } => Operation::Delete {
                key,
                if_version: None,
            },
            Self::Touch { key, expiry, .. } => Operation::Touch { key, expiry },
            Self::Count {
                key, by, is_down, ..
            } => Operation::Count(Count {
                key,
                by,
                is_down,
                if_version: None,
                initial: 0,
                steps: crate::operation::Steps::default(),
                version: None,
            }),
        }
    }
}

fn look<'a>(meta: &'a Meta<'_>) -> Operation<'a> {
    let options = meta.options();
    Operation::Look(Look {
        key: meta.key().bytes(),
        steps: options.steps,
        counts: !options.leaves_no_trace,
        version: options.version,
    })
}

fn delete<'a>(meta: &'a Meta<'_>) -> Operation<'a> {
    let (options, key) = (meta.options(), meta.key().bytes());
    if options.empties {
        return Operation::Empty(Emptying {
            key,
            if_version: options.if_version,
            flags: options.client_flags,
            expiry: options.touch.flatten(),
            version: options.version,
            invalidates: options.invalidates,
        });
    }
    if options.invalidates {
        return Operation::Invalidate {
            key,
            if_version: options.if_version,
            touch: options.touch,
            version: options.version,
        };
    }
    Operation::Delete {
        key,
        if_version: options.if_version,
    }
}

fn count<'a>(meta: &'a Meta<'_>) -> Operation<'a> {
    let options = meta.options();
    Operation::Count(Count {
        key: meta.key().bytes(),
        by: options.by.unwrap_or(1),
        is_down: matches!(options.mode, b'D' | b'-'),
        if_version: options.if_version.filter(|version| version.0 != 0),
        initial: options.initial,
        steps: options.steps,
        version: options.version,
    })
}
