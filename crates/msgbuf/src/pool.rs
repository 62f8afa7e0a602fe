//! The pool of one endpoint: allocates and recycles msgbufs by size class (design §8).
//!
//! A message that takes up to 64 KiB with its headers gets a block of the next power of two. The
//! pool carves the block from a region when it is first needed, and later keeps it on a
//! last-in-first-out list. Therefore, the pool touches only memory that is used, and the next
//! message gets a block that is still in the cache. Free blocks are split only when the pool is at
//! its limit, and never joined. A longer message gets a region of its own; the pool keeps a bounded
//! number of bytes of such regions for later messages.
//!
//! Invariants: every block of a region is out (a msgbuf owns it), on exactly one free list, or not
//! carved yet; `out` counts the msgbufs of each class that have not returned to this pool,
//! including those that wait in its home. One endpoint thread owns the pool; only the home is
//! shared.

use std::sync::Arc;

use crate::block::{BLOCK_BITS, BLOCK_MASK, Block};
use crate::buf::MsgBuf;
use crate::config::{PoolConfig, PoolError};
use crate::errors::AllocError;
use crate::home::Home;
use crate::large::LargeCache;
use crate::layout::{
    self, CLASSES, DATA_OFFSET, Layout, MAX_BLOCK, MAX_MESSAGE, MAX_REGION, MIN_BLOCK,
    MIN_BLOCK_SHIFT, SMALL_CLASSES,
};
use crate::region::{RegionBox, RegionOptions};

/// User memory that was not adopted, and why.
#[derive(Debug)]
pub struct AdoptError {
    /// Why it was not adopted.
    pub reason: AllocError,
    /// The memory, unchanged.
    pub memory: Vec<u8>,
}

/// Message buffers for one endpoint. The pool may be dropped before its msgbufs: their memory lives
/// until the last of them is dropped.
///
/// ```
/// use dunlin_msgbuf::{Pool, PoolConfig};
/// let mut pool = Pool::new(PoolConfig::default())?;
/// let mut request = pool.alloc(32).expect("a new pool has room");
/// request.data_mut().fill(7);
/// pool.recycle(request);
/// assert_eq!(pool.outstanding(), 0);
/// # Ok::<(), dunlin_msgbuf::PoolError>(())
/// ```
#[derive(Debug)]
pub struct Pool {
    /// Free blocks by class.
    free: [Vec<Block>; SMALL_CLASSES],
    /// Msgbufs out, by class.
    out: [usize; CLASSES],
    /// Longest message of a carved block, by class.
    capacity: [u32; SMALL_CLASSES],
    /// Longest message for which `alloc` finds the class without counting packets.
    single_limit: usize,
    regions: Vec<RegionBox>,
    home: Arc<Home>,
    /// The carved part of the last region, in smallest blocks.
    carved: u32,
    large: LargeCache,
    layout: Layout,
    options: RegionOptions,
    /// Size of the first region.
    first: usize,
    max_bytes: usize,
    mapped: usize,
    /// Always empty. `collect` swaps it with the home's list, to reuse its memory.
    collected: Vec<Block>,
}

const _: () = {
    // A block's place in its region, and a region's place in its pool, share 32 bits.
    assert!(MAX_REGION / MIN_BLOCK <= 1 << BLOCK_BITS);
    assert!(MAX_REGION.is_multiple_of(crate::sys::HUGEPAGE));
};

/// Number of blocks of each class for which the lists of a new pool have room.
const FEW: usize = 64;

/// The part of the first region that trimming never frees, in smallest blocks: 128 KiB.
const KEPT_UNITS: u32 = 1 << 10;

/// Largest number of regions from which a pool carves blocks. If all have the largest size, they
/// have 64 GiB.
const MAX_REGIONS: usize = 1 << (32 - BLOCK_BITS);

impl Pool {
    /// Makes a pool with its first region. Without hugepages it uses ordinary pages.
    ///
    /// # Errors
    /// See [`PoolError`].
    pub fn new(config: PoolConfig) -> Result<Self, PoolError> {
        let first = config.check()?;
        let layout = Layout::new(config.data_size);
        let mut pool = Self {
            free: std::array::from_fn(|_| Vec::with_capacity(FEW)),
            out: [0; CLASSES],
            capacity: std::array::from_fn(|class| as_u32(layout.capacity(MIN_BLOCK << class))),
            single_limit: layout.single_limit(),
            regions: Vec::new(),
            home: Arc::default(),
            carved: 0,
            large: LargeCache::default(),
            layout,
            options: config.region_options(),
            first,
            max_bytes: config.max_bytes,
            mapped: 0,
            collected: Vec::new(),
        };
        pool.add_region(first).map_err(PoolError::Alloc)?;
        Ok(pool)
    }

