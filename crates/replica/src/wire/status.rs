//! The state of a replica, as it reports it.

use super::cursor::{Cursor, put_words};
use super::format::{Malformed, VERSION};
use super::roster::Roster;

/// The part of a replica in its cluster.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// It belongs to no cluster: it waits for a bootstrap.
    Idle,
    /// It follows a leader, or waits for one.
    Follower,
    /// It asks for votes.
    Candidate,
    /// It leads.
    Leader,
}

/// The state of a replica.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Status {
    /// Its number.
    pub id: u64,
    /// Its part.
    pub role: Role,
    /// Its term.
    pub term: u64,
    /// The number of the leader; 0: it knows none.
    pub leader: u64,
    /// The last entry of its log.
    pub last: u64,
    /// The last entry that it knows to be committed.
    pub committed: u64,
    /// The last entry that its items contain.
    pub applied: u64,
    /// The first entry that its log still has.
    pub first: u64,
    /// Keys that have an item.
    pub keys: u64,
    /// The digest of the items that a restore has left, for a new cluster; 0: it has none, or
    /// belongs to a cluster.
    pub items: u64,
    /// The cluster; `None` if it belongs to none.
    pub members: Option<Roster>,
}

impl Status {
    /// The state of a replica that belongs to no cluster.
    #[must_use]
    pub const fn idle(id: u64) -> Self {
        Self {
            id,
            role: Role::Idle,
            term: 0,
            leader: 0,
            last: 0,
            committed: 0,
            applied: 0,
            first: 0,
            keys: 0,
            items: 0,
            members: None,
        }
    }

    /// The bytes of the answer.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let role = match self.role {
            Role::Idle => 0,
            Role::Follower => 1,
            Role::Candidate => 2,
            Role::Leader => 3,
        };
        let mut bytes = vec![VERSION, role, 0, 0, 0, 0, 0, 0];
        let log = [self.last, self.committed, self.applied, self.first];
        put_words(&mut bytes, &[self.id, self.term, self.leader]);
        put_words(&mut bytes, &log);
        put_words(&mut bytes, &[self.keys, self.items]);
        if let Some(members) = &self.members {
            members.put(&mut bytes);
        }
        bytes
    }

    /// Reads an answer.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut cursor = Cursor::of_message(bytes)?;
        let role = match cursor.u8()? {
            0 => Role::Idle,
            1 => Role::Follower,
            2 => Role::Candidate,
            3 => Role::Leader,
            _ => return Err(Malformed),
        };
        cursor.zeros::<6>()?;
        let mut status = Self {
            id: cursor.u64()?,
            role,
            term: cursor.u64()?,
            leader: cursor.u64()?,
            last: cursor.u64()?,
            committed: cursor.u64()?,
            applied: cursor.u64()?,
            first: cursor.u64()?,
            keys: cursor.u64()?,
            items: cursor.u64()?,
            members: None,
        };
        if role != Role::Idle {
            status.members = Some(Roster::take(&mut cursor)?);
        }
        cursor.end()?;
        Ok(status)
    }
}
