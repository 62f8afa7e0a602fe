//! The configuration of a pool, and its limits. Only `pool` reads it.

use crate::errors::AllocError;
use crate::layout::{MAX_BLOCK, MAX_REGION, MIN_DATA_SIZE};
use crate::region::RegionOptions;

/// Whether regions are placed in hugepages.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Hugepages {
    /// Use hugepages if the system has set any aside, or can make them for a large msgbuf;
    /// otherwise use ordinary pages.
    #[default]
    Try,
    /// Use ordinary pages only.
    Never,
}

/// How a [`Pool`](crate::Pool) gets its memory.
///
/// ```
/// use dunlin_msgbuf::{Hugepages, Pool, PoolConfig};
/// let config = PoolConfig { hugepages: Hugepages::Never, ..PoolConfig::default() };
/// let pool = Pool::new(config)?;
/// # Ok::<(), dunlin_msgbuf::PoolError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PoolConfig {
    /// Whether regions are placed in hugepages.
    pub hugepages: Hugepages,
    /// Size of the first region in bytes, rounded up to 64 KiB; each further region is twice as
    /// large, up to 64 MiB. The whole region is mapped when it is made, but takes memory only as it
    /// is used.
    pub first_region_bytes: usize,
    /// Limit of the bytes of all regions, mapped but not necessarily used.
    pub max_bytes: usize,
    /// Data bytes per packet, which determine where the headers of later packets lie: the smallest
    /// value that any session negotiates, and at least [`MIN_DATA_SIZE`].
    pub data_size: u32,
    /// Whether other processes can map the regions. Each shared region costs a file descriptor.
    pub shared: bool,
    /// Whether [`regions::read`](crate::regions::read) works, which simulators need. If it does,
    /// revoking a lent msgbuf takes a lock.
    pub readable: bool,
}

impl Default for PoolConfig {
    /// A first region of 1 MiB, at most 4 GiB, packets of 1440 bytes as over UDP, shared.
    fn default() -> Self {
        Self {
            hugepages: Hugepages::Try,
            first_region_bytes: 1 << 20,
            max_bytes: 4 << 30,
            data_size: 1440,
            shared: true,
            readable: false,
        }
    }
}

/// Why there is no pool.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PoolError {
    /// `data_size` is below [`MIN_DATA_SIZE`].
    DataSize,
    /// `first_region_bytes` is more than 64 MiB, or more than `max_bytes`.
    FirstRegion,
    /// The first region could not be made.
    Alloc(AllocError),
}

impl PoolConfig {
    /// Size of the first region, if this configuration is valid.
    pub(crate) fn check(&self) -> Result<usize, PoolError> {
        if self.data_size < MIN_DATA_SIZE {
            return Err(PoolError::DataSize);
        }
        if self.first_region_bytes > MAX_REGION {
            return Err(PoolError::FirstRegion);
        }
        let first = self.first_region_bytes.max(1).next_multiple_of(MAX_BLOCK);
        if first > self.max_bytes {
            Err(PoolError::FirstRegion)
        } else {
            Ok(first)
        }
    }

    pub(crate) fn region_options(&self) -> RegionOptions {
        RegionOptions {
            hugepages: self.hugepages == Hugepages::Try,
            shared: self.shared,
            readable: self.readable,
            data_size: self.data_size,
        }
    }
}

impl std::fmt::Display for PoolError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::DataSize => write!(f, "data_size must be at least {MIN_DATA_SIZE} bytes"),
            Self::FirstRegion => {
                f.write_str("first_region_bytes must be at most 64 MiB and at most max_bytes")
            }
            Self::Alloc(error) => write!(f, "no first region: {error}"),
        }
    }
}

impl std::error::Error for PoolError {}
