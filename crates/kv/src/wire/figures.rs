//! The figures of a partition: all numbers that the server knows, in a fixed order, so that a newer
//! server can append some.
//!
//! ```text
//! status, 0, number of figures u16, 0 u32; then the figures, u64
//! ```

use dunlin_store::Stats;

use super::answer::Status;
use super::cursor::{Cursor, Pen};
use super::format::{MAX_KEYS, Malformed};

const HEADER: usize = 8;

/// Generates everything from one list of figures: the type, the order on the wire, and the names.
macro_rules! figures {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// The figures of a partition.
        #[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
        pub struct Figures {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Figures {
            /// The number of figures of this version.
            const COUNT: usize = [$(stringify!($name)),*].len();

            /// Each figure with its name, in wire order.
            #[must_use]
            pub fn named(&self) -> [(&'static str, u64); Self::COUNT] {
                [$((stringify!($name), self.$name)),*]
            }

            fn from_array([$($name),*]: [u64; Self::COUNT]) -> Self {
                Self { $($name),* }
            }

            /// The sums of two partitions' figures.
            #[must_use]
            pub const fn plus(self, other: Self) -> Self {
                Self { $($name: self.$name + other.$name),* }
            }
        }
    };
}

figures! {
    /// Items now.
    items,
    /// Bytes of their keys and values now.
    item_bytes,
    /// Bytes of the region that index and items use now.
    used_bytes,
    /// Bytes of the region.
    memory,
    /// Gets.
    gets,
    /// Gets that found an item.
    hits,
    /// Items that were written.
    writes,
    /// Items that were removed because the log needed their memory.
    evicted,
    /// Items that were removed because the index had no memory for their entry.
    crowded,
    /// Items that were removed because they had expired.
    expired,
    /// Items that a flush has removed.
    flushed,
    /// Items that were moved ahead in the log.
    moved_ahead,
    /// Bytes of the index now.
    index_bytes,
    /// How often the log has wrapped.
    laps,
    /// Requests.
    requests,
    /// Batches of requests.
    batches,
    /// Requests that were not messages of the protocol.
    malformed,
    /// Requests with another map.
    map_changed,
}

/// Names of the figures that tools show with the counters of an endpoint, because they never
/// decrease.
pub const COUNTERS: [&str; 14] = [
    "kv_gets",
    "kv_hits",
    "kv_misses",
    "kv_writes",
    "kv_evicted",
    "kv_crowded",
    "kv_expired",
    "kv_flushed",
    "kv_moved_ahead",
    "kv_laps",
    "kv_requests",
    "kv_batches",
    "kv_malformed",
    "kv_map_changed",
];

/// Names of the figures that may decrease.
pub const GAUGES: [&str; 6] = [
    "kv_items",
    "kv_item_bytes",
    "kv_used_bytes",
    "kv_memory_bytes",
    "kv_index_bytes",
    "kv_hottest_ppm",
];

/// The number of figures that are published.
pub(crate) const PUBLISHED: usize = COUNTERS.len() + GAUGES.len();

impl Figures {
    /// The values of [`COUNTERS`] and then of [`GAUGES`]. `hottest_ppm` is the share of gets that
    /// read the most-read key, in millionths.
    pub(crate) const fn published(&self, hottest_ppm: u64) -> [u64; PUBLISHED] {
        [
            self.gets,
            self.hits,
            self.gets.saturating_sub(self.hits),
            self.writes,
            self.evicted,
            self.crowded,
            self.expired,
            self.flushed,
            self.moved_ahead,
            self.laps,
            self.requests,
            self.batches,
            self.malformed,
            self.map_changed,
            self.items,
            self.item_bytes,
            self.used_bytes,
            self.memory,
            self.index_bytes,
            hottest_ppm,
        ]
    }

    /// The figures that the table counts itself.
    pub(crate) fn of_table(stats: &Stats, memory: usize) -> Self {
        Self {
            items: stats.items,
            item_bytes: stats.item_bytes,
            used_bytes: stats.used_bytes,
            memory: memory as u64,
            gets: stats.gets,
            hits: stats.hits,
            writes: stats.writes,
            evicted: stats.evicted,
            crowded: stats.crowded,
            expired: stats.expired,
            flushed: stats.flushed,
            moved_ahead: stats.moved_ahead,
            index_bytes: stats.index_bytes,
            laps: stats.laps,
            ..Self::default()
        }
    }

    /// The bytes of an answer.
    pub const SIZE: usize = HEADER + 8 * Self::COUNT;

    /// Writes an answer into [`Self::SIZE`] bytes.
    ///
    /// # Panics
    /// If `out` is shorter.
    pub fn encode(&self, out: &mut [u8]) {
        let count = u16::try_from(Self::COUNT)
            .expect("there are few")
            .to_le_bytes();
        let mut pen = Pen::new(out);
        pen.put(&[Status::Figures as u8, 0, count[0], count[1], 0, 0, 0, 0]);
        for (_, figure) in self.named() {
            pen.put(&figure.to_le_bytes());
        }
    }

    /// Reads an answer. Figures that an older server does not have are 0.
    ///
    /// # Errors
    /// If the bytes are not such an answer.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut cursor = Cursor(bytes);
        let status = cursor.take::<2>()?;
        let count = usize::from(cursor.u16()?);
        cursor.zeros::<4>()?;
        if status != [Status::Figures as u8, 0] || count > MAX_KEYS {
            return Err(Malformed);
        }
        let mut known = [0; Self::COUNT];
        for number in 0..count {
            let figure = cursor.u64()?;
            if let Some(place) = known.get_mut(number) {
                *place = figure;
            }
        }
        cursor.end()?;
        Ok(Self::from_array(known))
    }
}
