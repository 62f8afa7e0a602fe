//! The memory of the store mode: pages of 16 KiB from the start of the region upwards, each for
//! items of one size class, or for 16 KiB of one long value.
//!
//! Invariants: the pages of a class are full except for the last one, because the last item of the
//! class moves into the slot of a removed item. So a class has at most one page with free slots,
//! after any deletes and overwrites, and needs no list of free slots. Unused pages are in one list.
//! The topmost page is always in use: the index may take the memory above it.
//!
//! The first word of a page is a link: in a used page to the page before it in its class, in a free
//! page to the next free page. The second word of a free page links to the previous free page. A
//! link is the page's number plus one, or 0 for none. A bit in the first word marks a page as free.

mod pages;

use crate::index::Place;
use crate::memory::{Region, STEP};

use pages::Pages;

/// Bytes that a page of a long value holds.
pub(crate) const CHUNK: usize = STEP - LINK;

/// The largest slot: two to a page.
pub(crate) const MAX_SLOT: usize = CHUNK / 2 / 8 * 8;

/// Every multiple of eight up to this size is a class.
const FINE: usize = 256;

/// Above `FINE`, each class is larger than the previous one by at least one eighth.
const COARSE_RATIO: usize = 8;

/// The link at the start of a page.
const LINK: usize = 8;

#[derive(Debug)]
pub(crate) struct Classes {
    pages: Pages,
    classes: Vec<Class>,
}

/// The items of one size.
#[derive(Debug)]
struct Class {
    /// Bytes for each item.
    slot: usize,
    /// The page for the next item, if it has room.
    last: Option<u32>,
    /// Items in that page.
    used: usize,
}

/// An item that was moved into a freed slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Moved {
    pub(crate) from: Place,
    pub(crate) to: Place,
}

impl Classes {
    pub(crate) fn new() -> Self {
        let classes = slot_sizes().into_iter().map(|slot| Class {
            slot,
            last: None,
            used: 0,
        });
        Self {
            pages: Pages::new(),
            classes: classes.collect(),
        }
    }

    /// Bytes of the pages in use.
    pub(crate) fn bytes(&self) -> usize {
        self.pages.used() * STEP
    }

    /// The first byte above all pages in use.
    pub(crate) fn top(&self) -> usize {
        self.pages.top()
    }

    /// Whether items of these two sizes have slots of the same size.
    pub(crate) fn is_same(&self, one: usize, other: usize) -> bool {
        self.class(one) == self.class(other)
    }

    /// Takes a slot for an item of `size` bytes. `None`: all memory below `limit` is used up.
    pub(crate) fn take(&mut self, memory: &mut Region, size: usize, limit: usize) -> Option<Place> {
        let number = self.class(size);
        let class = &mut self.classes[number];
        let per_page = CHUNK / class.slot;
        let last = match class.last {
            Some(last) if class.used < per_page => last,
            before => {
                let fresh = self.pages.take(memory, limit)?;
                self.pages.link(memory, fresh, before);
                class.last = Some(fresh);
                class.used = 0;
                fresh
            }
        };
        class.used += 1;
        Some(slot_at(last, class.slot, class.used - 1))
    }

    /// Frees the slot of an item of `size` bytes, and moves the last item of its class into it.
    pub(crate) fn free(&mut self, memory: &mut Region, hole: Place, size: usize) -> Option<Moved> {
        let number = self.class(size);
        let class = &mut self.classes[number];
        let page = class.last.expect("a class with items has a page");
        let last = slot_at(page, class.slot, class.used - 1);
        let moved = (last != hole).then_some(Moved {
            from: last,
            to: hole,
        });
        if moved.is_some() {
            let from = last.byte();
            memory.copy_within(from..from + class.slot, hole.byte());
        }
        class.used -= 1;
        if class.used == 0 {
            class.last = self.pages.linked(memory, page);
            class.used = CHUNK / class.slot;
            self.pages.give(memory, page);
        }
        moved
    }

    /// Takes a page for a part of a value. `None`: all memory below `limit` is used up.
    pub(crate) fn take_page(&mut self, memory: &mut Region, limit: usize) -> Option<u32> {
        self.pages.take(memory, limit)
    }

    pub(crate) fn free_page(&mut self, memory: &mut Region, page: u32) {
        self.pages.give(memory, page);
    }

    /// The number of pages that dense classes need for items of these sizes.
    #[cfg(test)]
    pub(crate) fn pages_for(&self, sizes: impl Iterator<Item = usize>) -> usize {
        let mut counts = vec![0_usize; self.classes.len()];
        sizes.for_each(|size| counts[self.class(size)] += 1);
        let pages = counts.iter().zip(&self.classes);
        pages
            .map(|(count, class)| count.div_ceil(CHUNK / class.slot))
            .sum()
    }

    /// The number of the smallest class that holds `size` bytes.
    #[inline]
    fn class(&self, size: usize) -> usize {
        if size <= FINE {
            return size.div_ceil(8) - 1;
        }
        self.classes.partition_point(|class| class.slot < size)
    }
}

/// The sizes of all classes, in order.
fn slot_sizes() -> Vec<usize> {
    let mut sizes: Vec<usize> = (8..=FINE).step_by(8).collect();
    let mut coarse = vec![MAX_SLOT];
    for per_page in 3..CHUNK / FINE {
        let slot = CHUNK / per_page / 8 * 8;
        let above = *coarse.last().expect("it begins with the largest");
        if slot + slot / COARSE_RATIO <= above && slot > FINE {
            coarse.push(slot);
        }
    }
    coarse.reverse();
    sizes.extend(coarse);
    sizes
}

/// The place of a slot. Slots fill a page from its end, so slots of one or two cache lines begin at
/// the start of a line.
#[inline]
fn slot_at(page: u32, slot: usize, number: usize) -> Place {
    let from_end = CHUNK / slot - number;
    Place::at((page as usize + 1) * STEP - from_end * slot)
}

#[cfg(test)]
mod tests;
