//! Memory that is reached only through its pointer.
//!
//! The kernel gets raw pointers to receive buffers and staged packets. These pointers outlive any
//! borrow. So the memory must not be a `Box`: each use of a `Box` would invalidate the pointers.
//! Invariant: a block is zeroed or written, starts on a cache line, and is freed with its owner.
//! Called by `buffers` and `messages`.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;

/// Where a block starts: on a cache line.
const ALIGN: usize = 64;

/// The alignment that the allocator is asked for. With a larger alignment, `alloc_zeroed` writes
/// the zeros itself, and so touches all pages. With 16, it does not touch the pages of a large
/// block, because the kernel delivers them zeroed.
const ASKED: usize = 16;

/// `count` elements of a type for which zero bytes are a valid value, and that needs no drop.
pub(super) struct Block<T> {
    /// The allocation, which begins less than a cache line before the first element.
    memory: NonNull<u8>,
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
        const { assert!(align_of::<T>() <= ALIGN) };
        let layout = layout::<T>(count);
        assert!(count > 0, "a block has at least one element");
        // SAFETY: the size is not 0.
        let Some(memory) = NonNull::new(unsafe { alloc_zeroed(layout) }) else {
            handle_alloc_error(layout)
        };
        let before = memory.addr().get().next_multiple_of(ALIGN) - memory.addr().get();
        // SAFETY: `before` is less than `ALIGN`, which the layout has in addition to the elements.
        let base = unsafe { memory.add(before) }.cast();
        Self {
            memory,
            base,
            count,
        }
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
        unsafe { dealloc(self.memory.as_ptr(), layout::<T>(self.count)) };
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
    let size = array.size() + ALIGN;
    Layout::from_size_align(size, ASKED).expect("buffers fit the address space")
}

#[cfg(test)]
mod tests;
