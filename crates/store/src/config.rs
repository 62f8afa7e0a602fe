//! Every limit of a table, and how the limits depend on each other.

/// The longest key, in bytes: memcached's limit.
pub const MAX_KEY: usize = 250;

/// The longest value, in bytes.
pub const MAX_VALUE: usize = 1 << 20;

/// The most bytes of a value that [`Table::write_part`](crate::Table::write_part) and
/// [`Table::read_slice`](crate::Table::read_slice) copy in one call; between two slices of a longer
/// value, their callers do other work. `Table::write`, and the methods of [`Value`](crate::Value)
/// without a length, copy a whole value.
pub const SLICE: usize = 64 * 1024;

/// The least memory for a table, in bytes.
pub const MIN_MEMORY: usize = 64 * 1024;

/// The most buckets that one operation splits while the index grows.
pub const MOST_SPLITS: usize = 8;

/// The most writes of long values in progress at a time; further writes are done in one piece.
pub const MOST_WRITINGS: usize = 32;

/// A write in progress may be abandoned if its caller has not continued it for this number of
/// seconds, because the caller may have vanished. A live caller continues after a turn of its
/// thread, which takes milliseconds.
pub(crate) const IDLE_SECONDS: u32 = 2;

/// One call moves at most this number of old items to the head of the log, plus one item for each
/// [`BYTES_PER_MOVE`] bytes of the room that it makes, and at most [`MOST_MOVED_BYTES`] bytes of
/// items. After that, the oldest item leaves even if it was read. Without the moves for the room, a
/// value of some KiB would push out small items that clients read. A value that is written in
/// slices makes room in many calls.
pub(crate) const MOST_MOVES: usize = 16;
pub(crate) const BYTES_PER_MOVE: usize = 64;
pub(crate) const MOST_MOVED_BYTES: usize = SLICE;

/// Keys that [`Table::ahead`](crate::Table::ahead) looks up together. Their cache lines, two or
/// three a key, stay in a first-level cache of 32 KiB.
pub const BATCH: usize = 32;

/// The access time of an item that was already read is updated only if it is at least this number
/// of seconds old. So most reads write nothing, and memory that is only read need not be written
/// back. memcached also updates its items once in 60 seconds.
pub const ACCESS_SECONDS: u32 = 60;

/// Bytes of the region for each bucket that the index has at the start, before rounding down to a
/// power of two. These buckets of 64 bytes take at most about a 64th of the region.
pub(crate) const BYTES_PER_FIRST_BUCKET: usize = 4096;

/// The index takes at most the region's length divided by this.
pub(crate) const INDEX_SHARE: usize = 2;

/// How a table behaves when its memory is used up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// The oldest items are evicted, so a write never fails for lack of memory.
    Cache,
    /// No item is evicted: a write that finds no memory fails, and changes nothing.
    Store,
}

/// The parameters of a new table.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// How the table behaves when its memory is used up.
    pub mode: Mode,
    /// The secret of the hash that chooses buckets.
    pub seed: crate::Seed,
    /// The version of the first write. A server that restarts must choose one that it has never
    /// used, such as the time in nanoseconds; otherwise a client's compare-and-set could match
    /// another item. The stamps of long values begin there, too, so a get that continues after the
    /// restart finds no slice of another value.
    pub first_version: u64,
}

const _: () = {
    assert!(MAX_KEY <= u8::MAX as usize);
    assert!(SLICE < MAX_VALUE);
    assert!(MIN_MEMORY >= 2 * crate::memory::STEP);
    // The first index leaves room for items even in the smallest region.
    assert!(MIN_MEMORY / BYTES_PER_FIRST_BUCKET * 512 / 7 < MIN_MEMORY / INDEX_SHARE);
};
