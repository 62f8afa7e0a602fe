//! A cache of free regions that hold a single large block each. It keeps them for later messages of
//! their class, up to a bound in bytes; the pool, which owns the cache, frees the rest.
//!
//! A region larger than the bound is a giant. The cache keeps the last one, because the kernel
//! clears each page of a new region at its first touch, and that takes several times as long as
//! filling the page.

use crate::layout::{LARGE_CLASSES, SMALL_CLASSES};
use crate::region::RegionBox;

/// Bound of the bytes in the cache, without the giant. A stream of messages of 16 MiB reuses its
/// buffers, and the buffers of a burst of large messages do not stay mapped for ever.
pub(crate) const MAX_CACHED: usize = 128 << 20;

/// Free large regions by class, last in first out.
#[derive(Debug, Default)]
pub(crate) struct LargeCache {
    free: [Vec<RegionBox>; LARGE_CLASSES],
    bytes: usize,
    /// The giant, with its class.
    giant: Option<(usize, RegionBox)>,
}

impl LargeCache {
    /// Removes and returns a region of `class`.
    pub(crate) fn pop(&mut self, class: usize) -> Option<RegionBox> {
        if let Some((_, giant)) = self.giant.take_if(|(of, _)| *of == class) {
            return Some(giant);
        }
        let region = self.free[class - SMALL_CLASSES].pop()?;
        self.bytes -= region.get().len;
        Some(region)
    }

    /// Adds a region of `class`. Returns a region that the bound does not allow, if there is one.
    #[must_use = "the caller must account for a region that is not kept"]
    pub(crate) fn push(&mut self, class: usize, region: RegionBox) -> Option<RegionBox> {
        if region.get().len > MAX_CACHED {
            let before = self.giant.replace((class, region));
            return before.map(|(_, giant)| giant);
        }
        let bytes = self.bytes + region.get().len;
        if bytes > MAX_CACHED {
            return Some(region);
        }
        self.bytes = bytes;
        self.free[class - SMALL_CLASSES].push(region);
        None
    }

    /// Removes and returns the largest region.
    pub(crate) fn evict(&mut self) -> Option<RegionBox> {
        if let Some((_, giant)) = self.giant.take() {
            return Some(giant);
        }
        let class = self.free.iter().rposition(|list| !list.is_empty())?;
        self.pop(class + SMALL_CLASSES)
    }
}
