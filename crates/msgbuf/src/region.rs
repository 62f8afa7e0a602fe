//! A region: memory with an id, and the generations of its blocks. The pool and the msgbufs share
//! it through [`RegionPtr`]; one [`RegionBox`] owns it (design §8).
//!
//! Invariants:
//! - A region is in the table from its creation until its [`RegionBox`] is dropped,
//!   and a [`RegionBox`] is dropped only when no msgbuf of the region is left. The owner is the
//!   pool, or the home of the buffers that outlived it, or the only msgbuf of the region.
//! - Every byte of the memory is initialised.
//! - A generation is odd while its block is lent and even otherwise, so that a `BufRef`, which
//!   always carries an odd one, matches only a block that is lent now. Only the owner of the block
//!   writes it; [`Region::revoke`] explains how readers are kept safe.

use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering, fence};

use crate::block::{Block, Descriptor};
use crate::errors::AllocError;
use crate::extent::{Extent, GENERATION};
use crate::home::Home;
use crate::layout::{MAX_REGION, MIN_BLOCK};
use crate::name::RegionId;
use crate::sys::{self, Backing, HUGEPAGE, Mapping};
use crate::table::Table;

/// All regions of the process.
pub(crate) static REGIONS: Table<Region> = Table::new();

/// How a region is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RegionOptions {
    /// See `PoolConfig::hugepages`.
    pub(crate) hugepages: bool,
    /// See `PoolConfig::shared`.
    pub(crate) shared: bool,
    /// See `PoolConfig::readable`.
    pub(crate) readable: bool,
    /// See `PoolConfig::data_size`.
    pub(crate) data_size: u32,
}

/// Memory, its id, and the data that its msgbufs share.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Region {
    pub(crate) base: NonNull<u8>,
    /// A generation for each block. In mapped memory they lie after the blocks, where other
    /// processes that have mapped it see them too (`peer`).
    generations: NonNull<AtomicU32>,
    blocks: usize,
    pub(crate) len: usize,
    pub(crate) id: RegionId,
    pub(crate) data_size: u32,
    pub(crate) readable: bool,
    pub(crate) numa_node: Option<u32>,
    /// The home to which dropped msgbufs return, unless the region is user memory.
    pub(crate) home: Arc<Home>,
    /// Room for one descriptor for each block. A descriptor is written when its block is carved.
    /// Only the capacity of the `Vec` is used.
    descriptors: Vec<MaybeUninit<Descriptor>>,
    first_descriptor: NonNull<Descriptor>,
    /// Hugepages were requested up to this offset; `usize::MAX` if the region never requests them.
    gathered: AtomicUsize,
    memory: Memory,
}

/// The memory that the region frees when it is dropped.
#[derive(Debug)]
enum Memory {
    Mapped(Mapping),
    /// Memory of the user, and its generation.
    User(
        Vec<u8>,
        #[expect(dead_code, reason = "reached by its address")] Vec<AtomicU32>,
    ),
}

// SAFETY: the memory is not tied to a thread; only the owner of a msgbuf may read and write its
// bytes, and the generations are atomic. Everything else is `Send`.
unsafe impl Send for Region {}
// SAFETY: a shared region gives access only to plain values, and to the generations, which are
// atomic. The `Vec` of user memory is touched only when the region is taken apart.
unsafe impl Sync for Region {}

impl Region {
    /// The generation of block `block`, if there is such a block.
    #[inline]
    pub(crate) fn generation(&self, block: u32) -> Option<u32> {
        let generation = self.generations().get(block as usize)?;
        // Pairs with the release in `revoke`: a thread that sees the old generation sees
        // the old contents.
        Some(generation.load(Ordering::Acquire))
    }

    /// Marks a block as lent, if it is not yet, and returns the generation of its `BufRef`s.
    ///
    /// Called only by the owner of the block. Several threads may share its msgbuf and call this
    /// concurrently; then all of them write the same value.
    ///
    /// # Safety
    /// `block` is a block of this region.
    #[inline]
    pub(crate) unsafe fn lend(&self, block: u32) -> u32 {
        debug_assert!((block as usize) < self.generations().len());
        // SAFETY: there is one generation for each block, and the caller names a block.
        let generation = unsafe { self.generations().get_unchecked(block as usize) };
        let lent = generation.load(Ordering::Relaxed) | 1;
        generation.store(lent, Ordering::Release);
        lent
    }

    /// Whether a block is lent, so that `BufRef`s to it may exist.
    ///
    /// # Safety
    /// `block` is a block of this region.
    #[inline]
    pub(crate) unsafe fn is_lent(&self, block: u32) -> bool {
        debug_assert!((block as usize) < self.generations().len());
        // SAFETY: there is one generation for each block, and the caller names a block.
        let generation = unsafe { self.generations().get_unchecked(block as usize) };
        generation.load(Ordering::Relaxed) & 1 != 0
    }

