//! The bytes of a snapshot: the members, then the items and clients.

use crate::wire::cursor::{Cursor, put_count};
use crate::wire::{MAX_ADDRESS, MAX_SEATS, Malformed, Roster};

/// The most bytes of a snapshot before its items: two numbers, the name of the cluster, and for
/// each member two numbers, three flags and its address.
pub(crate) const MOST_HEAD: usize = 4 + 12 + MAX_SEATS * (15 + MAX_ADDRESS);

/// Encodes the bytes of a snapshot before its items.
pub(crate) fn head(roster: &Roster) -> Vec<u8> {
    let (mut members, mut head) = (Vec::new(), Vec::new());
    roster.put(&mut members);
    put_count(&mut head, members.len());
    head.extend_from_slice(&members);
    head
}

/// Encodes a snapshot.
#[cfg(any(feature = "disk", test))]
pub(crate) fn join(roster: &Roster, items: &[u8]) -> Vec<u8> {
    [&head(roster), items].concat()
}

/// Splits a snapshot into its members and the bytes of its items.
pub(crate) fn split(image: &[u8]) -> Result<(Roster, &[u8]), Malformed> {
    let mut cursor = Cursor(image);
    let roster = take_head(&mut cursor)?;
    Ok((roster, cursor.0))
}

/// The version of a snapshot's items. This works even if this library cannot read the members
/// before them.
#[cfg(feature = "disk")]
pub(crate) fn version(image: &[u8]) -> Option<u8> {
    let mut cursor = Cursor(image);
    cursor.counted().ok()?;
    cursor.u8().ok()
}

/// Reads the members of a snapshot.
pub(crate) fn take_head(cursor: &mut Cursor<'_>) -> Result<Roster, Malformed> {
    let mut head = Cursor(cursor.counted()?);
    let roster = Roster::take(&mut head)?;
    head.end()?;
    Ok(roster)
}
