//! The bytes of a snapshot: the members, then the items and clients.

use crate::wire::cursor::{Cursor, put_count};
use crate::wire::{Malformed, Roster};

/// The bytes of a snapshot.
pub(crate) fn join(roster: &Roster, items: &[u8]) -> Vec<u8> {
    let mut head = Vec::new();
    roster.put(&mut head);
    let mut image = Vec::with_capacity(4 + head.len() + items.len());
    put_count(&mut image, head.len());
    image.extend_from_slice(&head);
    image.extend_from_slice(items);
    image
}

/// The members of a snapshot, and the bytes of its items.
pub(crate) fn split(image: &[u8]) -> Result<(Roster, &[u8]), Malformed> {
    let mut cursor = Cursor(image);
    let mut head = Cursor(cursor.counted()?);
    let roster = Roster::take(&mut head)?;
    head.end()?;
    Ok((roster, cursor.0))
}