    /// A msgbuf with a message of `len` bytes, whose bytes hold data of some earlier message.
    ///
    /// # Errors
    /// See [`AllocError`].
    #[inline]
    pub fn alloc(&mut self, len: usize) -> Result<MsgBuf, AllocError> {
        if len <= self.single_limit {
            let class = layout::small_class(DATA_OFFSET + len);
            if let Some(block) = self.free[class].pop() {
                return Ok(self.issue(class, block, len));
            }
        }
        self.alloc_slow(len)
    }

    /// A msgbuf for a message of `len` bytes that arrives in parts. Call [`MsgBuf::prepare`] before
    /// writing bytes: a long message is prepared piece by piece, because preparing a gibibyte here
    /// would take some tenths of a second.
    ///
    /// # Errors
    /// See [`AllocError`].
    pub fn alloc_for_parts(&mut self, len: usize) -> Result<MsgBuf, AllocError> {
        match self.layout.class(len) {
            Some(class) if class >= SMALL_CLASSES => self.alloc_large(class, len),
            _ => self.alloc(len),
        }
    }

    /// Returns a msgbuf to the pool, for the next message. A msgbuf of another pool returns to that
    /// pool, as if dropped.
    #[inline]
    pub fn recycle(&mut self, buf: MsgBuf) {
        let class = buf.class();
        if class < SMALL_CLASSES && buf.is_from(&self.home) {
            let block = buf.into_block();
            self.out[class] -= 1;
            self.free[class].push(block);
        } else {
            self.recycle_slow(buf);
        }
    }

    /// Makes a msgbuf of the user's memory, which becomes a region of its own.
    /// [`MsgBuf::into_user`] returns the memory; otherwise it is freed with the msgbuf. Such a
    /// msgbuf has no room for headers, so transports that need registered memory copy it.
    ///
    /// # Errors
    /// Returns the memory if it is longer than [`MAX_MESSAGE`], or if there are too many regions.
    ///
    /// ```
    /// # let mut pool = dunlin_msgbuf::Pool::new(dunlin_msgbuf::PoolConfig::default()).unwrap();
    /// let buf = pool.adopt(vec![1, 2, 3]).expect("it is short");
    /// assert_eq!(buf.data(), [1, 2, 3]);
    /// assert_eq!(buf.into_user().expect("it is the user's"), [1, 2, 3]);
    /// ```
    pub fn adopt(&mut self, memory: impl Into<Vec<u8>>) -> Result<MsgBuf, AdoptError> {
        let memory = memory.into();
        if memory.len() > MAX_MESSAGE {
            return Err(AdoptError {
                reason: AllocError::TooLarge,
                memory,
            });
        }
        match RegionBox::adopt(memory, self.options, &self.home) {
            Ok(region) => Ok(MsgBuf::of_user(region)),
            Err(memory) => Err(AdoptError {
                reason: AllocError::TooManyRegions,
                memory,
            }),
        }
    }

    /// Bytes of the blocks that are out; adopted memory is not counted.
    pub fn bytes_in_use(&mut self) -> usize {
        self.collect();
        let sizes = (0..CLASSES).map(|class| self.layout.block_size(class));
        self.out
            .iter()
            .zip(sizes)
            .map(|(&out, size)| out * size)
            .sum()
    }

    /// Bytes of all regions, used or not; adopted memory is not counted.
    pub fn bytes_mapped(&self) -> usize {
        self.mapped
    }

    /// Msgbufs that are out; adopted memory is not counted.
    pub fn outstanding(&self) -> usize {
        self.out.iter().sum::<usize>() - self.home.waiting()
    }

    /// Returns the memory of unused regions to the system, beginning with the newest region, and
    /// stops at the first one in use. An unused first region is replaced if much of it was carved.
    /// This takes about a nanosecond for each free msgbuf and each region.
    ///
    /// ```
    /// # let mut pool = dunlin_msgbuf::Pool::new(dunlin_msgbuf::PoolConfig::default()).unwrap();
    /// let bufs: Vec<_> = (0..20_000).map(|_| pool.alloc(32).unwrap()).collect();
    /// let most = pool.bytes_mapped();
    /// drop(bufs);
    /// pool.trim();
    /// assert!(pool.bytes_mapped() < most);
    /// ```
    pub fn trim(&mut self) {
        self.collect();
        while self.is_last_unused() && (self.regions.len() > 1 || self.carved > KEPT_UNITS) {
            self.remove_last();
        }
        if self.regions.is_empty() {
            // If this fails, the next allocation tries again.
            let _ = self.add_region(self.first);
        }
    }

