//! Orders of an administrator to one replica. The answer is the replica's status. It confirms that
//! the order was accepted, not that it was carried out.

use super::cursor::{Cursor, put_counted, put_words};
use super::format::{Malformed, VERSION};
use super::members::Member;

/// An order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Order {
    /// The leader makes this member the leader; 0: a member whose log is as complete as any
    /// other's.
    Transfer(u64),
    /// The replica drops the entries that its items contain and no follower needs. With a disk, it
    /// first saves the items.
    Snapshot,
    /// The leader adds a member that already has its seat. The member gets the log, and votes once
    /// it has caught up.
    Join(Member),
    /// The leader removes this member, which must not be the leader itself.
    Leave(u64),
}

impl Order {
    /// The bytes of the request.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let (kind, number) = match self {
            Self::Transfer(to) => (1, *to),
            Self::Snapshot => (2, 0),
            Self::Join(member) => (3, member.id),
            Self::Leave(id) => (4, *id),
        };
        let mut bytes = vec![VERSION, kind, 0, 0, 0, 0, 0, 0];
        put_words(&mut bytes, &[number]);
        if let Self::Join(member) = self {
            put_counted(&mut bytes, member.address.as_bytes());
        }
        bytes
    }

    /// Reads a request.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut cursor = Cursor::of_message(bytes)?;
        let kind = cursor.u8()?;
        cursor.zeros::<6>()?;
        let number = cursor.u64()?;
        let order = match (kind, number) {
            (1, to) => Self::Transfer(to),
            (2, 0) => Self::Snapshot,
            (3, 1..) => Self::Join(Member::take(number, &mut cursor)?),
            (4, 1..) => Self::Leave(number),
            _ => return Err(Malformed),
        };
        cursor.end()?;
        Ok(order)
    }
}
