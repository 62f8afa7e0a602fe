//! Options of a client, and the names of operations.

use dunlin_channel::{Config, Retry};
use dunlin_core::Nanos;

use crate::wire::MOST_ANSWER;

/// The name of an operation, chosen by the program.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Token(pub u64);

/// Options of a client.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The endpoint of the server that the client asks for the map first.
    pub first_endpoint: u16,
    /// The deadline of operations that are begun without one.
    pub deadline: Nanos,
    /// Bytes of a value for which a get makes room. A longer value takes a second call.
    pub expected_value: u32,
    /// The most bytes of an answer to a get of many keys. A server ends an answer at 64 KiB and 64
    /// bytes in any case; the client then asks again for the other keys.
    pub multi_answer: u32,
    /// The pause after a session could not be made. It doubles with each further failure.
    pub least_pause: Nanos,
    /// The longest pause.
    pub most_pause: Nanos,
    /// Repeats of reads, and of operations that have not run: attempts and pauses. For operations
    /// that may have run, all operations of a client share one repeat budget, as in a channel.
    pub retry: Retry,
    /// Spreads the times of repeats, so that clients with different seeds do not repeat at the same
    /// time.
    pub seed: u64,
    /// The planted bug of this client.
    #[cfg(feature = "mutants")]
    pub mutant: Option<Mutant>,
}

/// A planted bug of the client.
#[cfg(feature = "mutants")]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mutant {
    /// A write whose end is unknown is sent again.
    RepeatedWrite,
    /// The client uses the server's first map forever.
    OldMap,
    /// A get ends with the item of the previous get, if both have the same key.
    OldRead,
    /// A fleet asks another server for the keys of one that is down.
    OtherOwner,
}

impl Options {
    /// The default options.
    pub const DEFAULT: Self = Self {
        first_endpoint: 0,
        deadline: Nanos::from_secs(5),
        expected_value: 1024,
        multi_answer: MOST_ANSWER,
        least_pause: Nanos::from_millis(1),
        most_pause: Nanos::from_millis(200),
        retry: Config::DEFAULT.retry,
        seed: 0,
        #[cfg(feature = "mutants")]
        mutant: None,
    };
}

impl Default for Options {
    fn default() -> Self {
        Self::DEFAULT
    }
}
