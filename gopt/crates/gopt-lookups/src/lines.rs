//! Random cache lines and nothing else. This is the highest rate of a machine's memory, with which
//! every other look-up is compared. The key is the number of a line, so no hash is needed.
//!
//! The form `hand` prefetches a group of lines and then reads them, as the `hand` forms of other
//! tables do between two stages.

use std::io;

use zerocopy::FromZeros;

use crate::forms::Lookup;
use crate::huge::Huge;
use crate::touched::Touched;
use crate::work::Work;

#[derive(Clone, Copy, Debug, FromZeros)]
#[repr(C, align(64))]
struct Line {
    words: [u64; 8],
}

/// Lines, each with its number in its first word.
#[derive(Debug)]
pub struct Lines {
    lines: Huge<Line>,
}

impl Lines {
    /// Makes `len` lines.
    ///
    /// # Errors
    /// `InvalidInput` if a line's number would not fit into 32 bits, otherwise the error of `mmap`.
    pub fn new(len: usize) -> io::Result<Self> {
        let count = u32::try_from(len).map_err(|_| io::ErrorKind::InvalidInput)?;
        let mut lines: Huge<Line> = Huge::zeroed(len)?;
        // All pages that were never written share one page of zeroes, which would stay in the
        // cache.
        for (number, line) in (0..count).zip(lines.iter_mut()) {
            line.words[0] = u64::from(number);
        }
        Ok(Self { lines })
    }

    /// The number of lines; keys are smaller.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// True if there are no lines.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }
}

impl Lookup for Lines {
    type Key = u32;
    type Value = u64;

    #[inline(always)]
    fn find(&self, line: u32) -> u64 {
        self.lines[line as usize].words[0]
    }

    #[expect(
        clippy::manual_async_fn,
        reason = "an async fn would copy its arguments"
    )]
    fn find_marked<W: Work<u32, u64>>(
        &self,
        work: &W,
        item: &W::Item,
    ) -> impl Future<Output = W::Out> {
        async move {
            let line = gopt::load(&self.lines[work.key(item) as usize]).await;
            work.out(item, line.words[0])
        }
    }

    #[inline(always)]
    fn find_group<W: Work<u32, u64>>(&self, work: &W, items: &[W::Item], out: &mut [W::Out]) {
        for item in items {
            let line = &self.lines[work.key(item) as usize];
            gopt::prefetch_now(&raw const line.words[0], gopt::T0);
        }
        for (item, out) in items.iter().zip(out) {
            *out = work.out(item, self.find(work.key(item)));
        }
    }

    fn touch(&self, line: u32, touched: &mut Touched) {
        touched.read(&self.lines, line as usize);
    }
}
