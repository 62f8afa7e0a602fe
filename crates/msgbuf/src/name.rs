//! Names of memory: a [`RegionId`] names a region, a [`BufRef`] names bytes in one (design §8).
//! They are plain integers, keep nothing alive, and can be sent to another process.
//!
//! `buf` makes these names; `regions` finds their bytes in this process, and `peer` finds bytes in
//! a region of another process.

/// Length of an encoded [`BufRef`].
pub const REF_LEN: usize = 20;

/// Names a region of this process; zero names none.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct RegionId(pub u32);

/// Names bytes of a [`MsgBuf`](crate::MsgBuf) while it is lent. Core hands it to a transport.
/// The name keeps nothing alive; [`regions::resolve`](crate::regions::resolve) and
/// [`regions::read`](crate::regions::read) check whether it is still valid.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct BufRef {
    pub(crate) region: RegionId,
    pub(crate) block: u32,
    pub(crate) offset: u32,
    pub(crate) len: u32,
    pub(crate) generation: u32,
}

const _: () = assert!(size_of::<BufRef>() <= 24);

impl RegionId {
    /// The id of no region.
    pub const NONE: Self = Self(0);
}

impl BufRef {
    /// Names no bytes at all.
    pub const EMPTY: Self = Self {
        region: RegionId::NONE,
        block: 0,
        offset: 0,
        len: 0,
        generation: 0,
    };

    /// The number of bytes that this names.
    #[inline]
    pub const fn len(self) -> usize {
        self.len as usize
    }

    /// Whether this names no bytes.
    #[inline]
    pub const fn is_empty(self) -> bool {
        self.len == 0
    }

    /// Changes this into a name of no bytes, with one store; assigning [`Self::EMPTY`] takes
    /// several.
    #[inline]
    pub const fn clear(&mut self) {
        self.len = 0;
    }

    /// The region that the bytes lie in.
    #[inline]
    pub const fn region(self) -> RegionId {
        self.region
    }

    /// Offset in the region of the first byte.
    #[inline]
    pub const fn offset(self) -> u32 {
        self.offset
    }

    /// The generation of the block when it was lent.
    #[inline]
    pub const fn generation(self) -> u32 {
        self.generation
    }

    /// Encodes the name for a process that has mapped the region: the region's id, block,
    /// generation, offset and length, each little-endian.
    #[inline]
    pub fn to_bytes(self) -> [u8; REF_LEN] {
        let mut bytes = [0; REF_LEN];
        let words = [
            self.region.0,
            self.block,
            self.generation,
            self.offset,
            self.len,
        ];
        for (place, word) in bytes.as_chunks_mut().0.iter_mut().zip(words) {
            *place = word.to_le_bytes();
        }
        bytes
    }

    /// Decodes the bytes of [`Self::to_bytes`]. Because a peer may forge the name, only
    /// [`PeerRegion::find`](crate::PeerRegion::find) takes it.
    #[inline]
    pub fn from_bytes(bytes: [u8; REF_LEN]) -> Self {
        let mut words = [0; REF_LEN / 4];
        for (word, place) in words.iter_mut().zip(bytes.as_chunks().0) {
            *word = u32::from_le_bytes(*place);
        }
        let [region, block, generation, offset, len] = words;
        Self {
            region: RegionId(region),
            block,
            offset,
            len,
            generation,
        }
    }
}
