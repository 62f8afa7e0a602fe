//! Every limit of a connection.

use dunlin_store::{MAX_KEY, MAX_VALUE};

/// The longest line of a command, in bytes, without its end.
pub const MAX_LINE: usize = 2048;

/// The longest line of a command that reads many keys.
pub const MAX_KEYS_LINE: usize = 1 << 20;

/// Spaces before the name of a command that may have a long line.
pub(crate) const MAX_INDENT: usize = 100;

/// Words of a line that commands look at. Keys of `get` are not counted.
pub(crate) const MAX_WORDS: usize = 23;

/// Words of a meta command: its name, the key, and flags.
pub(crate) const MAX_META_WORDS: usize = 19;

/// The longest opaque token, including the letter before it.
pub(crate) const MAX_OPAQUE: usize = 32;

/// The longest text with name and password.
pub(crate) const MAX_TOKEN: usize = 1024;

/// If at least this many bytes are ready to send, no further command runs.
pub const OUTPUT_MARK: usize = 64 * 1024;

/// If at least this many bytes of commands wait, a connection takes further bytes only to complete
/// a longer command.
pub const INPUT_MARK: usize = 64 * 1024;

/// While a connection waits for at least this number of answers of other partitions, it runs no
/// further command.
pub const MAX_WAITING: usize = 64;

/// Operations of one turn. After them, other connections get their turns.
pub const MAX_TURN: usize = 256;

/// A get of a long value starts over at most this number of times, if the value is overwritten.
pub(crate) const MOST_RESTARTS: u8 = 3;

/// Buckets that one step of a dump visits.
pub(crate) const DUMP_BUCKETS: usize = 64;

/// Memory that an idle connection keeps for each of its two buffers.
pub(crate) const IDLE_BYTES: usize = 4096;

const _: () = {
    assert!(MAX_KEY + 64 < MAX_LINE);
    assert!(MAX_LINE < INPUT_MARK && INPUT_MARK < MAX_KEYS_LINE);
    assert!(MAX_META_WORDS < MAX_WORDS);
    assert!(MAX_TOKEN < MAX_LINE);
    assert!(OUTPUT_MARK < MAX_VALUE);
};
