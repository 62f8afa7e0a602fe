//! Message buffers: [`MsgBuf`], which owns a block of a region, and lends its bytes under the name
//! of a [`BufRef`] (design §8, eRPC §4.2).
//!
//! Invariants:
//! - A block has at most one [`MsgBuf`], and blocks do not overlap. Therefore, a [`MsgBuf`] has
//!   exclusive access to its bytes, which live as long as the [`MsgBuf`].
//! - Code that writes to a msgbuf, or recycles it, first ends the lifetime of all its `BufRef`s.
//! - The descriptor is marked as lent if and only if the block's generation is odd. Other code
//!   relies on the generation; the owner reads the descriptor, which is in its cache.
//! - A [`MsgBuf`] is a pointer to the [`Descriptor`] of its block, which only its owner uses.
//!   Therefore, a move takes one register (`docs/decisions/msgbuf-handles.md`).
//! - `len <= capacity`, and `capacity` bytes from `data` lie inside the block, initialised.
//!
//! Made by `pool`, held by the endpoint and its user.

use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::block::{BLOCK_MASK, Block, Descriptor};
use crate::copy;
use crate::errors::TooLong;
use crate::home::Home;
use crate::layout::{self, DATA_OFFSET, Layout, MIN_BLOCK, SMALL_CLASSES, USER_CLASS};
use crate::name::BufRef;
use crate::region::RegionBox;

/// A message buffer: up to [`MsgBuf::capacity`] contiguous bytes of a registered region, with room
/// for packet headers around them. It belongs to the thread that holds it, and goes back to
/// its [`Pool`](crate::Pool) when it is dropped.
///
/// A `MsgBuf` is a pointer, and so is an `Option<MsgBuf>`.
///
/// ```
/// # let mut pool = dunlin_msgbuf::Pool::new(dunlin_msgbuf::PoolConfig::default()).unwrap();
/// let mut buf = pool.alloc(8).unwrap();
/// buf.data_mut().copy_from_slice(&7_u64.to_le_bytes());
/// assert_eq!(buf.data()[0], 7);
/// ```
///
/// A msgbuf has one owner, so no code can use it after giving it back:
///
/// ```compile_fail,E0382
/// # let mut pool = dunlin_msgbuf::Pool::new(dunlin_msgbuf::PoolConfig::default()).unwrap();
/// let buf = pool.alloc(8).unwrap();
/// pool.recycle(buf);
/// buf.len();
/// ```
///
/// ```compile_fail,E0599
/// # let mut pool = dunlin_msgbuf::Pool::new(dunlin_msgbuf::PoolConfig::default()).unwrap();
/// let buf = pool.alloc(8).unwrap();
/// let second: dunlin_msgbuf::MsgBuf = buf.clone();
/// ```
///
/// ```compile_fail,E0505
/// # let mut pool = dunlin_msgbuf::Pool::new(dunlin_msgbuf::PoolConfig::default()).unwrap();
/// let buf = pool.alloc(8).unwrap();
/// let data = buf.data();
/// pool.recycle(buf);
/// data.len();
/// ```
pub struct MsgBuf(NonNull<Descriptor>);

const _: () = assert!(size_of::<Option<MsgBuf>>() == size_of::<usize>());

// SAFETY: it owns its block and the block's descriptor, and the block's region stays alive,
// whichever thread it is on.
unsafe impl Send for MsgBuf {}
// SAFETY: a shared msgbuf gives out shared slices and `BufRef`s, and only reads its descriptor.
// Concurrent calls of `lend` store equal values into the block's generation and into the mark of
// the descriptor, which are atomic.
unsafe impl Sync for MsgBuf {}
impl MsgBuf {
    /// Bytes of the message.
    #[inline]
    pub const fn len(&self) -> usize {
        self.at().len as usize
    }

