//! Pointer chasing (G-Opt §2.5 and §3.3): a chain of dependent reads at random places, as in lists,
//! trees, tries and state machines, with hardly any work between the reads.
//!
//! Invariant of a [`Chain`]: it is one cycle through all its cells, so a walk neither ends nor
//! stays in a part that fits into a cache.

use std::io;

use gopt::MAX_WIDTH;
use zerocopy::FromZeros;

use crate::forms::Lookup;
use crate::huge::Huge;
use crate::random::Random;
use crate::touched::Touched;
use crate::work::Work;

/// Reads of one look-up in the paper's experiment.
pub const DEPTH: u32 = 100;

/// For each cell, the number of the next one. The key of a look-up is a cell, and the value is the
/// cell `depth` steps later.
#[derive(Debug)]
pub struct Chain {
    pub(crate) next: Huge<Cell>,
    pub(crate) depth: u32,
}

/// The number of a cell of the current chain. Only this file makes such numbers, so a step needs no
/// bounds check, which would double its instructions.
#[derive(Clone, Copy, Debug, FromZeros)]
#[repr(transparent)]
pub(crate) struct Cell(u32);

impl Chain {
    /// Makes a random cycle through `len` cells, in which a look-up goes `depth` steps.
    ///
    /// # Errors
    /// `InvalidInput` if a cell's number would not fit into 32 bits, otherwise the error of `mmap`.
    pub fn new(len: usize, depth: u32, random: &mut Random) -> io::Result<Self> {
        let cells = u32::try_from(len).map_err(|_| io::ErrorKind::InvalidInput)?;
        let mut next = Huge::zeroed(len)?;
        for (cell, next) in (0..cells).zip(next.iter_mut()) {
            *next = Cell(cell);
        }
        // Sattolo's algorithm never swaps a cell with itself, so it makes a single cycle.
        for cell in (1..len).rev() {
            next.swap(cell, random.index(cell));
        }
        Ok(Self { next, depth })
    }

    /// The number of cells; keys are smaller.
    #[must_use]
    pub fn len(&self) -> usize {
        self.next.len()
    }

    /// True if there are no cells.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.next.is_empty()
    }

    /// The cell where a look-up begins.
    #[inline(always)]
    fn cell(&self, key: u32) -> Cell {
        assert!((key as usize) < self.next.len(), "there is no cell {key}");
        Cell(key)
    }

    /// The place of the next cell's number.
    #[inline(always)]
    fn next(&self, Cell(at): Cell) -> &Cell {
        // SAFETY: keys were checked, and the constructor wrote numbers of cells only.
        unsafe { self.next.get_unchecked(at as usize) }
    }
}

impl Lookup for Chain {
    type Key = u32;
    type Value = u32;

    #[inline(always)]
    fn find(&self, key: u32) -> u32 {
        let mut at = self.cell(key);
        for _ in 0..self.depth {
            at = *self.next(at);
        }
        at.0
    }

    #[expect(
        clippy::manual_async_fn,
        reason = "an async fn would copy its arguments"
    )]
    fn find_marked<W: Work<u32, u32>>(
        &self,
        work: &W,
        item: &W::Item,
    ) -> impl Future<Output = W::Out> {
        async move {
            let mut at = self.cell(work.key(item));
            for _ in 0..self.depth {
                at = *gopt::load(self.next(at)).await;
            }
            work.out(item, at.0)
        }
    }

    #[inline(always)]
    fn find_group<W: Work<u32, u32>>(&self, work: &W, items: &[W::Item], out: &mut [W::Out]) {
        let mut at = [Cell(0); MAX_WIDTH];
        let at = &mut at[..items.len()];
        for (at, item) in at.iter_mut().zip(items) {
            *at = self.cell(work.key(item));
        }
        for _ in 0..self.depth {
            for at in &*at {
                gopt::prefetch_now(self.next(*at), gopt::T0);
            }
            for at in &mut *at {
                *at = *self.next(*at);
            }
        }
        for ((at, item), out) in at.iter().zip(items).zip(out) {
            *out = work.out(item, at.0);
        }
    }

    fn touch(&self, key: u32, touched: &mut Touched) {
        let mut at = self.cell(key);
        for _ in 0..self.depth {
            touched.read(&self.next, at.0 as usize);
            at = *self.next(at);
        }
    }
}
