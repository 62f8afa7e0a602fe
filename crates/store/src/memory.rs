//! The memory region in which a table lives: it is mapped, touched, and accessed as words.
//!
//! Invariants: the length is a multiple of [`STEP`]; a new region is zeroed; the region belongs to
//! one table, so nothing else reads or writes it. All positions in it are byte offsets; an offset
//! beyond the end is a bug of this crate and panics.

use std::io;
use std::ops::{Deref, DerefMut};

/// The unit of a region's length: a page of the store mode.
pub(crate) const STEP: usize = 16 * 1024;

/// Bytes between two progress reports of [`Region::touch`].
const REPORT: usize = 64 << 20;

/// Bytes of a cache line.
pub(crate) const LINE: usize = 64;

/// Bytes of a huge page.
pub const HUGE_PAGE: usize = 1 << HUGE_PAGE_BITS;

const HUGE_PAGE_BITS: u8 = 21;

/// The smallest page of the processor.
const SMALL_PAGE: usize = 4096;

/// Miri has no huge pages, and its `mmap` is too slow for regions of this size.
#[cfg(miri)]
type Bytes = Vec<u8>;
#[cfg(not(miri))]
type Bytes = memmap2::MmapMut;

/// Memory for one table.
///
/// ```
/// let mut region = dunlin_store::Region::new(1 << 20)?;
/// region.touch(|done| {
///     println!("{done} bytes are ours");
///     true
/// });
/// assert_eq!(region.len(), 1 << 20);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Region {
    bytes: Bytes,
    pages: Pages,
}

/// The pages of a region.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pages {
    /// Huge pages that the administrator has reserved.
    Huge,
    /// Ordinary pages, which the kernel may merge into huge pages.
    Ordinary,
}

impl Region {
    /// Maps at least `len` bytes: on huge pages if `len` is a multiple of [`HUGE_PAGE`] and the
    /// administrator has reserved enough of them, and otherwise on ordinary pages.
    ///
    /// # Errors
    /// The errors of `mmap`; and one of kind `InvalidInput` if `len` is 0 or cannot be rounded up.
    pub fn new(len: usize) -> io::Result<Self> {
        let invalid = || io::Error::from(io::ErrorKind::InvalidInput);
        let len = len.checked_next_multiple_of(STEP).ok_or_else(invalid)?;
        if len == 0 {
            return Err(invalid());
        }
        let (bytes, pages) = map(len)?;
        Ok(Self { bytes, pages })
    }

    /// The kind of pages.
    #[must_use]
    pub const fn pages(&self) -> Pages {
        self.pages
    }

    /// The number of bytes.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "it never is")]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Writes to each page once, so that the table need not wait for the kernel later. Calls
    /// `progress` now and then, and at the end, with the number of bytes that are done, and stops
    /// early if it returns false. Returns whether all memory was touched.
    pub fn touch(&mut self, mut progress: impl FnMut(usize) -> bool) -> bool {
        let mut done = 0;
        for piece in self.bytes.chunks_mut(REPORT) {
            for page in piece.chunks_mut(SMALL_PAGE) {
                page[0] = 0;
            }
            done += piece.len();
            if !progress(done) {
                break;
            }
        }
        done == self.bytes.len()
    }

    /// The eight bytes at `at`.
    #[inline]
    pub(crate) fn word(&self, at: usize) -> u64 {
        let bytes = self.bytes[at..at + 8].as_chunks::<8>().0[0];
        u64::from_le_bytes(bytes)
    }

    #[inline]
    pub(crate) fn set_word(&mut self, at: usize, word: u64) {
        self.bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
    }

    /// The cache line at `at`, in words. It is returned by reference, because otherwise reading one
    /// word would copy the whole line.
    #[inline]
    pub(crate) fn line(&self, at: usize) -> &[[u8; 8]; 8] {
        let (words, _) = self.bytes[at..at + LINE].as_chunks();
        words.first_chunk().expect("a line has eight words")
    }

    /// Prefetches the cache line that contains `at`, if it is in the region.
    #[inline]
    pub(crate) fn prefetch(&self, at: usize) {
        if let Some(byte) = self.bytes.get(at) {
            gopt::prefetch_now(byte, gopt::T0);
        }
    }
}

impl Deref for Region {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl DerefMut for Region {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }
}

/// Maps huge pages that the administrator has reserved, or else ordinary ones, which the kernel may
/// merge into huge pages.
#[cfg(not(miri))]
fn map(len: usize) -> io::Result<(Bytes, Pages)> {
    use memmap2::MmapOptions;
    if len.is_multiple_of(HUGE_PAGE) {
        let huge = MmapOptions::new()
            .len(len)
            .huge(Some(HUGE_PAGE_BITS))
            .map_anon();
        if let Ok(bytes) = huge {
            return Ok((bytes, Pages::Huge));
        }
    }
    let bytes = MmapOptions::new().len(len).map_anon()?;
    #[cfg(target_os = "linux")]
    let _ = bytes.advise(memmap2::Advice::HugePage);
    Ok((bytes, Pages::Ordinary))
}

#[cfg(miri)]
fn map(len: usize) -> io::Result<(Bytes, Pages)> {
    Ok((vec![0; len], Pages::Ordinary))
}
