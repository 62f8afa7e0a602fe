//! Every limit of a table, and how they depend on each other.

/// The longest key, in bytes: memcached's limit.
pub const MAX_KEY: usize = 250;

/// The longest value, in bytes.
pub const MAX_VALUE: usize = 1 << 20;

/// The most bytes of a value that [`Table::write_part`](crate::Table::write_part) and
/// [`Table::read_slice`](crate::Table::read_slice) copy in one call: between two slices of a longer
/// value, their callers do other work. `Table::write` and the methods of
/// [`Value`](crate::Value) that take no length copy a whole value.
pub const SLICE: usize = 64 * 1024;

/// The least memory for a table, in bytes.
pub const MIN_MEMORY: usize = 64 * 1024;

/// The most buckets that one operation splits while the index grows.
pub const MOST_SPLITS: usize = 8;

/// The most writes of long values that are under way at a time; another one is done in one piece.
pub const MOST_WRITINGS: usize = 32;

/// Seconds after which a write that is under way may be given up if its caller has not come: it may
/// have vanished. A caller comes again after a turn of its thread, which takes milliseconds.
pub(crate) const IDLE_SECONDS: u32 = 2;

/// The most items that one call moves ahead, and the most bytes of them. After that, the oldest
/// item leaves even if it was read. A value that is written in slices makes room in many calls.
pub(crate) const MOST_MOVES: usize = 16;
pub(crate) const MOST_MOVED_BYTES: usize = SLICE;

/// Keys that [`Table::ahead`](crate::Table::ahead) looks up together. Their cache lines, two or
/// three a key, stay in a first-level cache of 32 KiB.
pub const BATCH: usize = 32;

/// A read of an item that was read before is recorded if the last recorded access is at least this
/// number of seconds old, so that most reads write nothing: memory that is only read need not go
/// back. memcached updates its items once in 60 seconds as well.
pub const ACCESS_SECONDS: u32 = 60;

/// Memory for each bucket that the index has at the start: a 64th of the region.
pub(crate) const BYTES_PER_FIRST_BUCKET: usize = 4096;

/// The index takes at most the region's length divided by this.
pub(crate) const INDEX_SHARE: usize = 2;

/// How a table behaves when its memory is used up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// The oldest items leave: a write never fails for lack of memory.
    Cache,
    /// Nothing leaves: a write that finds no memory fails, and changes nothing.
    Store,
}

/// How a table is made.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// How the table behaves when its memory is used up.
    pub mode: Mode,
    /// The secret of the hash that chooses buckets.
    pub seed: crate::Seed,
    /// The version that the first write gets. A server that restarts must give one that it has
    /// never used, such as the time in nanoseconds; otherwise a client's compare-and-set could hit
    /// another item. The stamps of long values begin there too: a get that goes on after the
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
