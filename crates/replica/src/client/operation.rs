//! An operation of a client that has not ended.

use dunlin_core::Nanos;

use super::options::{Error, Token};
use crate::wire::{self, Answer, MAX_KEY, MAX_VALUE, Name, Request};

/// A change of a key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Change {
    /// Writes the key, whether it has a value or not.
    Put(Vec<u8>),
    /// Removes the key.
    Delete,
    /// Writes the key if its item has this version; version 0: if it has none.
    CompareAndSet(u64, Vec<u8>),
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// The client's own request for a name.
    Open,
    Get,
    Change(Change),
}

#[derive(Debug)]
pub(super) struct Operation {
    pub(super) kind: Kind,
    key: Vec<u8>,
    pub(super) token: Token,
    pub(super) deadline: Nanos,
    /// Client and number of a write that has been sent.
    pub(super) name: Option<(u64, u64)>,
    /// Calls of it that a replica may have taken.
    pub(super) attempts: u32,
    /// Replicas in a row that could not read it.
    pub(super) refusals: usize,
    /// It was sent to another replica without a pause.
    pub(super) is_redirected: bool,
    /// The lane on which it was sent last.
    pub(super) lane: usize,
    /// Bytes of the answer for which there is room.
    pub(super) room: usize,
}

impl Operation {
    pub(super) fn new(
        kind: Kind,
        key: &[u8],
        token: Token,
        deadline: Nanos,
        expected_value: usize,
    ) -> Result<Self, Error> {
        if !(1..=MAX_KEY).contains(&key.len()) {
            return Err(Error::BadKey);
        }
        if let Kind::Change(Change::Put(value) | Change::CompareAndSet(_, value)) = &kind
            && value.len() > MAX_VALUE
        {
            return Err(Error::TooLong);
        }
        let value = match kind {
            Kind::Get => expected_value,
            _ => wire::MAX_ADDRESS,
        };
        Ok(Self {
            kind,
            key: key.to_vec(),
            token,
            deadline,
            name: None,
            attempts: 0,
            refusals: 0,
            is_redirected: false,
            lane: 0,
            room: Answer::HEAD + value.max(wire::MAX_ADDRESS),
        })
    }

    /// The client's own request for a name.
    pub(super) const fn opening(deadline: Nanos) -> Self {
        Self {
            kind: Kind::Open,
            key: Vec::new(),
            token: Token(0),
            deadline,
            name: None,
            attempts: 0,
            refusals: 0,
            is_redirected: false,
            lane: 0,
            room: Answer::HEAD + wire::MAX_ADDRESS,
        }
    }

    pub(super) const fn is_change(&self) -> bool {
        matches!(self.kind, Kind::Change(_))
    }

    /// Whether the cluster may make a change for it, or has made it.
    pub(super) const fn may_change(&self) -> bool {
        self.is_change() && self.attempts > 0
    }

    pub(super) fn to_bytes(&self, name: Option<Name>) -> Vec<u8> {
        let operation = match &self.kind {
            Kind::Open => wire::Operation::Open,
            Kind::Get => wire::Operation::Get,
            Kind::Change(Change::Put(value)) => wire::Operation::Put(value),
            Kind::Change(Change::Delete) => wire::Operation::Delete,
            Kind::Change(Change::CompareAndSet(version, value)) => {
                wire::Operation::CompareAndSet(*version, value)
            }
        };
        let request = Request {
            name,
            key: &self.key,
            operation,
        };
        request.to_bytes()
    }
}
