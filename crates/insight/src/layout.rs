//! The layout of the memory file of a nexus. All values are little-endian 64-bit words.
//!
//! ```text
//! header, 32 words   magic, version, where the rest is, process
//! text               one line each: what values there are, in order; address, program
//! nexus block        sequence word, time, values of `nexus`
//! endpoint blocks    sequence word, state, index, transport, times, the values of `counters`,
//!                    `drops`, `transport` and `gauges`, histograms, sessions, then the values
//!                    of `own_counters` and `own_gauges`
//! trace a reader's request for a trace, and the number of packets traced
//! ring               slots: number, time, peer, length, first bytes
//! ```
//! The file describes itself by its text: a reader of another release shows values that it does not
//! know, and tolerates missing ones. While a block is being written, its sequence word is odd.

/// "DUNLINST".
pub(crate) const MAGIC: u64 = u64::from_le_bytes(*b"DUNLINST");
/// Version of the header and of the parts of blocks. Added or removed names do not change it.
pub(crate) const VERSION: u64 = 1;

/// Bytes of a word.
pub(crate) const WORD: usize = 8;
/// Words of the header.
pub(crate) const HEADER: usize = 32;

/// Places in the header, in words.
pub(crate) mod header {
    pub(crate) const MAGIC: usize = 0;
    pub(crate) const VERSION: usize = 1;
    /// Length of the whole file in bytes. Other lengths and places in the header are in bytes, too.
    pub(crate) const LENGTH: usize = 2;
    pub(crate) const TEXT: usize = 3;
    pub(crate) const TEXT_LEN: usize = 4;
    pub(crate) const NEXUS: usize = 5;
    pub(crate) const BLOCKS: usize = 6;
    pub(crate) const BLOCK_LEN: usize = 7;
    /// Number of blocks, and number of blocks that were ever used; the rest are empty.
    pub(crate) const BLOCK_COUNT: usize = 8;
    pub(crate) const BLOCKS_USED: usize = 9;
    pub(crate) const PID: usize = 10;
    /// Nanoseconds since 1970.
    pub(crate) const STARTED: usize = 11;
    /// Place of the words in which a reader asks for a trace.
    pub(crate) const TRACE: usize = 12;
    /// The ring of packets: its place, the number of its slots, and their length.
    pub(crate) const RING: usize = 13;
    pub(crate) const SLOTS: usize = 14;
    pub(crate) const SLOT_LEN: usize = 15;
}

/// Places in a block, in words.
pub(crate) mod block {
    pub(crate) const SEQUENCE: usize = 0;
    /// Nanoseconds since 1970 at which it was written; 0: the block is empty.
    pub(crate) const WRITTEN: usize = 1;
    /// Words before the values of the nexus.
    pub(crate) const NEXUS_HEAD: usize = 2;
    pub(crate) const INDEX: usize = 2;
    /// Up to eight letters.
    pub(crate) const TRANSPORT: usize = 3;
    /// The same moment on the endpoint's own clock, in nanoseconds.
    pub(crate) const CLOCK: usize = 4;
    /// Number of rows in the table of sessions.
    pub(crate) const ROWS: usize = 5;
    /// Number of values that the program itself has written: 0, or all of them.
    pub(crate) const OWN: usize = 6;
    /// Words before the values of an endpoint.
    pub(crate) const HEAD: usize = 8;
}

/// Places, in words, of a reader's request for a trace.
pub(crate) mod trace {
    /// Changes a few times a second while a reader wants a trace; 0: no reader wants one.
    pub(crate) const WORD: usize = 0;
    /// The index of the endpoint to trace, or `ALL`.
    pub(crate) const ENDPOINT: usize = 1;
    /// Stands for every endpoint.
    pub(crate) const ALL: u64 = u64::MAX;
    /// Bytes to keep of each packet.
    pub(crate) const KEEP: usize = 2;
    /// Number of packets written so far, in a cache line of its own.
    pub(crate) const WRITTEN: usize = 8;
    /// Length of this part, in words.
    pub(crate) const WORDS: usize = 16;
}

/// Places in a slot of the ring, in words.
pub(crate) mod slot {
    /// Number of the packet, plus one; 0 while the slot is being written.
    pub(crate) const NUMBER: usize = 0;
    /// Nanoseconds since 1970.
    pub(crate) const AT: usize = 1;
    /// Index of the endpoint, the bits below, and the place of the drop reason in `drops`, plus
    /// one.
    pub(crate) const BITS: usize = 2;
    pub(crate) const SENT: u64 = 1 << 16;
    pub(crate) const CONGESTION: u64 = 1 << 17;
    pub(crate) const HAS_PEER: u64 = 1 << 18;
    pub(crate) const REASON_SHIFT: u32 = 24;
    pub(crate) const PEER: usize = 3;
    /// Length of the packet in bytes, and how many of its bytes the slot has.
    pub(crate) const LEN: usize = 4;
    pub(crate) const KEPT: usize = 5;
    /// Words before the bytes.
    pub(crate) const HEAD: usize = 6;
    /// Length of a slot, in words.
    pub(crate) const WORDS: usize = 42;
    /// Number of bytes of a packet that fit in a slot.
    pub(crate) const ROOM: usize = (WORDS - HEAD) * size_of::<u64>();
}

/// The keys of the text.
pub(crate) mod key {
    pub(crate) const PROGRAM: &str = "program";
    pub(crate) const ADDRESS: &str = "address";
    pub(crate) const RELEASE: &str = "release";
    pub(crate) const NEXUS: &str = "nexus";
    pub(crate) const COUNTERS: &str = "counters";
    pub(crate) const DROPS: &str = "drops";
    pub(crate) const TRANSPORT: &str = "transport";
    pub(crate) const GAUGES: &str = "gauges";
    pub(crate) const HISTOGRAMS: &str = "histograms";
    /// Buckets of a histogram, and the smallest value of each.
    pub(crate) const BUCKETS: &str = "buckets";
    /// Columns of the table of sessions.
    pub(crate) const SESSIONS: &str = "sessions";
    /// Number of rows of that table.
    pub(crate) const ROWS: &str = "rows";
    /// Counters and gauges of the program itself, after all other values.
    pub(crate) const OWN_COUNTERS: &str = "own_counters";
    pub(crate) const OWN_GAUGES: &str = "own_gauges";
}

/// Rows of the table of sessions: the busiest sessions of an endpoint.
pub const ROWS: usize = 32;

/// The name under which the system shows the file (`/proc/PID/fd`).
pub(crate) const NAME: &std::ffi::CStr = c"dunlin-insight";
