//! The slots of a mailbox, and the list of free ones. Slots lie in blocks that are made when they
//! are first needed and never move, so a slot's number is enough to reach it.
//!
//! Invariant: the upper half of `free` changes with every change of the list of free slots, so a
//! thread that was stopped between reading the first free slot and taking it cannot take a slot
//! that was taken and given back meanwhile.

use std::sync::OnceLock;

use super::task_waker::Wakeup;
use crate::sync::{AtomicU32, AtomicU64, Mutex, Ordering};

/// No slot: the end of a list.
pub(super) const NONE: u32 = u32::MAX;

/// The first block has this many slots, and each further one twice as many as the one before.
const FIRST: u32 = 64;

const BLOCKS: usize = 16;

/// The number of a slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slot(pub(super) u32);

impl Slot {
    /// The slot for which [`Self::to_bits`] returned this number.
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    /// The slot as a number.
    pub const fn to_bits(self) -> u32 {
        self.0
    }

    /// A small number, for the owner's tables.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

#[derive(Debug, Default)]
pub(super) struct SlotCell<L> {
    pub(super) state: AtomicU32,
    /// The slot after this one in the list that it is in.
    pub(super) next: AtomicU32,
    pub(super) wakeup: Wakeup,
    pub(super) content: Mutex<L>,
}

#[derive(Debug)]
pub(super) struct Slots<L> {
    blocks: [OnceLock<Box<[SlotCell<L>]>>; BLOCKS],
    /// A count of changes, and the first free slot.
    free: AtomicU64,
    /// Slots that have ever been used.
    used: AtomicU32,
    limit: u32,
}

impl<L: Default> Slots<L> {
    pub(super) fn new(limit: u32) -> Self {
        let blocks: [_; BLOCKS] = [const { OnceLock::new() }; BLOCKS];
        // Loom does not see that a `OnceLock` publishes what it holds.
        #[cfg(loom)]
        blocks[0].get_or_init(|| (0..limit).map(|_| SlotCell::default()).collect());
        Self {
            blocks,
            free: AtomicU64::new(u64::from(NONE)),
            used: AtomicU32::new(0),
            limit: limit.min(FIRST << (BLOCKS - 1)),
        }
    }

    pub(super) fn cell(&self, slot: Slot) -> &SlotCell<L> {
        let (block, place) = place_of(slot);
        let block = self.blocks[block].get().expect("slots are made once");
        &block[place]
    }

    /// All slots that there are, used or not.
    pub(super) fn all(&self) -> impl Iterator<Item = (Slot, &SlotCell<L>)> {
        let blocks = (0..).zip(&self.blocks);
        let made = blocks.filter_map(|(block, cells)| Some((block, cells.get()?)));
        made.flat_map(|(block, cells)| (first_in(block)..).map(Slot).zip(cells))
    }

    /// Takes a slot that no call uses.
    pub(super) fn take(&self) -> Option<Slot> {
        let mut free = self.free.load(Ordering::Acquire);
        loop {
            let first = first_of(free);
            if first == NONE {
                return self.grow();
            }
            let next = self.cell(Slot(first)).next.load(Ordering::Relaxed);
            match self.change_free(free, next) {
                Ok(()) => return Some(Slot(first)),
                Err(now) => free = now,
            }
        }
    }

    pub(super) fn give_back(&self, slot: Slot) {
        let mut free = self.free.load(Ordering::Relaxed);
        loop {
            let next = &self.cell(slot).next;
            next.store(first_of(free), Ordering::Relaxed);
            match self.change_free(free, slot.0) {
                Ok(()) => return,
                Err(now) => free = now,
            }
        }
    }

    fn change_free(&self, from: u64, first: u32) -> Result<(), u64> {
        let count = (from >> 32).wrapping_add(1);
        let to = count << 32 | u64::from(first);
        self.free
            .compare_exchange_weak(from, to, Ordering::AcqRel, Ordering::Acquire)
            .map(drop)
    }

    #[cold]
    fn grow(&self) -> Option<Slot> {
        let more = |used| (used < self.limit).then_some(used + 1);
        let used = self
            .used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        let slot = Slot(used.ok()?);
        let (block, _) = place_of(slot);
        self.blocks[block].get_or_init(|| {
            let count = FIRST.min(self.limit) << block;
            (0..count).map(|_| SlotCell::default()).collect()
        });
        Some(slot)
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the lower half")]
const fn first_of(free: u64) -> u32 {
    free as u32
}

/// The block of a slot, and its place there.
const fn place_of(slot: Slot) -> (usize, usize) {
    let block = (slot.0 / FIRST + 1).ilog2();
    (block as usize, (slot.0 - first_in(block)) as usize)
}

/// The number of the first slot of a block.
const fn first_in(block: u32) -> u32 {
    FIRST * ((1 << block) - 1)
}
