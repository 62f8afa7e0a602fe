//! Lists all items, a few buckets at a time, as `lru_crawler metadump` shows them.

use dunlin_store::{Cursor, Item, Seconds};

use crate::limits::DUMP_BUCKETS;
use crate::number;
use crate::partition::Partition;

impl Partition<'_> {
    /// Appends the lines of the next items, and returns the place at which the list continues, if
    /// it does.
    pub(crate) fn list(
        &mut self,
        place: Cursor,
        now: Seconds,
        out: &mut Vec<u8>,
    ) -> Option<Cursor> {
        let see = |item: Item<'_>| write_item(out, &item);
        self.table.scan(place, DUMP_BUCKETS, now, see)
    }
}

fn write_item(out: &mut Vec<u8>, item: &Item<'_>) {
    out.extend_from_slice(b"key=");
    for byte in item.key() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(*byte),
            _ => out.extend_from_slice(format!("%{byte:02X}").as_bytes()),
        }
    }
    out.extend_from_slice(b" exp=");
    match item.expiry() {
        Some(at) => number::write(out, at.0),
        None => out.extend_from_slice(b"-1"),
    }
    out.extend_from_slice(b" la=");
    number::write(out, item.last_access().0);
    out.extend_from_slice(b" cas=");
    number::write(out, item.version().0);
    out.extend_from_slice(b" fetch=");
    out.extend_from_slice(if item.was_read() { b"yes" } else { b"no" });
    out.extend_from_slice(b" cls=1 size=");
    number::write(out, item_size(item));
    out.push(b'\n');
}

/// Bytes of key, value and header.
pub(crate) fn item_size(item: &Item<'_>) -> u64 {
    (item.key().len() + item.value().len() + 24) as u64
}
