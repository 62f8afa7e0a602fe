//! A table's figures.

use crate::item::{Header, mark};
use crate::table::departure::Reason;

/// Figures of a table. Figures without "now" count since the table was made.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Stats {
    /// Items now. An item that has expired or was flushed counts until the table finds it.
    pub items: u64,
    /// Bytes of their keys and values now.
    pub item_bytes: u64,
    /// Gets.
    pub gets: u64,
    /// Gets that found an item.
    pub hits: u64,
    /// Items that were written, in full or in part.
    pub writes: u64,
    /// Items that left because the log needed their memory.
    pub evicted: u64,
    /// Items that left because the index had no memory for their entry.
    pub crowded: u64,
    /// Items that were removed because they had expired.
    pub expired: u64,
    /// Those of `evicted` and `crowded` that no client had read since they were written.
    pub evicted_unread: u64,
    /// Those of `evicted` that clients had read since the log last moved them ahead.
    pub evicted_active: u64,
    /// Those of `expired` that no client had read since they were written.
    pub expired_unread: u64,
    /// Items that were removed because of a flush.
    pub flushed: u64,
    /// Cache lines that the sweep has touched.
    pub sweep_lines: u64,
    /// Items that were moved ahead in the log.
    pub moved_ahead: u64,
    /// Buckets that growth has split.
    pub splits: u64,
    /// The most buckets that one call has split.
    pub most_splits: u64,
    /// Buckets now.
    pub buckets: u64,
    /// Bytes of the index now.
    pub index_bytes: u64,
    /// Bytes of the region that index and items use now. All of it in cache mode.
    pub used_bytes: u64,
    /// How often the log has wrapped.
    pub laps: u64,
    /// When the item at the old end of the log was last read or written, in seconds of the table's
    /// clock. 0 in store mode, where no item is the oldest, and in an empty cache.
    pub oldest_access: u64,
}

impl Stats {
    pub(super) fn on_new(&mut self, header: &Header) {
        self.items += 1;
        self.item_bytes += bytes(header);
    }

    /// Counts an item that leaves. `heat`: the reads that its entry has counted.
    pub(super) fn on_gone(&mut self, header: &Header, heat: u64, reason: Option<Reason>) {
        self.items -= 1;
        self.item_bytes -= bytes(header);
        let was_read = header.marks & mark::READ != 0;
        let unread = u64::from(!was_read);
        match reason {
            None => {}
            Some(Reason::Evicted) => {
                self.evicted += 1;
                self.evicted_unread += unread;
                self.evicted_active += u64::from(was_read && heat > 0);
            }
            Some(Reason::Crowded) => {
                self.crowded += 1;
                self.evicted_unread += unread;
            }
            Some(Reason::Expired) => {
                self.expired += 1;
                self.expired_unread += unread;
            }
            Some(Reason::Flushed) => self.flushed += 1,
        }
    }

    pub(super) fn on_rewritten(&mut self, old: &Header, new: &Header) {
        self.item_bytes -= bytes(old);
        self.item_bytes += bytes(new);
    }
}

fn bytes(header: &Header) -> u64 {
    u64::from(header.key_len) + u64::from(header.value_len)
}
