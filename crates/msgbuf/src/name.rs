//! The names by which others know memory: [`RegionId`] of a region, [`BufRef`] of bytes in one
//! (design §8). They are plain integers, keep nothing alive, and can be sent to another process.
//!
//! `buf` makes them; `regions` finds their bytes in this process, and `peer` in another one's.

/// Bytes of a [`BufRef`] as one process sends it to another.
pub const REF_LEN: usize = 20;

/// Names a region of this process; zero names none.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct RegionId(pub u32);

/// Names bytes of a [`MsgBuf`](crate::MsgBuf) while they are lent. Core hands it to a transport. It
/// keeps nothing alive; [`regions::resolve`](crate::regions::resolve) and
/// [`regions::read`](crate::regions::read) find out whether it still holds.
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

    /// How many bytes it names.
    #[inline]
    pub const fn len(self) -> usize {
        self.len as usize
    }

    /// Whether it names none.
    #[inline]
    pub const fn is_empty(self) -> bool {
        self.len == 0
    }

    /// Makes it name no bytes, with one store where [`Self::EMPTY`] takes several.
    #[inline]
    pub const fn clear(&mut self) {
        self.len = 0;
    }

    /// The region that the bytes lie in.
    #[inline]
    pub const fn region(self) -> RegionId {
        self.region
    }

    /// Where in the region they begin, in bytes.
    #[inline]
    pub const fn offset(self) -> u32 {
        self.offset
    }

    /// Which lending of the block it belongs to.
    #[inline]
    pub const fn generation(self) -> u32 {
        self.generation
    }

    /// The name without its region, for the process that has mapped that: little-endian block,
    /// generation, offset, length, and the region's id in front.
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

    /// Reads the bytes of [`Self::to_bytes`]. The name may be a forged one: only
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
