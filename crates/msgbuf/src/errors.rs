//! The errors that several files of this crate return.

/// A length that exceeds a msgbuf's capacity. Allocate a longer msgbuf instead.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TooLong {
    /// The requested length, in bytes.
    pub len: usize,
    /// The longest possible length, in bytes.
    pub capacity: usize,
}

/// Why there is no msgbuf.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AllocError {
    /// Longer than [`MAX_MESSAGE`](crate::MAX_MESSAGE). Send it in pieces.
    TooLarge,
    /// The pool has reached its `max_bytes`. Give buffers back, or configure more.
    Limit,
    /// The system has no memory. Give buffers back, or raise the limit of the process.
    NoMemory,
    /// The process has as many regions as are possible. Adopt fewer buffers, or drop some.
    TooManyRegions,
}

/// Why a region of another process was not mapped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MapError {
    /// The sizes contradict each other.
    Extent,
    /// The descriptor is not memory of that size, or a process could make it shorter.
    Descriptor,
    /// The system refuses, for lack of addresses or hugepages.
    System,
}

impl std::fmt::Display for TooLong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { len, capacity } = self;
        write!(
            f,
            "{len} bytes do not fit a msgbuf of {capacity}; allocate one of {len} instead"
        )
    }
}

impl std::error::Error for TooLong {}

impl std::fmt::Display for AllocError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::TooLarge => "a message has at most 1 GiB; send it in pieces",
            Self::Limit => "the pool is at its max_bytes; give msgbufs back or configure more",
            Self::NoMemory => "the system has no memory for a region; give msgbufs back",
            Self::TooManyRegions => "too many regions in this process; drop adopted msgbufs",
        })
    }
}

impl std::error::Error for AllocError {}

impl std::fmt::Display for MapError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Extent => "the sizes of a region contradict each other",
            Self::Descriptor => "a descriptor is not sealed memory of the announced size",
            Self::System => "the system refuses to map a region of a peer",
        })
    }
}

impl std::error::Error for MapError {}