    /// Advances the generation of a lent block, so that no `BufRef` to it resolves any more.
    ///
    /// Called only by the owner of the block, with exclusive access to it. In a readable region
    /// it waits for a `regions::read` that is under way.
    ///
    /// # Safety
    /// `block` is a block of this region.
    #[inline]
    pub(crate) unsafe fn revoke(&self, block: u32) {
        debug_assert!((block as usize) < self.generations().len());
        // SAFETY: there is one generation for each block, and the caller names a block.
        let generation = unsafe { self.generations().get_unchecked(block as usize) };
        let lent = generation.load(Ordering::Relaxed);
        if lent & 1 == 0 {
            return;
        }
        if self.readable {
            self.revoke_from_readers(generation, lent);
        } else {
            generation.store(lent.wrapping_add(1), Ordering::Release);
        }
        // A reader in another process reads the generation after copying the block. If it has
        // copied any byte that is written after this, it must find the new generation.
        fence(Ordering::Release);
    }

    #[cold]
    #[inline(never)]
    fn revoke_from_readers(&self, generation: &AtomicU32, lent: u32) {
        let _no_reader = REGIONS.lock(self.id);
        generation.store(lent.wrapping_add(1), Ordering::Release);
    }

    #[inline]
    fn generations(&self) -> &[AtomicU32] {
        // SAFETY: the generations lie in the region's memory, which lives as long as the region, at
        // an aligned place, and zeroed memory is valid for atomics.
        unsafe { std::slice::from_raw_parts(self.generations.as_ptr(), self.blocks) }
    }

    /// The place of the descriptor of a block. Only the owner of the block uses the descriptor.
    #[inline]
    pub(crate) fn descriptor(&self, block: u32) -> NonNull<Descriptor> {
        debug_assert!((block as usize) < self.descriptors.capacity());
        // SAFETY: there is room for one for each block, and callers name a block of this region.
        unsafe { self.first_descriptor.add(block as usize) }
    }

    /// Whether this is a block of the region. Compares only the address of the descriptor, and
    /// reads no memory.
    pub(crate) fn describes(&self, block: &Block) -> bool {
        let first = self.first_descriptor.as_ptr();
        let end = first.wrapping_add(self.blocks);
        (first..end).contains(&block.0.as_ptr())
    }

    /// The sizes that other processes need to map the memory; `None` if they cannot map it.
    pub(crate) fn extent(&self) -> Option<Extent> {
        match &self.memory {
            Memory::Mapped(mapping) => Some(Extent {
                mapped: mapping.len(),
                bytes: self.len,
                generations: self.blocks,
            }),
            Memory::User(..) => None,
        }
    }

    /// Asks the kernel for hugepages for the bytes up to `end`, unless it was asked for them
    /// before. The region holds a single block, whose owner calls this.
    #[inline]
    pub(crate) fn gather(&self, end: usize) {
        if end > self.gathered.load(Ordering::Relaxed) {
            self.gather_more(end);
        }
    }

    #[cold]
    #[inline(never)]
    fn gather_more(&self, end: usize) {
        let Memory::Mapped(mapping) = &self.memory else {
            return;
        };
        let begin = self.gathered.load(Ordering::Relaxed);
        let end = end.next_multiple_of(HUGEPAGE);
        self.gathered.store(end, Ordering::Relaxed);
        mapping.gather(begin..end.min(mapping.len()));
    }

    pub(crate) fn backing(&self) -> Backing {
        match &self.memory {
            Memory::Mapped(mapping) => mapping.backing(),
            Memory::User(..) => Backing::User,
        }
    }

    pub(crate) fn fd(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
        match &self.memory {
            Memory::Mapped(mapping) => mapping.fd(),
            Memory::User(..) => None,
        }
    }
}

/// Untouched room for the descriptors of `blocks` blocks; `None` if there is no memory.
fn describe(blocks: usize) -> Option<(Vec<MaybeUninit<Descriptor>>, NonNull<Descriptor>)> {
    let mut room = Vec::new();
    room.try_reserve_exact(blocks).ok()?;
    let first = NonNull::new(room.as_mut_ptr())?;
    Some((room, first.cast()))
}

/// A region that a pool, a home, or the msgbuf with this pointer keeps alive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RegionPtr(NonNull<Region>);

// SAFETY: this is a shared reference to a region in all but the lifetime, and `Region` is `Sync`.
unsafe impl Send for RegionPtr {}
// SAFETY: as above.
unsafe impl Sync for RegionPtr {}

impl RegionPtr {
    /// # Safety
    /// The region must live as long as the reference is used.
    #[inline]
    pub(crate) unsafe fn get<'a>(self) -> &'a Region {
        // SAFETY: the pointer comes from a `RegionBox` that is alive, as the caller promises.
        unsafe { self.0.as_ref() }
    }
}

/// The owner of a region. Dropping it takes the region out of the table and frees the memory.
#[derive(Debug)]
pub(crate) struct RegionBox(RegionPtr);

