//! Memory that is reached only through its pointer.
//!
//! The kernel gets raw pointers to receive buffers and staged packets, and they outlive any borrow,
//! so their memory must not be a `Box`, whose every use would invalidate them. Invariant: a block
//! is zeroed or written, starts on a cache line, and is freed with its owner. Called by `buffers`
//! and `messages`.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;

/// `count` elements of a type for which zero bytes are a value, and that needs no drop.
pub(super) struct Block<T> {
    base: NonNull<T>,
    count: usize,
}

impl<T: Copy> Block<T> {
    /// Zeroed elements. The pages of a large block come from the kernel when they are first
    /// touched.
    ///
    /// # Safety
    /// Zero bytes are a valid `T`.
    pub(super) unsafe fn zeroed(count: usize) -> Self {
        let layout = layout::<T>(count);
        assert!(layout.size() > 0, "a block has at least one element");
        // SAFETY: the size is not 0.
        let base = unsafe { alloc_zeroed(layout) };
        let Some(base) = NonNull::new(base.cast()) else {
            handle_alloc_error(layout)
        };
        Self { base, count }
    }

    /// Elements of the block.
    #[inline]
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Element `index`, or the end of the block.
    #[inline]
    pub(super) fn at(&self, index: usize) -> NonNull<T> {
        assert!(
            index <= self.count,
            "places in a block are below its length"
        );
        // SAFETY: within the allocation or one past its end.
        unsafe { self.base.add(index) }
    }
}

impl<T> Drop for Block<T> {
    fn drop(&mut self) {
        // SAFETY: allocated by `zeroed` with this layout, and freed only here.
        unsafe { dealloc(self.base.as_ptr().cast(), layout::<T>(self.count)) };
    }
}

impl<T> std::fmt::Debug for Block<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Block")
            .field("count", &self.count)
            .finish_non_exhaustive()
    }
}

fn layout<T>(count: usize) -> Layout {
    let array = Layout::array::<T>(count).expect("buffers fit the address space");
    array.align_to(64).expect("64 is a power of two")
}
