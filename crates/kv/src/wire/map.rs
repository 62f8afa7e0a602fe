//! The map of partitions, which a client fetches when it connects. It says which endpoint has which
//! part of the keys.
//!
//! ```text
//! 0   version, mode (0: cache, 1: store), version of the routing hash u16
//! 4   tag u32
//! 8   partition of the endpoint that answers u16, number of partitions u16
//! 12  longest value u32
//! 16  the endpoint of each partition, u16
//! ```
//! A client ignores bytes after these. The tag is drawn when a server starts. Requests carry it, so
//! a partition never answers a client that routes by another map.

use dunlin_store::{MAX_VALUE, Mode, ROUTE_VERSION, route};

use super::cursor::{Cursor, Pen};
use super::format::{MAX_PARTITIONS, Malformed, VERSION};

const HEADER: usize = 16;

/// Which endpoint has which keys.
///
/// ```
/// use dunlin_kv::Map;
/// use dunlin_store::Mode;
///
/// let map = Map::new(7, Mode::Cache, [0, 1, 2]).expect("there are few");
/// assert!(map.partition_of(dunlin_store::route(b"name")) < map.partitions());
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Map {
    tag: u32,
    mode: Mode,
    endpoints: Vec<u16>,
}

/// The place of a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeyPlace {
    /// Its partition.
    pub partition: u16,
    /// The endpoint of that partition.
    pub endpoint: u16,
}

/// The reason why a client cannot use a map.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MapError {
    /// The bytes are not a map.
    Malformed,
    /// There are no partitions, or more than [`MAX_PARTITIONS`].
    Partitions,
    /// The server has another version of the protocol or of the routing hash, so this client cannot
    /// route.
    Version,
}

impl Map {
    /// Makes a map with a partition for each of these endpoints.
    ///
    /// # Errors
    /// [`MapError::Partitions`].
    pub fn new(
        tag: u32,
        mode: Mode,
        endpoints: impl IntoIterator<Item = u16>,
    ) -> Result<Self, MapError> {
        let endpoints: Vec<u16> = endpoints.into_iter().collect();
        match (1..=MAX_PARTITIONS).contains(&endpoints.len()) {
            true => Ok(Self {
                tag,
                mode,
                endpoints,
            }),
            false => Err(MapError::Partitions),
        }
    }

    /// The number that distinguishes the map from others.
    #[must_use]
    pub const fn tag(&self) -> u32 {
        self.tag
    }

    /// How the tables behave when their memory is used up.
    #[must_use]
    pub const fn mode(&self) -> Mode {
        self.mode
    }

    /// The number of partitions, at least one.
    #[must_use]
    pub fn partitions(&self) -> u16 {
        u16::try_from(self.endpoints.len()).expect("there are at most MAX_PARTITIONS")
    }

    /// The endpoint of a partition.
    #[must_use]
    pub fn endpoint(&self, partition: u16) -> Option<u16> {
        self.endpoints.get(usize::from(partition)).copied()
    }

    /// The endpoints of all partitions, in order.
    pub fn endpoints(&self) -> impl Iterator<Item = u16> + '_ {
        self.endpoints.iter().copied()
    }

    /// The partition of a key whose [`route`] is `hash`. The upper bits of the hash select it, so
    /// all partitions have equal shares.
    #[inline]
    #[must_use]
    pub fn partition_of(&self, hash: u64) -> u16 {
        share(hash, self.endpoints.len())
    }

    /// The partition that has a key. The key is hashed only if there are several partitions.
    #[inline]
    #[must_use]
    pub fn partition_with(&self, key: &[u8]) -> u16 {
        match self.endpoints.len() {
            1 => 0,
            _ => self.partition_of(route(key)),
        }
    }

    /// The place of a key.
    #[must_use]
    pub fn place(&self, key: &[u8]) -> KeyPlace {
        let partition = self.partition_with(key);
        KeyPlace {
            partition,
            endpoint: self.endpoints[usize::from(partition)],
        }
    }

    /// The length of the encoded map in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        HEADER + 2 * self.endpoints.len()
    }

    /// The bytes of the largest map of this version.
    pub(crate) const MAX_SIZE: usize = HEADER + 2 * MAX_PARTITIONS;

    /// Writes the map into [`Self::size`] bytes, as the answer of partition `own`'s endpoint.
    ///
    /// # Panics
    /// If `out` is shorter.
    pub fn encode(&self, own: u16, out: &mut [u8]) {
        let longest = u32::try_from(MAX_VALUE).expect("1 MiB");
        let mode = match self.mode {
            Mode::Cache => 0,
            Mode::Store => 1,
        };
        let mut pen = Pen::new(out);
        pen.put(&[VERSION, mode]);
        pen.put(&ROUTE_VERSION.to_le_bytes());
        pen.put(&self.tag.to_le_bytes());
        pen.put(&own.to_le_bytes());
        pen.put(&self.partitions().to_le_bytes());
        pen.put(&longest.to_le_bytes());
        for endpoint in &self.endpoints {
            pen.put(&endpoint.to_le_bytes());
        }
    }

    /// Reads a map, and the partition of the endpoint that has sent it.
    ///
    /// # Errors
    /// [`MapError`].
    pub fn decode(bytes: &[u8]) -> Result<(Self, u16), MapError> {
        let mut cursor = Cursor(bytes);
        let [version, mode] = cursor.take()?;
        if version != VERSION || cursor.u16()? != ROUTE_VERSION {
            return Err(MapError::Version);
        }
        let tag = cursor.u32()?;
        let (own, partitions) = (cursor.u16()?, cursor.u16()?);
        cursor.u32()?;
        let mode = match mode {
            0 => Mode::Cache,
            1 => Mode::Store,
            _ => return Err(MapError::Malformed),
        };
        if own >= partitions {
            return Err(MapError::Malformed);
        }
        let endpoints: Result<Vec<u16>, Malformed> =
            (0..partitions).map(|_| cursor.u16()).collect();
        Ok((Self::new(tag, mode, endpoints?)?, own))
    }
}

/// The partition, among `partitions`, of a key whose [`route`] is `hash`.
#[inline]
pub(crate) fn share(hash: u64, partitions: usize) -> u16 {
    let partition = (u128::from(hash) * partitions as u128) >> 64;
    u16::try_from(partition).expect("less than the number of partitions")
}

impl From<Malformed> for MapError {
    fn from(Malformed: Malformed) -> Self {
        Self::Malformed
    }
}

impl std::fmt::Display for MapError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Malformed => f.write_str("the bytes are not a map of partitions"),
            Self::Partitions => write!(f, "a server has 1 to {MAX_PARTITIONS} partitions"),
            Self::Version => {
                f.write_str("the server has another version of the protocol or of the routing hash")
            }
        }
    }
}

impl std::error::Error for MapError {}
