//! Figures by command.

use dunlin_store::{Stats, Version, WriteError};

/// Whether a command has found its item.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Finding {
    Hit,
    Miss,
    /// It has found an item that it could not use.
    Neither,
}

macro_rules! figures {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Figures of a partition, or of all of them together.
        #[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
        pub struct Figures {
            $($(#[$doc])* pub(crate) $name: u64,)*
            pub(crate) table: Stats,
        }

        impl Figures {
            /// Adds the figures of another partition.
            pub fn add(&mut self, other: &Self) {
                $(self.$name += other.$name;)*
                self.table = sum(&self.table, &other.table);
            }
        }
    };
}

figures! {
    get_hits,
    get_misses,
    touch_hits,
    touch_misses,
    writes,
    too_large,
    no_memory,
    cas_hits,
    cas_misses,
    cas_differs,
    delete_hits,
    delete_misses,
    up_hits,
    up_misses,
    down_hits,
    down_misses,
    flushes,
    inspections,
}

impl Figures {
    pub(crate) fn with_table(self, table: Stats) -> Self {
        Self { table, ..self }
    }

    pub(crate) fn on_get(&mut self, is_hit: bool, touches: bool) {
        match (touches, is_hit) {
            (false, true) => self.get_hits += 1,
            (false, false) => self.get_misses += 1,
            (true, _) => self.on_touch(is_hit),
        }
    }

    pub(crate) fn on_touch(&mut self, is_hit: bool) {
        match is_hit {
            true => self.touch_hits += 1,
            false => self.touch_misses += 1,
        }
    }

    pub(crate) fn on_write(&mut self, compares: bool, result: Result<Version, WriteError>) {
        self.writes += 1;
        match result {
            Ok(_) if compares => self.cas_hits += 1,
            Err(WriteError::Absent) if compares => self.cas_misses += 1,
            Err(WriteError::VersionDiffers) => self.cas_differs += 1,
            Err(WriteError::TooLong) => self.too_large += 1,
            Err(WriteError::NoMemory) => self.no_memory += 1,
            _ => {}
        }
    }

    pub(crate) fn on_delete(&mut self, is_hit: bool) {
        match is_hit {
            true => self.delete_hits += 1,
            false => self.delete_misses += 1,
        }
    }

    pub(crate) fn on_count(&mut self, is_down: bool, finding: Finding) {
        match (is_down, finding) {
            (false, Finding::Hit) => self.up_hits += 1,
            (true, Finding::Hit) => self.down_hits += 1,
            (false, Finding::Miss) => self.up_misses += 1,
            (true, Finding::Miss) => self.down_misses += 1,
            (_, Finding::Neither) => {}
        }
    }

    pub(crate) fn on_flush(&mut self) {
        self.flushes += 1;
    }

    pub(crate) fn on_inspect(&mut self) {
        self.inspections += 1;
    }
}

/// Adds the figures of two tables.
fn sum(one: &Stats, other: &Stats) -> Stats {
    Stats {
        items: one.items + other.items,
        item_bytes: one.item_bytes + other.item_bytes,
        gets: one.gets + other.gets,
        hits: one.hits + other.hits,
        writes: one.writes + other.writes,
        evicted: one.evicted + other.evicted,
        crowded: one.crowded + other.crowded,
        expired: one.expired + other.expired,
        flushed: one.flushed + other.flushed,
        moved_ahead: one.moved_ahead + other.moved_ahead,
        splits: one.splits + other.splits,
        most_splits: one.most_splits.max(other.most_splits),
        buckets: one.buckets + other.buckets,
        index_bytes: one.index_bytes + other.index_bytes,
        used_bytes: one.used_bytes + other.used_bytes,
        laps: one.laps.max(other.laps),
    }
}