    /// Whether all carved blocks of the last region are free.
    fn is_last_unused(&self) -> bool {
        let Some(last) = self.regions.last() else {
            return false;
        };
        let units = self.free.iter().enumerate().map(|(class, free)| {
            let here = free.iter().filter(|block| last.get().describes(block));
            here.count() << class
        });
        units.sum::<usize>() == self.carved as usize
    }

    /// Frees the last region, all of whose blocks are free.
    fn remove_last(&mut self) {
        let Some(last) = self.regions.pop() else {
            return;
        };
        for (free, out) in self.free.iter_mut().zip(self.out) {
            free.retain(|block| !last.get().describes(block));
            // The list still has room for all blocks in use.
            free.shrink_to((free.len() + out).max(FEW));
        }
        self.mapped -= last.get().len;
        let before = self.regions.last().map_or(0, |region| region.get().len);
        // The rest of every region but the last was shelved.
        self.carved = as_u32(before / MIN_BLOCK);
    }

    /// Makes a msgbuf from a free block of `class`.
    #[inline]
    fn issue(&mut self, class: usize, block: Block, len: usize) -> MsgBuf {
        self.out[class] += 1;
        debug_assert!(len <= self.capacity[class] as usize);
        #[expect(clippy::cast_possible_truncation, reason = "the class fits the length")]
        MsgBuf::of(block, len as u32)
    }

    /// The rest of [`Self::alloc`]: messages of several packets, and classes without free blocks.
    #[cold]
    #[inline(never)]
    fn alloc_slow(&mut self, len: usize) -> Result<MsgBuf, AllocError> {
        let class = self.layout.class(len).ok_or(AllocError::TooLarge)?;
        if class >= SMALL_CLASSES {
            let mut buf = self.alloc_large(class, len)?;
            buf.prepare(len);
            return Ok(buf);
        }
        if self.free[class].is_empty() {
            self.collect();
        }
        let block = match self.free[class].pop() {
            Some(block) => block,
            None => self.carve(class)?,
        };
        Ok(self.issue(class, block, len))
    }

    fn alloc_large(&mut self, class: usize, len: usize) -> Result<MsgBuf, AllocError> {
        self.collect();
        let region = match self.large.pop(class) {
            Some(region) => region,
            None => {
                let size = self.layout.block_size(class);
                self.make_room(size)?;
                let region = RegionBox::map(size, true, self.options, &self.home)?;
                self.mapped += region.get().len;
                region
            }
        };
        self.out[class] += 1;
        let capacity = as_u32(self.layout.capacity(self.layout.block_size(class)));
        // SAFETY: the region has one block, of this class, and the msgbuf becomes its owner.
        let block =
            unsafe { Block::new(region.release(), 0, DATA_OFFSET, capacity, as_u16(class)) };
        Ok(MsgBuf::of(block, as_u32(len)))
    }

    #[cold]
    #[inline(never)]
    fn recycle_slow(&mut self, buf: MsgBuf) {
        let class = buf.class();
        if class >= CLASSES || !buf.is_from(&self.home) {
            // The msgbuf is user memory, or belongs to another pool.
            return drop(buf);
        }
        self.take_back(buf.into_block());
    }

    /// Puts a block of this pool that was in use on its free list.
    fn take_back(&mut self, block: Block) {
        let class = block.class();
        self.out[class] -= 1;
        if class < SMALL_CLASSES {
            return self.free[class].push(block);
        }
        let region = block
            .into_own_region()
            .expect("a large class has a region of its own");
        if let Some(surplus) = self.large.push(class, region) {
            self.mapped -= surplus.get().len;
        }
    }

    /// Collects msgbufs that were dropped instead of recycled.
    fn collect(&mut self) {
        if self.home.waiting() == 0 {
            return;
        }
        let mut collected = std::mem::take(&mut self.collected);
        self.home.collect(&mut collected);
        for block in collected.drain(..) {
            self.take_back(block);
        }
        self.collected = collected;
    }

