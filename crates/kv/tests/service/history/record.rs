//! The operations of a run, with their times and outcomes, which clients record for the search, and
//! the values of keys.

use std::cell::RefCell;
use std::rc::Rc;

use dunlin_core::Nanos;

/// The number of keys of a run.
pub(crate) const KEYS: usize = 12;

/// The number of a value that no write leaves.
pub(crate) const TORN: u64 = 0;

/// The kind of a key's values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// Only decimal digits, so that the server can count.
    Counter,
    /// One packet.
    Short,
    /// Several slices, which are read one after the other.
    Long,
}

/// The kind of a key.
pub(crate) const fn kind(key: usize) -> Kind {
    match key {
        0..5 => Kind::Counter,
        5..10 => Kind::Short,
        _ => Kind::Long,
    }
}

/// The value that a write of `number` leaves at a key. Every part of it shows the number, so a
/// mixture of two writes is recognised.
pub(crate) fn value_of(key: usize, number: u64) -> Vec<u8> {
    let len = match kind(key) {
        Kind::Counter => return number.to_string().into_bytes(),
        Kind::Short => 64,
        // More than two slices. All values of the key have the same length, so the length of a
        // mixture does not reveal it.
        Kind::Long => 150_000,
    };
    let part = format!("{number:>15} ").into_bytes();
    part.into_iter().cycle().take(len).collect()
}

/// The number of the write that has left this value, or [`TORN`] if no write leaves such a value.
pub(crate) fn number_of(key: usize, value: &[u8]) -> u64 {
    let read = || {
        let first = value.get(..value.len().min(16))?;
        let number = std::str::from_utf8(first).ok()?.trim().parse().ok()?;
        let is_it = match kind(key) {
            // A counter that was counted down may have spaces at its end.
            Kind::Counter => value.len() <= 20,
            _ => value == value_of(key, number),
        };
        is_it.then_some(number)
    };
    read().unwrap_or(TORN)
}

/// An operation on a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Action {
    Get,
    /// Number and lifetime in seconds.
    Set(u64, u32),
    Add(u64),
    /// Number and version.
    Cas(u64, u64),
    /// Adds one.
    Count,
    Delete,
    /// The server stops, and all items are lost.
    Lose,
    /// The server has evicted the item with this version.
    Evict(u64),
}

/// The result of an operation that has one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    /// Number and version.
    Found(u64, u64),
    /// There was no item.
    Absent,
    /// There was an item.
    Present,
    /// The item had another version.
    Differs,
    /// The item's new version.
    Written(u64),
    /// The new number and version.
    Counted(u64, u64),
    Done,
    /// The operation may or may not have happened.
    Unknown,
}

/// An operation of a history. A key at one server is a register of its own: when the list of
/// servers changes, the key gets another owner, and its old item is still there when the first
/// owner comes back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operation {
    pub(crate) server: usize,
    pub(crate) key: usize,
    pub(crate) action: Action,
    pub(crate) begin: Nanos,
    /// [`Nanos::MAX`] if its outcome is unknown.
    pub(crate) end: Nanos,
    pub(crate) outcome: Outcome,
}

#[derive(Debug, Default)]
pub(crate) struct Record {
    pub(crate) operations: Vec<Operation>,
    pub(crate) violation: Option<String>,
    numbers: u64,
}

pub(crate) type Shared = Rc<RefCell<Record>>;

impl Record {
    /// A number that no other write of the run has.
    pub(crate) fn number(&mut self) -> u64 {
        self.numbers += 1;
        // A counter can increase from this number without reaching the next one.
        self.numbers * 10_007
    }

    pub(crate) fn violate(&mut self, what: String) {
        self.violation.get_or_insert(what);
    }
}

/// The bytes of a key.
pub(crate) fn key_bytes(key: usize) -> Vec<u8> {
    format!("key-{key}").into_bytes()
}
