//! Regions of other processes, mapped for reading: data that goes by reference (design §12).
//!
//! A sender names bytes of its region ([`BufRef::to_bytes`]); the receiver, which has mapped the
//! region, finds them ([`PeerRegion::find`]) and copies them out. The sender may take the bytes
//! back at any time. So the block's generation, which stands in the same memory, is looked at after
//! the copy: as in a sequence lock, what was copied counts only if it is still the one that was
//! named.
//!
//! Invariants: a mapping cannot lose pages while it lives (its size is sealed, hugepages cannot be
//! taken out of it); nothing here writes to it; no reference to its bytes exists, because the other
//! process may change them; what a sender names is checked against the mapping before it is
//! touched.

use std::marker::PhantomData;
use std::os::fd::OwnedFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering, compiler_fence, fence};

use crate::buf::BufRef;
use crate::region::GENERATION;
use crate::sys::{self, PeerMapping};

/// Bytes of a [`BufRef`] as one process tells it to another.
pub const REF_LEN: usize = 20;

/// The places of things in the memory of a region.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Extent {
    /// Bytes of the memory.
    pub mapped: usize,
    /// Bytes from its start that blocks lie in. The generations stand behind them.
    pub bytes: usize,
    /// How many generations there are.
    pub generations: usize,
}

/// Why a region of another process was not mapped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MapError {
    /// The sizes contradict each other.
    Extent,
    /// The descriptor is not memory of that size, or a process could make it shorter.
    Descriptor,
    /// The system refuses, for lack of addresses or hugepages.
    System,
}

/// A region of another process.
#[derive(Debug)]
pub struct PeerRegion {
    mapping: PeerMapping,
    extent: Extent,
}

/// Bytes that lie in another process, which may take them back: good for copying, once.
#[derive(Clone, Copy, Debug)]
pub struct PeerBytes<'a> {
    bytes: NonNull<u8>,
    len: u32,
    /// The generation of the block while it holds the bytes that were named.
    lent: u32,
    generation: NonNull<AtomicU32>,
    _region: PhantomData<&'a PeerRegion>,
}

impl Extent {
    /// True if blocks and generations fit into the memory as they should.
    fn is_sound(self) -> bool {
        let generations = self.generations.checked_mul(GENERATION);
        let end = generations.and_then(|len| len.checked_add(self.bytes));
        self.bytes.is_multiple_of(GENERATION) && end.is_some_and(|end| end <= self.mapped)
    }
}

impl BufRef {
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

    /// The opposite. It may name anything: only [`PeerRegion::find`] takes it.
    #[inline]
    pub fn from_bytes(bytes: [u8; REF_LEN]) -> Self {
        let mut words = [0; REF_LEN / 4];
        for (word, place) in words.iter_mut().zip(bytes.as_chunks().0) {
            *word = u32::from_le_bytes(*place);
        }
        let [region, block, generation, offset, len] = words;
        Self {
            region: crate::RegionId(region),
            block,
            offset,
            len,
            generation,
        }
    }
}

impl PeerRegion {
    /// Maps the memory behind `fd` for reading.
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

    /// The bytes that `name` names, if they lie in this region. That its region is this one is for
    /// the caller to know.
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
    /// Bytes of this process that are good as long as `generation` is `lent`, for tests and
    /// simulators.
    ///
    /// # Panics
    /// If there are 4 GiB or more.
    pub fn of(bytes: &'a [u8], generation: &'a AtomicU32, lent: u32) -> Self {
        Self {
            bytes: NonNull::from(bytes).cast(),
            len: u32::try_from(bytes.len()).expect("a packet is short"),
            lent,
            generation: NonNull::from(generation),
            _region: PhantomData,
        }
    }

    /// How many there are.
    #[inline]
    pub const fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether there are none.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Copies all of them to the front of `to`. False if there is no room for them, or if they were
    /// taken back in the meantime; then `to` holds anything.
    #[inline]
    #[must_use = "if the bytes were taken back, what was copied is garbage"]
    pub fn copy_to(&self, to: &mut [u8]) -> bool {
        let Some(to) = to.get_mut(..self.len()) else {
            return false;
        };
        // SAFETY: they were found to lie inside a mapping that lives as long as we do. The other
        // process may write to them now; then what is copied does not count. No code looks at
        // the copy before that is known.
        unsafe {
            to.as_mut_ptr()
                .copy_from_nonoverlapping(self.bytes.as_ptr(), self.len());
        }
        compiler_fence(Ordering::SeqCst);
        // The bytes were read before the generation is: see `Region::revoke`.
        fence(Ordering::Acquire);
        // SAFETY: as above; an atomic may be read while another process writes it.
        unsafe { self.generation.as_ref() }.load(Ordering::Relaxed) == self.lent
    }
}

impl std::fmt::Display for MapError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Extent => "the sizes of a region contradict each other",
            Self::Descriptor => "a descriptor is not sealed memory of the size that was told",
            Self::System => "the system refuses to map a region of a peer",
        })
    }
}

impl std::error::Error for MapError {}

#[cfg(test)]
mod tests;
