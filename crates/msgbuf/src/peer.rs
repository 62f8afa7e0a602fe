//! Regions of other processes, mapped for reading, for data sent by reference (design §12).
//!
//! A sender names bytes of its region ([`BufRef`]); the receiver, which has mapped the region,
//! finds them ([`PeerRegion::find`]) and copies them out. The sender may withdraw the bytes at any
//! time. Therefore, after the copy, the receiver reads the block's generation, which lies in the
//! same memory. As in a sequence lock, the copy counts only if the generation is still the one that
//! the sender named.
//!
//! Invariants: a mapping cannot lose pages while it exists (its size is sealed, and no process can
//! punch holes into hugepages); nothing here writes to it; no reference to its bytes exists,
//! because the other process may change them; a sender's name is checked against the mapping before
//! the bytes are read.

use std::marker::PhantomData;
use std::os::fd::OwnedFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering, compiler_fence, fence};

use crate::errors::MapError;
use crate::extent::Extent;
use crate::name::BufRef;
use crate::sys::{self, PeerMapping};

/// A region of another process.
#[derive(Debug)]
pub struct PeerRegion {
    mapping: PeerMapping,
    extent: Extent,
}

/// Bytes in the memory of another process, which may withdraw them.
#[derive(Clone, Copy, Debug)]
pub struct PeerBytes<'a> {
    bytes: NonNull<u8>,
    len: u32,
    /// The generation of the block while it holds the named bytes.
    lent: u32,
    generation: NonNull<AtomicU32>,
    _region: PhantomData<&'a PeerRegion>,
}

impl PeerRegion {
    /// Maps the memory of `fd` for reading.
    ///
    /// # Errors
    /// See [`MapError`].
    pub fn map(fd: &OwnedFd, extent: Extent) -> Result<Self, MapError> {
        if !extent.is_sound() {
            return Err(MapError::Extent);
        }
        let mapping = sys::map_peer(fd, extent.mapped)?;
        Ok(Self { mapping, extent })
    }

    /// The bytes that `name` names, if they lie in this region. The caller must make sure that the
    /// name belongs to this region.
    #[inline]
    pub fn find(&self, name: BufRef) -> Option<PeerBytes<'_>> {
        let (offset, block) = (name.offset as usize, name.block as usize);
        let end = offset + name.len as usize;
        if end > self.extent.bytes || block >= self.extent.generations {
            return None;
        }
        let base = self.mapping.base();
        // SAFETY: both places lie inside the mapping, as the extent is sound and was just checked;
        // the generations are aligned, because the mapping begins at a page.
        let (bytes, generation) = unsafe {
            let generations = base.add(self.extent.bytes).cast();
            (base.add(offset), generations.add(block))
        };
        Some(PeerBytes {
            bytes,
            len: name.len,
            lent: name.generation,
            generation,
            _region: PhantomData,
        })
    }
}

impl<'a> PeerBytes<'a> {
    /// Bytes of this process that are valid as long as `generation` is `lent`, for tests and
    /// simulators.
    ///
    /// # Panics
    /// If `bytes` has 4 GiB or more.
    pub fn of(bytes: &'a [u8], generation: &'a AtomicU32, lent: u32) -> Self {
        Self {
            bytes: NonNull::from(bytes).cast(),
            len: u32::try_from(bytes.len()).expect("a packet is short"),
            lent,
            generation: NonNull::from(generation),
            _region: PhantomData,
        }
    }

    /// Number of bytes.
    #[inline]
    pub const fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether there are no bytes.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Copies all the bytes to the front of `to`. False if `to` is too short, or if the sender
    /// withdrew them during the copy; then the content of `to` is undefined.
    #[inline]
    #[must_use = "if the bytes were withdrawn, the copy is garbage"]
    pub fn copy_to(&self, to: &mut [u8]) -> bool {
        let Some(to) = to.get_mut(..self.len()) else {
            return false;
        };
        // SAFETY: `find` has checked that the bytes lie inside a mapping that lives as long as we
        // do. The other process may write to them now; then the copy does not count, and no code
        // reads it before that is known.
        unsafe {
            to.as_mut_ptr()
                .copy_from_nonoverlapping(self.bytes.as_ptr(), self.len());
        }
        compiler_fence(Ordering::SeqCst);
        // The bytes must be read before the generation; see `Region::revoke`.
        fence(Ordering::Acquire);
        // SAFETY: as above; an atomic may be read while another process writes it.
        unsafe { self.generation.as_ref() }.load(Ordering::Relaxed) == self.lent
    }
}

#[cfg(test)]
mod tests;