    /// Whether the message has no bytes.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.at().len == 0
    }

    /// Longest message that fits, in bytes.
    #[inline]
    pub const fn capacity(&self) -> usize {
        self.at().capacity as usize
    }

    /// The message.
    #[inline]
    pub const fn data(&self) -> &[u8] {
        // SAFETY: the block is ours and has `capacity >= len` initialised bytes from `data`; they
        // are written only through `&mut self`.
        unsafe { std::slice::from_raw_parts(self.at().data.as_ptr(), self.len()) }
    }

    /// The message, for writing. This revokes the msgbuf if it is lent.
    #[inline(always)]
    pub fn data_mut(&mut self) -> &mut [u8] {
        self.revoke();
        // SAFETY: the block is ours alone and has `capacity >= len` initialised bytes from `data`.
        // No `regions::read` is under way: it would have found the block lent, and we revoked it.
        unsafe { std::slice::from_raw_parts_mut(self.at().data.as_ptr(), self.len()) }
    }

    /// Prepares the first `len` bytes of a long message for writing: if its memory is new, asks the
    /// kernel for hugepages for these bytes. Without this, writing works but takes longer.
    ///
    /// ```
    /// # let mut pool = dunlin_msgbuf::Pool::new(dunlin_msgbuf::PoolConfig::default()).unwrap();
    /// let mut buf = pool.alloc_for_parts(8 << 20).unwrap();
    /// buf.prepare(5);
    /// buf.data_mut()[..5].copy_from_slice(b"hello");
    /// ```
    #[inline]
    pub fn prepare(&mut self, len: usize) {
        let at = self.at();
        if usize::from(at.class) >= SMALL_CLASSES {
            // SAFETY: the region lives as long as its msgbuf.
            unsafe { at.region.get() }.gather(DATA_OFFSET + len);
        }
    }

    /// Starts to load the descriptor of the buffer, which every other use needs first.
    #[inline]
    pub fn prefetch_descriptor(&self) {
        crate::prefetch_read(self.at());
    }

    /// Starts to load the first bytes of the message. If the descriptor is not in the cache, this
    /// waits for it.
    #[inline]
    pub fn prefetch_data(&self) {
        crate::prefetch_read(self.data());
    }

    /// Sets the length of the message. If the message grows, its new bytes hold data of some
    /// earlier message.
    ///
    /// # Errors
    /// [`TooLong`] beyond [`Self::capacity`]; the length is then unchanged.
    #[inline]
    pub fn resize(&mut self, len: usize) -> Result<(), TooLong> {
        match u32::try_from(len) {
            Ok(short) if short <= self.at().capacity => {
                self.at_mut().len = short;
                Ok(())
            }
            _ => Err(TooLong {
                len,
                capacity: self.capacity(),
            }),
        }
    }

    /// Sets the length of the message, like [`Self::resize`], and returns the message for writing.
    /// This revokes the msgbuf if it is lent.
    ///
    /// # Errors
    /// [`TooLong`] beyond [`Self::capacity`]; the message is then unchanged.
    #[inline(always)]
    pub fn resized(&mut self, len: usize) -> Result<&mut [u8], TooLong> {
        self.resize(len)?;
        self.revoke();
        // SAFETY: as in `data_mut`; the msgbuf has this length now.
        Ok(unsafe { std::slice::from_raw_parts_mut(self.at().data.as_ptr(), len) })
    }

    /// Makes `bytes` the message. This revokes the msgbuf if it is lent.
    ///
    /// # Errors
    /// [`TooLong`] beyond [`Self::capacity`]; the message is then unchanged.
    #[inline]
    pub fn fill(&mut self, bytes: &[u8]) -> Result<(), TooLong> {
        copy::settled(self.resized(bytes.len())?, bytes);
        Ok(())
    }

    /// Names the whole message. The reference holds until the msgbuf is revoked, written
    /// to, recycled or dropped.
    #[inline]
    pub fn lend(&self) -> BufRef {
        self.name(self.data_offset(), self.at().len)
    }

    /// Names `len` bytes of the message from `offset` on; `None` if the message is shorter.
    #[inline]
    pub fn lend_range(&self, offset: usize, len: usize) -> Option<BufRef> {
        let end = offset.checked_add(len)?;
        if end > self.len() {
            return None;
        }
        let (offset, len) = (u32::try_from(offset).ok()?, u32::try_from(len).ok()?);
        Some(self.name(self.data_offset() + offset, len))
    }

    /// Names the header slot of a packet, with [`HEADROOM`](crate::HEADROOM) free bytes in front of
    /// it. `None` if the message has no such packet at the pool's data size, or lies in user
    /// memory, which has no room for headers.
    pub fn header_ref(&self, packet: usize) -> Option<BufRef> {
        if self.at().class == USER_CLASS {
            return None;
        }
        // SAFETY: our region lives as long as we do.
        let data_size = unsafe { self.at().region.get() }.data_size;
        let layout = Layout::new(data_size);
        if packet >= layout.packets(self.len()) {
            return None;
        }
        let within = layout::header_offset(layout.block_size(self.class()), packet);
        let offset = self.block_offset() + u32::try_from(within).ok()?;
        Some(self.name(offset, HEADER))
    }

    /// Whether this msgbuf is lent, so that `BufRef`s to it may exist.
    #[inline]
    pub fn is_lent(&self) -> bool {
        self.at().lent.load(Ordering::Relaxed)
    }

    /// Ends the lifetime of every [`BufRef`] lent so far: none of them resolves any more. Called by
    /// core once the transport is done with them.
    #[inline(always)]
    pub fn revoke(&mut self) {
        debug_assert_eq!(self.is_lent(), self.is_lent_to_others());
        if self.is_lent() {
            self.revoke_lent();
        }
    }

    /// Copies the message to the front of `to`, in words, with zeros after it, and returns its
    /// length; `None` if the message is longer than `to`. This does not lend the msgbuf, because
    /// the transport that sends the copy does not need it.
    ///
    /// ```
    /// # let mut pool = dunlin_msgbuf::Pool::new(dunlin_msgbuf::PoolConfig::default()).unwrap();
    /// let mut buf = pool.alloc(33).unwrap();
    /// buf.fill(b"abc").unwrap();
    /// let mut to = [0; 32];
    /// assert_eq!(buf.copy_short(&mut to), Some(3));
    /// assert_eq!(&to[..4], b"abc\0");
    /// buf.fill(&[1; 33]).unwrap();
    /// assert_eq!(buf.copy_short(&mut to), None);
    /// ```
    #[inline(always)]
    pub fn copy_short(&self, to: &mut [u8; 32]) -> Option<u32> {
        copy::fresh(to, self.data()).then_some(self.at().len)
    }

    #[cold]
    fn revoke_lent(&mut self) {
        self.at().lent.store(false, Ordering::Relaxed);
        // SAFETY: our region lives as long as we do, and our block is a block of it.
        unsafe { self.at().region.get().revoke(self.block_index()) };
    }

    /// Returns the memory that [`Pool::adopt`](crate::Pool::adopt) took over, cut to the length of
    /// the message.
    ///
    /// # Errors
    /// A msgbuf that is not user memory comes back unchanged.
    pub fn into_user(mut self) -> Result<Vec<u8>, Self> {
        if self.at().class != USER_CLASS {
            return Err(self);
        }
        self.revoke();
        let len = self.len();
        let region = self
            .into_block()
            .into_own_region()
            .expect("user memory is a region of its own");
        let mut memory = region
            .into_user()
            .expect("the class says that it is user memory");
        memory.truncate(len);
        Ok(memory)
    }

    /// Makes a msgbuf of all bytes of a region of user memory.
    pub(crate) fn of_user(region: RegionBox) -> Self {
        let len = u32::try_from(region.get().len).expect("longer memory is not adopted");
        // SAFETY: the region has one block, from its first byte on, and we become its owner.
        let block = unsafe { Block::new(region.release(), 0, 0, len, USER_CLASS) };
        Self::of(block, len)
    }

    /// The msgbuf of a block, with a message of `len` bytes, which fit.
    #[inline]
    pub(crate) fn of(block: Block, len: u32) -> Self {
        let mut buf = Self(block.0);
        debug_assert!(len <= buf.at().capacity);
        buf.at_mut().len = len;
        buf
    }

    #[inline]
    const fn at(&self) -> &Descriptor {
        // SAFETY: the descriptor of our block is ours, was written when the block was carved, and
        // lives as long as our region, which lives as long as we do.
        unsafe { self.0.as_ref() }
    }

    #[inline]
    const fn at_mut(&mut self) -> &mut Descriptor {
        // SAFETY: as above; and there is no other reference to it, because we are borrowed mutably.
        unsafe { self.0.as_mut() }
    }

    /// Whether this msgbuf came from the pool with this home.
    #[inline]
    pub(crate) fn is_from(&self, home: &Arc<Home>) -> bool {
        // SAFETY: our region lives as long as we do.
        Arc::ptr_eq(&unsafe { self.at().region.get() }.home, home)
    }

    #[inline]
    pub(crate) fn class(&self) -> usize {
        self.at().class as usize
    }

    /// Returns the block of the msgbuf, which then does not go to its home.
    #[inline]
    pub(crate) fn into_block(mut self) -> Block {
        self.revoke();
        Block(ManuallyDrop::new(self).0)
    }

    /// Whether the block is lent according to its generation, which other readers see.
    fn is_lent_to_others(&self) -> bool {
        // SAFETY: our region lives as long as we do, and our block is a block of it.
        unsafe { self.at().region.get().is_lent(self.block_index()) }
    }

    #[inline]
    fn block_index(&self) -> u32 {
        self.at().block & BLOCK_MASK
    }

    #[inline]
    fn block_offset(&self) -> u32 {
        self.block_index() * BLOCK
    }

    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "regions are far below 4 GiB"
    )]
    fn data_offset(&self) -> u32 {
        // SAFETY: our region lives as long as we do.
        let base = unsafe { self.at().region.get() }.base;
        (self.at().data.addr().get() - base.addr().get()) as u32
    }

    #[inline]
    fn name(&self, offset: u32, len: u32) -> BufRef {
        let block = self.block_index();
        // SAFETY: our region lives as long as we do.
        let region = unsafe { self.at().region.get() };
        // SAFETY: our block is a block of our region.
        let generation = unsafe { region.lend(block) };
        self.at().lent.store(true, Ordering::Relaxed);
        BufRef {
            region: region.id,
            block,
            offset,
            len,
            generation,
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "layout constants below 2^16"
)]
const BLOCK: u32 = MIN_BLOCK as u32;
#[expect(
    clippy::cast_possible_truncation,
    reason = "layout constants below 2^16"
)]
const HEADER: u32 = dunlin_wire::HEADER_LEN as u32;

impl Drop for MsgBuf {
    /// Inlined, because the function that it calls gets the pointer itself. If another function got
    /// the address of a msgbuf, each msgbuf that a panic may drop would have to be in memory.
    #[inline(always)]
    fn drop(&mut self) {
        // A msgbuf has no other field to drop, so nothing is lost.
        give_back(Block(self.0));
    }
}

/// Gives the block of a msgbuf that is dropped back to its home.
#[inline(never)]
fn give_back(block: Block) {
    let block = MsgBuf(block.0).into_block();
    if block.class() == usize::from(USER_CLASS) {
        return drop(block.into_own_region());
    }
    // SAFETY: the block's region lives as long as the block does, which is until `take`. The clone
    // keeps the home alive when its last region goes.
    let home = unsafe { block.0.as_ref().region.get() }.home.clone();
    home.take(block);
}

impl std::fmt::Debug for MsgBuf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MsgBuf")
            .field("len", &self.len())
            .field("capacity", &self.capacity())
            .field("block", &self.at().block)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
