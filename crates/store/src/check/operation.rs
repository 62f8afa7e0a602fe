//! The operations of a run, as proptest draws and shrinks them.

use proptest::prelude::*;

use crate::{SLICE, Verb};

/// The version that a conditional operation names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Condition {
    None,
    /// The version of the model's item.
    Current,
    /// One less than the version of the model's item.
    Older,
    /// A version that no item has.
    Wrong,
}

#[derive(Clone, Debug)]
pub(super) enum Operation {
    Get(u16),
    Write {
        key: u16,
        verb: Verb,
        content: Content,
        flags: u32,
        /// Seconds from now.
        lasts: Option<u32>,
        condition: Condition,
        stale_if_older: bool,
        /// Whether the write sets its own version.
        is_explicit: bool,
    },
    Delete(u16, Condition),
    Touch(u16, Option<u32>),
    Count(u16, bool, u64),
    Invalidate(u16, Condition),
    Claim(u16),
    Flush(u32),
    /// Sweeps this number of cache lines.
    Sweep(u64),
    /// Scans this number of buckets, from the place on where the previous step ended.
    ScanStep(usize),
    Wait(u32),
    /// Looks ahead at some keys, as a batch does, deletes and writes some of them, and gets all.
    Ahead(u16),
    /// Reads a value slice by slice, and writes a long value to a key after the first slice.
    Slices(u16, u16),
    /// Reads all keys from here on in one batch.
    GetBatch(u16, u16),
    /// Writes a long value in slices. Between two of them, gets its key, and writes other values of
    /// this length to the keys from another one on. If a number of slices is given, abandons the
    /// write after them.
    Parts {
        key: u16,
        verb: Verb,
        len: usize,
        condition: Condition,
        others: (u16, u16, usize),
        gives_up_after: Option<u16>,
    },
}

/// The bytes of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Content {
    Number(u64),
    Bytes { len: usize, from: u8 },
}

impl Content {
    pub(super) fn bytes(self) -> Vec<u8> {
        match self {
            Self::Number(number) => number.to_string().into_bytes(),
            Self::Bytes { len, from } => {
                let period: Vec<u8> = (0..251).map(|step| from.wrapping_add(step)).collect();
                let mut bytes = period.repeat(len.div_ceil(period.len()));
                bytes.truncate(len);
                bytes
            }
        }
    }
}

/// The bytes of key number `number`, of which there are 1 to 250.
pub(super) fn key_bytes(number: u16) -> Vec<u8> {
    let mut bytes = number.to_string().into_bytes();
    let len = (usize::from(number) * 37 % 250).max(bytes.len());
    bytes.resize(len, b'.');
    bytes
}

/// Operations on keys below `keys`, with values of up to `longest` bytes.
pub(super) fn operation(keys: u16, longest: usize) -> impl Strategy<Value = Operation> {
    let key = move || 0..keys;
    prop_oneof![
        8 => key().prop_map(Operation::Get),
        16 => write(keys, longest),
        3 => (key(), condition()).prop_map(|(key, on)| Operation::Delete(key, on)),
        2 => (key(), lasts()).prop_map(|(key, lasts)| Operation::Touch(key, lasts)),
        3 => (key(), any::<bool>(), number())
            .prop_map(|(key, up, by)| Operation::Count(key, up, by)),
        2 => (key(), condition()).prop_map(|(key, on)| Operation::Invalidate(key, on)),
        2 => key().prop_map(Operation::Claim),
        1 => prop_oneof![3 => Just(0), 1 => 1_u32..5].prop_map(Operation::Flush),
        2 => (0_u64..100).prop_map(Operation::Sweep),
        // Small steps, so that the smallest index grows during a scan.
        4 => prop_oneof![4 => 1_usize..12, 1 => 1_usize..500].prop_map(Operation::ScanStep),
        2 => (0_u32..4).prop_map(Operation::Wait),
        1 => key().prop_map(Operation::Ahead),
        1 => key().prop_map(|key| Operation::Slices(key, key)),
        1 => (key(), key()).prop_map(|(key, other)| Operation::Slices(key, other)),
        1 => (key(), 0_u16..100).prop_map(|(from, count)| Operation::GetBatch(from, count)),
        1 => parts(keys),
    ]
}

fn parts(keys: u16) -> impl Strategy<Value = Operation> {
    let others = (0..keys, 0_u16..6, 0_usize..SLICE + 5000);
    let fields = (
        0..keys,
        verb(),
        prop_oneof![3 => SLICE..3 * SLICE, 1 => 1..SLICE],
        condition(),
        others,
        proptest::option::weighted(0.2, 0_u16..4),
    );
    fields.prop_map(
        |(key, verb, len, condition, others, gives_up_after)| Operation::Parts {
            key,
            verb,
            len,
            condition,
            others,
            gives_up_after,
        },
    )
}

fn write(keys: u16, longest: usize) -> impl Strategy<Value = Operation> {
    let fields = (
        0..keys,
        verb(),
        content(longest),
        any::<u32>(),
        lasts(),
        condition(),
        any::<bool>(),
        proptest::bool::weighted(0.1),
    );
    fields.prop_map(
        |(key, verb, content, flags, lasts, condition, stale_if_older, is_explicit)| {
            Operation::Write {
                key,
                verb,
                content,
                flags,
                lasts,
                condition,
                stale_if_older,
                is_explicit,
            }
        },
    )
}

fn verb() -> impl Strategy<Value = Verb> {
    prop_oneof![
        8 => Just(Verb::Set),
        2 => Just(Verb::Add),
        1 => Just(Verb::Replace),
        1 => Just(Verb::Append),
        1 => Just(Verb::Prepend),
    ]
}

fn content(longest: usize) -> impl Strategy<Value = Content> {
    let bytes = |len| (len, any::<u8>()).prop_map(|(len, from)| Content::Bytes { len, from });
    prop_oneof![
        2 => number().prop_map(Content::Number),
        6 => bytes(0..64.min(longest)),
        2 => bytes(0..1024.min(longest)),
        1 => bytes(0..longest),
    ]
}

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![0..200_u64, any::<u64>(), Just(u64::MAX)]
}

fn condition() -> impl Strategy<Value = Condition> {
    prop_oneof![
        6 => Just(Condition::None),
        2 => Just(Condition::Current),
        1 => Just(Condition::Older),
        1 => Just(Condition::Wrong),
    ]
}

fn lasts() -> impl Strategy<Value = Option<u32>> {
    prop_oneof![3 => Just(None), 2 => (0_u32..8).prop_map(Some)]
}
