//! The state of a replica, as the replica reports it.

use super::cursor::{Cursor, put_count, put_words};
use super::format::{Malformed, VERSION};
use super::roster::Roster;

/// The role of a replica in its cluster.
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

/// The progress of another member, as the leader knows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Follower {
    /// Its number.
    pub id: u64,
    /// The last entry of the member's log that is known to match the leader's log.
    pub matched: u64,
    /// Bytes of its snapshot that it has received so far.
    pub sent: u64,
    /// Bytes of the snapshot that it is being sent; 0 if none.
    pub size: u64,
}

/// The state of a replica.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Status {
    /// Its number.
    pub id: u64,
    /// Its role.
    pub role: Role,
    /// Its term.
    pub term: u64,
    /// The number of the leader; 0 if the replica knows none.
    pub leader: u64,
    /// The last entry of its log.
    pub last: u64,
    /// The last entry that it knows to be committed.
    pub committed: u64,
    /// The last entry that its items contain.
    pub applied: u64,
    /// The first entry that its log still has.
    pub first: u64,
    /// The number of keys that have an item.
    pub keys: u64,
    /// The digest of restored items that wait for a new cluster; 0 if there are none or the replica
    /// belongs to a cluster.
    pub items: u64,
    /// The cluster; `None` if it belongs to none.
    pub members: Option<Roster>,
    /// The progress of the other members, if the replica leads.
    pub followers: Vec<Follower>,
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
            followers: Vec::new(),
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
            put_count(&mut bytes, self.followers.len());
            for it in &self.followers {
                put_words(&mut bytes, &[it.id, it.matched, it.sent, it.size]);
            }
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
            followers: Vec::new(),
        };
        if role != Role::Idle {
            status.members = Some(Roster::take(&mut cursor)?);
            for _ in 0..cursor.count(Follower::LEN)? {
                status.followers.push(Follower::take(&mut cursor)?);
            }
        }
        cursor.end()?;
        Ok(status)
    }
}

impl Follower {
    const LEN: usize = 32;

    fn take(cursor: &mut Cursor<'_>) -> Result<Self, Malformed> {
        let it = Self {
            id: cursor.u64()?,
            matched: cursor.u64()?,
            sent: cursor.u64()?,
            size: cursor.u64()?,
        };
        match it.sent <= it.size {
            true => Ok(it),
            false => Err(Malformed),
        }
    }
}