    /// Carves a block from memory that was never used.
    fn carve(&mut self, class: usize) -> Result<Block, AllocError> {
        let units = 1 << class;
        if self.units_left() < units {
            let last = self
                .regions
                .last()
                .map_or(MAX_BLOCK, |region| region.get().len);
            if let Err(limit) = self.grow((last * 2).min(MAX_REGION)) {
                return self.split(class).ok_or(limit);
            }
        }
        // Returning a block must never allocate, so the list has room for all blocks in use.
        self.free[class].reserve(self.out[class] + 1);
        Ok(self.cut(class))
    }

    /// Splits a larger free block; returns a block of `class`, and lists the other parts as free.
    fn split(&mut self, class: usize) -> Option<Block> {
        let from = (class + 1..SMALL_CLASSES).find(|&from| !self.free[from].is_empty())?;
        let number = self.free[from].pop()?.number();
        for half in class..from {
            let block = self.block(number + (1 << half), half);
            self.free[half].push(block);
        }
        Some(self.block(number, class))
    }

    /// Adds a region of `size` bytes, or less if the pool is near its limit.
    fn grow(&mut self, size: usize) -> Result<(), AllocError> {
        if self.regions.len() == MAX_REGIONS {
            return Err(AllocError::Limit);
        }
        if self.make_room(size).is_err() {
            let rest = self.max_bytes.saturating_sub(self.mapped);
            let size = rest - rest % MAX_BLOCK;
            return if size == 0 {
                Err(AllocError::Limit)
            } else {
                self.add_region(size)
            };
        }
        self.add_region(size)
    }

    fn add_region(&mut self, size: usize) -> Result<(), AllocError> {
        let region = RegionBox::map(size, false, self.options, &self.home)?;
        self.shelve_rest();
        self.mapped += region.get().len;
        self.regions.push(region);
        self.carved = 0;
        Ok(())
    }

    /// Turns the uncarved rest of the last region into free blocks, before a new region follows it.
    fn shelve_rest(&mut self) {
        while self.units_left() > 0 {
            let class = (self.units_left().ilog2() as usize).min(SMALL_CLASSES - 1);
            let block = self.cut(class);
            self.free[class].push(block);
        }
    }

    /// The part of the last region that is not carved yet, in smallest blocks.
    fn units_left(&self) -> u32 {
        let units = self
            .regions
            .last()
            .map_or(0, |region| region.get().len / MIN_BLOCK);
        as_u32(units) - self.carved
    }

    /// Carves a block of `class`, for which there is room, from the last region.
    fn cut(&mut self, class: usize) -> Block {
        let first = self.carved;
        self.carved += 1 << class;
        self.block(
            (as_u32(self.regions.len() - 1) << BLOCK_BITS) | first,
            class,
        )
    }

    /// Describes block `number` as one of `class`; no other code may use any part of it.
    fn block(&self, number: u32, class: usize) -> Block {
        let region = &self.regions[(number >> BLOCK_BITS) as usize];
        let offset = ((number & BLOCK_MASK) as usize) << MIN_BLOCK_SHIFT;
        let (capacity, class) = (self.capacity[class], as_u16(class));
        // SAFETY: the caller has carved the block, or has split a free block, so it lies in the
        // region and no other code uses it. The region is freed only when all its msgbufs have
        // returned.
        unsafe { Block::new(region.ptr(), number, offset + DATA_OFFSET, capacity, class) }
    }

    /// Makes sure that `size` more bytes can be mapped, and frees cached regions if necessary.
    fn make_room(&mut self, size: usize) -> Result<(), AllocError> {
        while self.mapped.saturating_add(size) > self.max_bytes {
            let freed = self.large.evict().ok_or(AllocError::Limit)?;
            self.mapped -= freed.get().len;
        }
        Ok(())
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let outstanding = self.out.iter().sum();
        self.home
            .orphan(outstanding, std::mem::take(&mut self.regions));
    }
}

impl std::fmt::Display for AdoptError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "memory of {} bytes was not adopted: {}",
            self.memory.len(),
            self.reason
        )
    }
}

impl std::error::Error for AdoptError {}

fn as_u16(class: usize) -> u16 {
    u16::try_from(class).expect("there are few classes")
}

/// Converts a size or a count that the limits of this crate keep far below 2^32.
fn as_u32(n: usize) -> u32 {
    u32::try_from(n).expect("offsets, lengths and counts in a region fit 32 bits")
}

#[cfg(test)]
mod tests;
