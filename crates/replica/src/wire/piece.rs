//! A part of a snapshot, from the leader to a replica that lacks dropped entries. The response of
//! the call is empty.

use super::cursor::{Cursor, put_words};
use super::format::{MAX_INDEX, Malformed, VERSION};

/// A part of a snapshot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Piece<'a> {
    /// The name of the cluster.
    pub cluster: u64,
    /// The sender's number.
    pub from: u64,
    /// The receiver's number.
    pub to: u64,
    /// The term in which the sender leads.
    pub term: u64,
    /// Index and term of the last entry that the snapshot contains.
    pub place: (u64, u64),
    /// Bytes of the whole snapshot.
    pub total: u64,
    /// Bytes of the snapshot before this part.
    pub offset: u64,
    /// The bytes of this part.
    pub bytes: &'a [u8],
}

impl<'a> Piece<'a> {
    /// Bytes of the header, before the snapshot's bytes.
    pub const HEAD: usize = 72;

    /// Writes the piece into `out`, which has room for its header and its bytes.
    pub fn encode(&self, out: &mut [u8]) {
        let mut head = vec![VERSION, 0, 0, 0, 0, 0, 0, 0];
        let (index, term) = self.place;
        put_words(&mut head, &[self.cluster, self.from, self.to, self.term]);
        put_words(&mut head, &[index, term, self.total, self.offset]);
        out[..Self::HEAD].copy_from_slice(&head);
        out[Self::HEAD..].copy_from_slice(self.bytes);
    }

    /// Reads a piece.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn decode(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut cursor = Cursor::of_message(bytes)?;
        cursor.zeros::<7>()?;
        let piece = Self {
            cluster: cursor.u64()?,
            from: cursor.u64()?,
            to: cursor.u64()?,
            term: cursor.u64()?,
            place: (cursor.u64()?, cursor.u64()?),
            total: cursor.u64()?,
            offset: cursor.u64()?,
            bytes: cursor.0,
        };
        let end = piece.offset.checked_add(piece.bytes.len() as u64);
        match end.is_some_and(|end| end <= piece.total) && piece.is_in_range() {
            true => Ok(piece),
            false => Err(Malformed),
        }
    }

    /// Whether Raft can take the numbers: no term is 0, and no entry has a later term than the
    /// sender.
    fn is_in_range(&self) -> bool {
        let (index, term) = self.place;
        term > 0 && term <= self.term && self.term <= MAX_INDEX && index <= MAX_INDEX
    }
}
