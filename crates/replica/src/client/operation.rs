//! An operation of a client that has not ended.

use dunlin_core::{Cx, Nanos};
use dunlin_keys::Key;
use dunlin_msgbuf::{AllocError, MsgBuf};

use super::options::{Error, Token};
use crate::wire::{self, Answer, Compare, MAX_KEY, MAX_VALUE, Name, Request, Steps, Write};

/// The time of a call doubles at most this number of times.
const MOST_DOUBLINGS: u32 = 10;

/// A change of a key, or of several.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Change {
    /// Writes the key, whether or not it has a value.
    Put(Vec<u8>),
    /// Removes the key.
    Delete,
    /// Writes the key if its item has this version; version 0: if it has no item.
    CompareAndSet(u64, Vec<u8>),
    /// Writes the key for this number of milliseconds of the log's time, 1 at least.
    PutFor(u64, Vec<u8>),
    /// Makes the writes of [`Change::transaction`] atomically. Its key is empty.
    Transact(Vec<u8>),
}

impl Change {
    /// A transaction: makes all writes, or none if a key does not have the version that its compare
    /// names.
    ///
    /// ```
    /// use dunlin_replica::{Change, Compare, Write};
    ///
    /// // Renames a key, if the old key still has version 7 and the new one is free.
    /// let compares = [Compare { key: b"a", version: 7 }, Compare { key: b"b", version: 0 }];
    /// let put = Write::Put { key: b"b", value: b"dunlin", lifetime: 0 };
    /// let change = Change::transaction(&compares, &[Write::Delete { key: b"a" }, put]);
    /// # assert!(matches!(change, Change::Transact(_)));
    /// ```
    #[must_use]
    pub fn transaction(compares: &[Compare<'_>], writes: &[Write<'_>]) -> Self {
        Self::Transact(Steps::encode(compares, writes))
    }

    /// The reason why every replica would refuse the change, if there is one.
    fn fault(&self, key: &[u8]) -> Option<Error> {
        let is_key = (1..=MAX_KEY).contains(&key.len());
        match self {
            Self::Transact(_) if !key.is_empty() => Some(Error::BadKey),
            Self::Transact(steps) => Steps::decode(steps).is_err().then_some(Error::BadSteps),
            _ if !is_key => Some(Error::BadKey),
            Self::Delete => None,
            Self::PutFor(lifetime, _) if !(1..=wire::MAX_LIFETIME).contains(lifetime) => {
                Some(Error::BadLifetime)
            }
            Self::Put(value) | Self::CompareAndSet(_, value) | Self::PutFor(_, value) => {
                (value.len() > MAX_VALUE).then_some(Error::TooLong)
            }
        }
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// The client's own request for a name.
    Open,
    Get,
    /// Items after a key.
    Range {
        limit: u32,
        after: Vec<u8>,
    },
    /// Changes by entries from an index on.
    Watch(u64),
    Change(Change),
}

impl Kind {
    pub(super) const fn is_read(&self) -> bool {
        matches!(self, Self::Get | Self::Range { .. } | Self::Watch(_))
    }

    /// The reason why every replica would refuse the operation, if there is one.
    fn fault(&self, key: &[u8]) -> Option<Error> {
        let is_bad = match self {
            Self::Change(change) => return change.fault(key),
            Self::Range { limit, .. } if !(1..=wire::MAX_ITEMS).contains(limit) => {
                return Some(Error::BadLimit);
            }
            Self::Range { after, .. } => key.len() > MAX_KEY || after.len() > MAX_KEY,
            Self::Watch(from) => key.len() > MAX_KEY || *from > wire::MAX_INDEX,
            Self::Get | Self::Open => !(1..=MAX_KEY).contains(&key.len()),
        };
        is_bad.then_some(Error::BadKey)
    }
}

#[derive(Debug)]
pub(super) struct Operation {
    pub(super) kind: Kind,
    key: Key,
    pub(super) token: Token,
    pub(super) deadline: Nanos,
    /// The client and number that name a write, once it has been sent.
    pub(super) name: Option<(u64, u64)>,
    /// Calls that a replica may have taken.
    pub(super) attempts: u32,
    /// Calls that have passed their deadline, by lane.
    silences: Vec<u32>,
    /// Replicas in a row that could not decode the operation.
    pub(super) refusals: usize,
    /// True after a redirect to another replica without a pause.
    pub(super) is_redirected: bool,
    /// The lane on which it was sent last.
    pub(super) lane: usize,
    /// Bytes of room for the answer.
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
        if let Some(fault) = kind.fault(key) {
            return Err(fault);
        }
        let value = match kind {
            Kind::Get => expected_value,
            Kind::Range { .. } | Kind::Watch(_) => wire::PAGE,
            _ => wire::MAX_ADDRESS,
        };
        Ok(Self {
            kind,
            key: Key::from(key),
            token,
            deadline,
            name: None,
            attempts: 0,
            silences: Vec::new(),
            refusals: 0,
            is_redirected: false,
            lane: 0,
            room: Answer::HEAD + value.max(wire::MAX_ADDRESS),
        })
    }

    /// The client's own request for a name.
    pub(super) fn opening(deadline: Nanos) -> Self {
        Self {
            kind: Kind::Open,
            key: Key::from(&[][..]),
            token: Token(0),
            deadline,
            name: None,
            attempts: 0,
            silences: Vec::new(),
            refusals: 0,
            is_redirected: false,
            lane: 0,
            room: Answer::HEAD + wire::MAX_ADDRESS,
        }
    }

    /// The timeout of a call on a lane, where the first call has `first`. Each call of a write is a
    /// log entry of its own, which is answered only when a majority of the disks has it, the
    /// leader's among them. If they take longer than `first`, a call with that timeout would never
    /// be answered.
    ///
    /// Each lane has a count of its own. So a replica that is cut off neither lengthens the timeout
    /// on other lanes nor resets the leader's.
    pub(super) fn attempt(&self, lane: usize, first: Nanos) -> Nanos {
        match self.silences.get(lane) {
            Some(count) if !self.kind.is_read() => first.times(1 << count.min(&MOST_DOUBLINGS)),
            _ => first,
        }
    }

    /// Notes that the call has passed its deadline.
    pub(super) fn on_silence(&mut self) {
        if self.silences.len() <= self.lane {
            self.silences.resize(self.lane + 1, 0);
        }
        self.silences[self.lane] += 1;
    }

    pub(super) const fn is_change(&self) -> bool {
        matches!(self.kind, Kind::Change(_))
    }

    /// Whether the cluster may apply, or may have applied, a change for this operation.
    pub(super) const fn may_change(&self) -> bool {
        self.is_change() && self.attempts > 0
    }

    /// Makes the msgbuf with the request of a call.
    pub(super) fn encode(&self, name: Option<Name>, cx: &mut Cx<'_>) -> Result<MsgBuf, AllocError> {
        let operation = match &self.kind {
            Kind::Open => wire::Operation::Open,
            Kind::Get => wire::Operation::Get,
            Kind::Range { limit, after } => wire::Operation::Range(*limit, after),
            Kind::Watch(from) => wire::Operation::Watch(*from),
            Kind::Change(Change::PutFor(lifetime, value)) => {
                wire::Operation::PutFor(*lifetime, value)
            }
            Kind::Change(Change::Transact(steps)) => {
                let steps = Steps::decode(steps);
                wire::Operation::Transact(steps.expect("they were read when it began"))
            }
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
        let mut buf = cx.buf(request.size())?;
        request.write_into(buf.data_mut());
        Ok(buf)
    }
}

#[cfg(test)]
mod tests;
