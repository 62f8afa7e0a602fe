//! One entry of a bucket: eight bytes with the place of an item, and enough information about the
//! item that most questions are answered without reading it.
//!
//! From the lowest bit: 40 bits of place, one that distinguishes an entry from an empty slot, one
//! that says that the item expires, three of heat, and 19 of tag. The tag is the part of the hash
//! above the bits that selected a bucket when the table was made, so a bucket can be split without
//! reading its items.

/// Where an item begins, in words of eight bytes from the start of the region.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Place(u64);

/// An entry, or an empty slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct IndexEntry(u64);

pub(crate) const PLACE_BITS: u32 = 40;
const PLACE: u64 = (1 << PLACE_BITS) - 1;
const OCCUPIED: u64 = 1 << PLACE_BITS;
const EXPIRES: u64 = 1 << 41;
const HEAT_SHIFT: u32 = 42;
const HEAT: u64 = 0b111 << HEAT_SHIFT;
/// The most reads that an entry counts.
pub(crate) const MOST_HEAT: u64 = HEAT >> HEAT_SHIFT;
const TAG_SHIFT: u32 = 45;
pub(crate) const TAG_BITS: u32 = 19;

const _: () = assert!(TAG_SHIFT + TAG_BITS == u64::BITS);

impl Place {
    /// The place at an offset in bytes, which is a multiple of eight.
    #[inline]
    pub(crate) fn at(byte: usize) -> Self {
        debug_assert!(byte.is_multiple_of(8));
        Self(byte as u64 / 8)
    }

    #[inline]
    pub(crate) fn byte(self) -> usize {
        usize::try_from(self.0 * 8).expect("a place lies in the region, which is in memory")
    }
}

impl IndexEntry {
    pub(crate) const EMPTY: Self = Self(0);

    #[inline]
    pub(crate) fn new(place: Place, tag: u64, expires: bool) -> Self {
        debug_assert!(place.0 <= PLACE && tag < 1 << TAG_BITS);
        let expires = if expires { EXPIRES } else { 0 };
        Self(place.0 | OCCUPIED | expires | tag << TAG_SHIFT)
    }

    #[inline]
    pub(crate) const fn from_word(word: u64) -> Self {
        Self(word)
    }

    #[inline]
    pub(crate) const fn word(self) -> u64 {
        self.0
    }

    #[inline]
    pub(crate) const fn is_empty(self) -> bool {
        self.0 == 0
    }

    #[inline]
    pub(crate) const fn place(self) -> Place {
        Place(self.0 & PLACE)
    }

    #[inline]
    pub(crate) const fn tag(self) -> u64 {
        self.0 >> TAG_SHIFT
    }

    /// Whether this is an entry with that tag.
    #[inline]
    pub(crate) const fn has_tag(self, tag: u64) -> bool {
        self.0 & (OCCUPIED | u64::MAX << TAG_SHIFT) == OCCUPIED | tag << TAG_SHIFT
    }

    #[inline]
    pub(crate) const fn may_expire(self) -> bool {
        self.0 & EXPIRES != 0
    }

    /// How often the item was read since it last moved, counted up to [`MOST_HEAT`].
    #[inline]
    pub(crate) const fn heat(self) -> u64 {
        (self.0 & HEAT) >> HEAT_SHIFT
    }

    #[inline]
    pub(crate) const fn warmer(self) -> Self {
        if self.0 & HEAT == HEAT {
            return self;
        }
        Self(self.0 + (1 << HEAT_SHIFT))
    }

    /// Adds reads to an entry whose count is 0.
    #[inline]
    pub(crate) fn warmed_by(self, reads: u64) -> Self {
        debug_assert!(self.heat() == 0 && reads <= MOST_HEAT);
        Self(self.0 + (reads << HEAT_SHIFT))
    }

    /// Subtracts some of the counted reads.
    #[inline]
    pub(crate) fn cooled_by(self, reads: u64) -> Self {
        debug_assert!(reads <= self.heat());
        Self(self.0 - (reads << HEAT_SHIFT))
    }

    #[inline]
    pub(crate) fn moved_to(self, place: Place) -> Self {
        debug_assert!(place.0 <= PLACE);
        Self(self.0 & !PLACE | place.0)
    }

    #[inline]
    pub(crate) const fn expiring(self, expires: bool) -> Self {
        if expires {
            return Self(self.0 | EXPIRES);
        }
        Self(self.0 & !EXPIRES)
    }
}