impl RegionBox {
    /// Maps a region of at least `len` bytes, with a generation for each of its smallest blocks, or
    /// with only one generation if the region will hold a single block.
    pub(crate) fn map(
        len: usize,
        single: bool,
        options: RegionOptions,
        home: &Arc<Home>,
    ) -> Result<Self, AllocError> {
        let blocks = if single { 1 } else { len / MIN_BLOCK };
        let whole = len + blocks * GENERATION;
        let mapping = Mapping::new(whole, options.shared, options.hugepages);
        let mapping = mapping.ok_or(AllocError::NoMemory)?;
        // With hugepages the mapping may be larger than requested.
        let blocks = if single {
            1
        } else {
            (mapping.len() / (MIN_BLOCK + GENERATION)).min(MAX_REGION / MIN_BLOCK)
        };
        let usable = if single { len } else { blocks * MIN_BLOCK };
        let (descriptors, first_descriptor) = describe(blocks).ok_or(AllocError::NoMemory)?;
        // SAFETY: blocks and generations together are not longer than the mapping.
        let generations = unsafe { mapping.base().add(usable) }.cast();
        Self::publish(Region {
            base: mapping.base(),
            generations,
            blocks,
            len: usable,
            id: RegionId::NONE,
            data_size: options.data_size,
            readable: options.readable,
            numa_node: sys::current_node(),
            home: home.clone(),
            descriptors,
            first_descriptor,
            gathered: AtomicUsize::new(match single && options.hugepages {
                true => 0,
                false => usize::MAX,
            }),
            memory: Memory::Mapped(mapping),
        })
        .map_err(|_full| AllocError::TooManyRegions)
    }

    /// Makes a region of the user's memory; returns the memory if there are too many regions.
    pub(crate) fn adopt(
        mut memory: Vec<u8>,
        options: RegionOptions,
        home: &Arc<Home>,
    ) -> Result<Self, Vec<u8>> {
        let mut generation = vec![AtomicU32::new(0)];
        let Some((descriptors, first_descriptor)) = describe(1) else {
            return Err(memory);
        };
        let region = Region {
            base: NonNull::new(memory.as_mut_ptr()).expect("a Vec has no null pointer"),
            generations: NonNull::from(generation.as_mut_slice()).cast(),
            blocks: 1,
            len: memory.len(),
            id: RegionId::NONE,
            data_size: options.data_size,
            readable: options.readable,
            numa_node: None,
            home: home.clone(),
            descriptors,
            first_descriptor,
            gathered: AtomicUsize::new(usize::MAX),
            memory: Memory::User(memory, generation),
        };
        Self::publish(region).map_err(|region| match region.memory {
            Memory::User(memory, _) => memory,
            Memory::Mapped(_) => Vec::new(),
        })
    }

    /// # Safety
    /// [`Self::release`] must have released the region, and no other call takes it over.
    pub(crate) unsafe fn from_released(region: RegionPtr) -> Self {
        Self(region)
    }

    /// Passes the ownership to the owner of the pointer.
    pub(crate) fn release(self) -> RegionPtr {
        std::mem::ManuallyDrop::new(self).0
    }

    #[inline]
    pub(crate) fn ptr(&self) -> RegionPtr {
        self.0
    }

    #[inline]
    pub(crate) fn get(&self) -> &Region {
        // SAFETY: the region lives as long as its owner, from which this borrows.
        unsafe { self.0.get() }
    }

    /// Takes a region of user memory apart, and returns the memory. Frees any other region, and
    /// returns `None`.
    pub(crate) fn into_user(self) -> Option<Vec<u8>> {
        let region = self.release();
        match withdraw(region).memory {
            Memory::User(memory, _) => Some(memory),
            Memory::Mapped(_) => None,
        }
    }

    fn publish(region: Region) -> Result<Self, Box<Region>> {
        let raw = NonNull::from(Box::leak(Box::new(region)));
        // SAFETY: the region was just leaked; no other thread knows it until it is in the table.
        let set = |id| unsafe { (*raw.as_ptr()).id = id };
        match REGIONS.insert(raw, set) {
            true => Ok(Self(RegionPtr(raw))),
            // SAFETY: as above, and the table did not take it.
            false => Err(unsafe { Box::from_raw(raw.as_ptr()) }),
        }
    }
}

impl Drop for RegionBox {
    fn drop(&mut self) {
        drop(withdraw(self.0));
    }
}

/// Takes a region out of the table and back into a box. The owner calls this, and must not use the
/// pointer again.
fn withdraw(region: RegionPtr) -> Box<Region> {
    // SAFETY: the owner calls, so the region is alive.
    REGIONS.remove(unsafe { region.get() }.id);
    // SAFETY: the pointer came from a leaked box, the table no longer has it, and the owner, which
    // alone still knows it, does not use it again.
    unsafe { Box::from_raw(region.0.as_ptr()) }
}
