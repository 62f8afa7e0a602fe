//! Pointer chasing (G-Opt §2.5 and §3.3): a chain of dependent reads at random places, the shape
//! of lists, trees, tries and state machines, with next to no work between the reads.
//!
//! Invariant of a [`Chain`]: it is one cycle through all its cells, so a walk neither ends nor
//! stays in a part that fits into a cache.

use std::io;

use gopt::MAX_WIDTH;

use crate::forms::Lookup;
use crate::huge::Huge;
use crate::random::Random;
use crate::touched::Touched;
use crate::work::Work;

/// Reads of one look-up in the paper's experiment.
pub const DEPTH: u32 = 100;

/// For each cell, the number of the next one. The key of a look-up is a cell, the value the cell
/// `depth` steps on.
#[derive(Debug)]
pub struct Chain {
    pub(crate) next: Huge<u32>,
    pub(crate) depth: u32,
}

impl Chain {
    /// A random cycle through `len` cells, in which a look-up goes `depth` steps.
    ///
    /// # Errors
    /// `InvalidInput` if a cell's number would not fit into 32 bits, else what `mmap` says.
    pub fn new(len: usize, depth: u32, random: &mut Random) -> io::Result<Self> {
        let cells = u32::try_from(len).map_err(|_| io::ErrorKind::InvalidInput)?;
        let mut next = Huge::zeroed(len)?;
        for (cell, next) in (0..cells).zip(next.iter_mut()) {
            *next = cell;
        }
        // Sattolo's algorithm: a cell is never swapped with itself, hence a single cycle.
        for cell in (1..len).rev() {
            next.swap(cell, random.index(cell));
        }
        Ok(Self { next, depth })
    }

    /// How many cells there are; keys are below.
    #[must_use]
    pub fn len(&self) -> usize {
        self.next.len()
    }

    /// True if there are no cells.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.next.is_empty()
    }
}

impl Lookup for Chain {
    type Key = u32;
    type Value = u32;

    #[inline(always)]
    fn find(&self, mut at: u32) -> u32 {
        for _ in 0..self.depth {
            at = self.next[at as usize];
        }
        at
    }

    async fn find_marked<W: Work<u32, u32>>(&self, work: &W, item: &W::Item) -> W::Out {
        let next = &*self.next;
        let mut at = work.key(item);
        for _ in 0..self.depth {
            at = *gopt::load(&next[at as usize]).await;
        }
        work.out(item, at)
    }

    #[inline(always)]
    fn find_group<W: Work<u32, u32>>(&self, work: &W, items: &[W::Item], out: &mut [W::Out]) {
        let mut at = [0_u32; MAX_WIDTH];
        let at = &mut at[..items.len()];
        for (at, item) in at.iter_mut().zip(items) {
            *at = work.key(item);
        }
        for _ in 0..self.depth {
            for at in &*at {
                gopt::prefetch_now(&raw const self.next[*at as usize], gopt::T0);
            }
            for at in &mut *at {
                *at = self.next[*at as usize];
            }
        }
        for ((at, item), out) in at.iter().zip(items).zip(out) {
            *out = work.out(item, *at);
        }
    }

    fn touch(&self, mut at: u32, touched: &mut Touched) {
        for _ in 0..self.depth {
            touched.read(&self.next, at as usize);
            at = self.next[at as usize];
        }
    }
}
