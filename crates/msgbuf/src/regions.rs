//! Looks up regions of this process, and the bytes that a name stands for.
//!
//! Transports find the bytes of a [`BufRef`] with [`resolve`]; the simulator copies them in safe
//! code, with [`read`]; a transport that registers memory with a device, or maps it into another
//! process, describes the memory with [`info`].
//!
//! Invariant: [`read`] and [`info`] hold the lock of the region's row in the `table` while they use
//! the region, so they may be called at any time.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::ptr::NonNull;

use crate::extent::Extent;
use crate::name::{BufRef, RegionId};
use crate::region::{REGIONS, Region};
pub use crate::sys::Backing;

/// Why [`read`] copied nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stale {
    /// The msgbuf was revoked, written to, recycled or dropped since it was lent. Do none of these
    /// before the transport is done with it.
    Revoked,
    /// Only the owner can read the region safely. Make its pool with
    /// [`PoolConfig::readable`](crate::PoolConfig::readable).
    NotReadable,
}

impl std::fmt::Display for Stale {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Revoked => {
                "the msgbuf has been revoked since it was lent; keep it until the transport is done"
            }
            Self::NotReadable => {
                "the region is not readable; make the pool with PoolConfig { readable: true, .. }"
            }
        })
    }
}

impl std::error::Error for Stale {}

/// The description of a region that [`info`] returns.
#[derive(Debug)]
pub struct RegionInfo {
    /// Length in bytes; every offset of a [`BufRef`] is below it.
    pub len: usize,
    /// NUMA node of the thread that made the region; `None` if unknown.
    pub numa_node: Option<u32>,
    /// The kind of the region's memory.
    pub backing: Backing,
    /// A descriptor of the memory that another process can map for reading, from offset 0; `None`
    /// for private and user memory, or if the process has no descriptor left.
    pub fd: Option<OwnedFd>,
    /// The sizes that a process must know to map it as a [`PeerRegion`](crate::PeerRegion); `None`
    /// for user memory.
    pub extent: Option<Extent>,
}

/// Finds the bytes that `buf` names, for the transport that sends them.
///
/// `None` if the msgbuf is not lent any more, or never was: the caller drops the packet and counts
/// it. [`BufRef::EMPTY`] gives `None` as well, so a caller checks [`BufRef::is_empty`] first.
/// `buf.len()` bytes may be read through the pointer until the msgbuf is revoked.
///
/// # Safety
/// No other thread may free the region of `buf` during the call. The region exists as long as the
/// msgbuf of `buf`, and, except for user memory, as long as its pool. Therefore, a transport may
/// resolve every reference that its own endpoint has lent to it, even one that has been revoked.
///
/// ```
/// # let mut pool = dunlin_msgbuf::Pool::new(dunlin_msgbuf::PoolConfig::default()).unwrap();
/// use dunlin_msgbuf::regions;
/// let mut buf = pool.alloc(5).unwrap();
/// buf.fill(b"hello").unwrap();
/// let lent = buf.lend();
/// // SAFETY: this thread owns the msgbuf.
/// let found = unsafe { regions::resolve(lent) };
/// assert_eq!(found.unwrap().as_ptr().cast_const(), buf.data().as_ptr());
/// buf.revoke();
/// // SAFETY: this thread owns the msgbuf.
/// assert!(unsafe { regions::resolve(lent) }.is_none());
/// ```
#[inline]
pub unsafe fn resolve(buf: BufRef) -> Option<NonNull<u8>> {
    let region = REGIONS.find(buf.region)?;
    // SAFETY: the entry points to the live region of that id, and the caller promises that it stays
    // alive.
    let region = unsafe { region.as_ref() };
    names_lent_bytes(region, buf).then(|| {
        // SAFETY: the offset is within the region, as was just checked.
        unsafe { region.base.add(buf.offset as usize) }
    })
}

/// Appends the bytes that `buf` names to `out`: [`resolve`] for safe code, at the price of a lock.
///
/// Any thread may call this at any time. A revoked msgbuf causes an error, not undefined
/// behaviour. The pool must have been made [`readable`](crate::PoolConfig::readable), so that
/// revoking waits for readers.
///
/// # Errors
/// See [`Stale`]. `out` is then unchanged.
///
/// ```
/// use dunlin_msgbuf::{Pool, PoolConfig, regions, regions::Stale};
/// let mut pool = Pool::new(PoolConfig { readable: true, ..PoolConfig::default() }).unwrap();
/// let mut buf = pool.alloc(5).unwrap();
/// buf.fill(b"hello").unwrap();
/// let lent = buf.lend();
/// let mut out = Vec::new();
/// assert_eq!(regions::read(lent, &mut out), Ok(()));
/// assert_eq!(out, b"hello");
/// drop(buf);
/// assert_eq!(regions::read(lent, &mut out), Err(Stale::Revoked));
/// ```
pub fn read(buf: BufRef, out: &mut Vec<u8>) -> Result<(), Stale> {
    if buf.is_empty() {
        return Ok(());
    }
    // This comes before the lock is taken, because the allocator may run any code.
    out.reserve(buf.len());
    let _region_lives = REGIONS.lock(buf.region);
    let region = REGIONS.find(buf.region).ok_or(Stale::Revoked)?;
    // SAFETY: the entry points to the live region of that id, which cannot leave the table while
    // we hold its lock, and is not freed before it has left.
    let region = unsafe { region.as_ref() };
    if !names_lent_bytes(region, buf) {
        return Err(Stale::Revoked);
    }
    if !region.readable {
        return Err(Stale::NotReadable);
    }
    // SAFETY: the bytes lie within the region and are initialised. They belong to a lent block, and
    // the owner writes to a lent block only after `Region::revoke`, which takes the lock we hold.
    let bytes = unsafe {
        std::slice::from_raw_parts(region.base.as_ptr().add(buf.offset as usize), buf.len())
    };
    out.extend_from_slice(bytes);
    Ok(())
}

/// Describes a region; `None` if no region has that id.
///
/// ```
/// # let mut pool = dunlin_msgbuf::Pool::new(dunlin_msgbuf::PoolConfig::default()).unwrap();
/// let lent = pool.alloc(32).unwrap().lend();
/// let info = dunlin_msgbuf::regions::info(lent.region()).unwrap();
/// assert!(lent.offset() as usize + lent.len() <= info.len);
/// ```
pub fn info(id: RegionId) -> Option<RegionInfo> {
    let _region_lives = REGIONS.lock(id);
    let region = REGIONS.find(id)?;
    // SAFETY: as in `read`.
    let region = unsafe { region.as_ref() };
    Some(RegionInfo {
        len: region.len,
        numa_node: region.numa_node,
        backing: region.backing(),
        fd: region
            .fd()
            .as_ref()
            .and_then(|fd| BorrowedFd::try_clone_to_owned(fd).ok()),
        extent: region.extent(),
    })
}

/// True while a region has that id.
pub fn is_alive(id: RegionId) -> bool {
    REGIONS.find(id).is_some()
}

#[inline]
fn names_lent_bytes(region: &Region, buf: BufRef) -> bool {
    region.generation(buf.block) == Some(buf.generation)
        && buf.offset as usize + buf.len as usize <= region.len
}

#[cfg(test)]
mod tests;
