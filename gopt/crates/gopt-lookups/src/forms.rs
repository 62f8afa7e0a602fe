//! The three forms of a batched look-up over one table.
//!
//! Invariant: all three write the same values to `out`, and stop at the shorter of `items` and
//! `out`. Each form is a function of its own in the binary, so that a profile tells them apart.

use std::future::Future;

use gopt::{Batch, MAX_WIDTH};

use crate::touched::Touched;
use crate::work::Work;

/// A table whose look-ups miss the cache.
pub trait Lookup {
    /// The key of a look-up.
    type Key: Copy;
    /// Its result.
    type Value: Copy;

    /// Looks one key up.
    fn find(&self, key: Self::Key) -> Self::Value;

    /// Looks one item up, with a mark before each access that is expected to miss.
    ///
    /// The work stands inside, because a function of its own for each table and work has one
    /// caller, and is then inlined into the loop over the lanes.
    fn find_marked<W: Work<Self::Key, Self::Value>>(
        &self,
        work: &W,
        item: &W::Item,
    ) -> impl Future<Output = W::Out>;

    /// Looks at most [`MAX_WIDTH`] items up, in stages that an expert cut by hand: each stage
    /// prefetches what the next one reads. Items and `out` are equally long.
    fn find_group<W: Work<Self::Key, Self::Value>>(
        &self,
        work: &W,
        items: &[W::Item],
        out: &mut [W::Out],
    );

    /// Walks the path of a look-up and names every place that it reads.
    fn touch(&self, key: Self::Key, touched: &mut Touched);
}

/// One item after the other.
#[inline(never)]
pub fn plain<L: Lookup, W: Work<L::Key, L::Value>>(
    table: &L,
    work: &W,
    items: &[W::Item],
    out: &mut [W::Out],
) {
    for (item, out) in items.iter().zip(out) {
        *out = work.out(item, table.find(work.key(item)));
    }
}

/// Interleaved by the library.
#[inline(never)]
pub fn gopt<const CAP: usize, L: Lookup, W: Work<L::Key, L::Value>>(
    batch: Batch<CAP>,
    table: &L,
    work: &W,
    items: &[W::Item],
    out: &mut [W::Out],
) {
    batch.map(items, out, |item| table.find_marked(work, item));
}

/// In groups of `width`, at least 1 and at most [`MAX_WIDTH`].
#[inline(never)]
pub fn hand<L: Lookup, W: Work<L::Key, L::Value>>(
    width: usize,
    table: &L,
    work: &W,
    items: &[W::Item],
    out: &mut [W::Out],
) {
    let width = width.clamp(1, MAX_WIDTH);
    let len = items.len().min(out.len());
    let outs = out[..len].chunks_mut(width);
    for (items, out) in items[..len].chunks(width).zip(outs) {
        table.find_group(work, items, out);
    }
}
