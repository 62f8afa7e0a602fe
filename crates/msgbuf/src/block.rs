//! The descriptors of blocks. A [`MsgBuf`](crate::MsgBuf) is a pointer to one. A free list, and the
//! home of dropped msgbufs, hold blocks by their descriptors.
//!
//! Invariants: the descriptor of a block is written when the block is carved or split, and used
//! only by the owner of the block: its msgbuf, or the free list that holds it. The descriptor lies
//! in memory of the region that only this process maps (`docs/decisions/msgbuf-handles.md`).

use std::ptr::NonNull;
use std::sync::atomic::AtomicBool;

use crate::layout::SMALL_CLASSES;
use crate::region::{RegionBox, RegionPtr};

/// Bits of [`Descriptor::block`] for the number of the block; the bits above are the number of the
/// region in its pool.
pub(crate) const BLOCK_BITS: u32 = 22;
pub(crate) const BLOCK_MASK: u32 = (1 << BLOCK_BITS) - 1;

/// The description of a block that has been carved. Every region has a place for the descriptor of
/// each of its blocks, in memory that no other process sees.
#[derive(Debug)]
pub(crate) struct Descriptor {
    pub(crate) region: RegionPtr,
    pub(crate) data: NonNull<u8>,
    pub(crate) len: u32,
    pub(crate) capacity: u32,
    /// Number of the region in its pool, then number of the block in the region.
    pub(crate) block: u32,
    pub(crate) class: u16,
    /// Whether the block is lent. Its generation shows that too, but the owner has this copy in its
    /// cache.
    pub(crate) lent: AtomicBool,
}

/// A block that has been carved and belongs to no msgbuf: on a free list, or on its way there.
#[derive(Debug)]
pub(crate) struct Block(pub(crate) NonNull<Descriptor>);

const _: () = assert!(size_of::<Descriptor>() == 32);

// SAFETY: a `Block` has the rights of a msgbuf that no thread uses.
unsafe impl Send for Block {}
// SAFETY: a shared `Block` gives no access to the block.
unsafe impl Sync for Block {}

impl Block {
    /// Writes the descriptor of a block. `number` is its number in the form of [`Self::number`];
    /// its data begins at offset `data` of the region.
    ///
    /// # Safety
    /// The block has size class `class`, in a region that stays alive until this value and every
    /// msgbuf of the block are gone, and no other code uses the block. From `data` on, `capacity`
    /// bytes lie inside the block.
    pub(crate) unsafe fn new(
        region: RegionPtr,
        number: u32,
        data: usize,
        capacity: u32,
        class: u16,
    ) -> Self {
        // SAFETY: the region is alive, as the caller promises.
        let (base, place) = unsafe {
            let region = region.get();
            (region.base, region.descriptor(number & BLOCK_MASK))
        };
        let descriptor = Descriptor {
            region,
            // SAFETY: the data lies in the region, as the caller promises.
            data: unsafe { base.add(data) },
            len: 0,
            capacity,
            block: number,
            class,
            lent: AtomicBool::new(false),
        };
        // SAFETY: the place belongs to the block, which nothing else uses.
        unsafe { place.write(descriptor) };
        Self(place)
    }

    /// Number of the region in its pool, then number of the block in the region.
    pub(crate) const fn number(&self) -> u32 {
        // SAFETY: the descriptor was written when the block was carved, and it has no other owner.
        unsafe { self.0.as_ref() }.block
    }

    /// The size class of the block.
    #[inline]
    pub(crate) const fn class(&self) -> usize {
        // SAFETY: as above.
        unsafe { self.0.as_ref() }.class as usize
    }

    /// The region of the block, if the block is the only one in it.
    pub(crate) fn into_own_region(self) -> Option<RegionBox> {
        // SAFETY: a block of such a class is the only one of its region, and the region's owner
        // released the region to it.
        (self.class() >= SMALL_CLASSES)
            .then(|| unsafe { RegionBox::from_released(self.0.as_ref().region) })
    }
}
