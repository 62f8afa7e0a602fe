//! Counts of commands and their results, how to join those of several partitions, and their bytes.

use dunlin_store::{Stats, Version, WriteError};

/// Whether a command has found its item.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Finding {
    Hit,
    Miss,
    /// The command has failed for another reason, and counts as neither a hit nor a miss.
    Neither,
}

macro_rules! figures {
    ($($(#[$doc:meta])* $name:ident by $join:ident,)*) => {
        /// Figures of a partition, or of all of them together.
        #[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
        pub struct Figures {
            $($(#[$doc])* pub(crate) $name: u64,)*
            pub(crate) table: Stats,
        }

        impl Figures {
            /// Adds the figures of another partition.
            pub(crate) fn add(&mut self, other: &Self) {
                $(self.$name = $join(self.$name, other.$name);)*
                self.table = joined(&self.table, &other.table);
            }

            /// Appends all numbers, in the order of this file, in little endian.
            pub(crate) fn append_to(&self, out: &mut Vec<u8>) {
                for number in [$(self.$name),*].into_iter().chain(words(&self.table)) {
                    out.extend_from_slice(&number.to_le_bytes());
                }
            }

            /// Reads the bytes that [`Self::append_to`] has written.
            pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
                let (words, []) = bytes.as_chunks() else {
                    return None;
                };
                let mut words = words.iter().map(|word| u64::from_le_bytes(*word));
                $(let $name = words.next()?;)*
                let mut table = [0; TABLE];
                for number in &mut table {
                    *number = words.next()?;
                }
                let table = of_words(table);
                words.next().is_none().then_some(Self { $($name,)* table })
            }
        }
    };
}

figures! {
    get_hits by sum,
    get_misses by sum,
    touch_hits by sum,
    touch_misses by sum,
    writes by sum,
    too_large by sum,
    no_memory by sum,
    cas_hits by sum,
    cas_misses by sum,
    cas_differs by sum,
    delete_hits by sum,
    delete_misses by sum,
    up_hits by sum,
    up_misses by sum,
    down_hits by sum,
    down_misses by sum,
    // Each flush counts in all partitions.
    flushes by most,
    inspections by sum,
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

    pub(crate) const fn on_too_large(&mut self) {
        self.too_large += 1;
    }

    pub(crate) fn on_flush(&mut self) {
        self.flushes += 1;
    }

    pub(crate) fn on_inspect(&mut self) {
        self.inspections += 1;
    }
}

macro_rules! table_figures {
    ($($name:ident by $join:ident,)*) => {
        /// Numbers of a table.
        const TABLE: usize = [$(stringify!($name)),*].len();

        fn words(table: &Stats) -> [u64; TABLE] {
            [$(table.$name),*]
        }

        fn of_words([$($name),*]: [u64; TABLE]) -> Stats {
            Stats { $($name),* }
        }

        /// Joins the figures of two tables.
        fn joined(one: &Stats, other: &Stats) -> Stats {
            Stats { $($name: $join(one.$name, other.$name)),* }
        }
    };
}

table_figures! {
    items by sum,
    item_bytes by sum,
    gets by sum,
    hits by sum,
    writes by sum,
    evicted by sum,
    crowded by sum,
    evicted_unread by sum,
    evicted_active by sum,
    expired_unread by sum,
    expired by sum,
    flushed by sum,
    sweep_lines by sum,
    moved_ahead by sum,
    splits by sum,
    most_splits by most,
    buckets by sum,
    index_bytes by sum,
    used_bytes by sum,
    laps by most,
    oldest_access by oldest,
}

/// A table's figures, of which those that count begin at `base`.
pub(crate) fn since(base: &Stats, now: Stats) -> Stats {
    Stats {
        gets: now.gets - base.gets,
        hits: now.hits - base.hits,
        writes: now.writes - base.writes,
        evicted: now.evicted - base.evicted,
        crowded: now.crowded - base.crowded,
        expired: now.expired - base.expired,
        evicted_unread: now.evicted_unread - base.evicted_unread,
        evicted_active: now.evicted_active - base.evicted_active,
        expired_unread: now.expired_unread - base.expired_unread,
        flushed: now.flushed - base.flushed,
        ..now
    }
}

fn sum(one: u64, other: u64) -> u64 {
    one.saturating_add(other)
}

fn most(one: u64, other: u64) -> u64 {
    one.max(other)
}

/// The earlier of two times, of which 0 is none.
fn oldest(one: u64, other: u64) -> u64 {
    match (one, other) {
        (0, time) | (time, 0) => time,
        (one, other) => one.min(other),
    }
}
