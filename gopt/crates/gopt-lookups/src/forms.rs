//! The three forms of a batched look-up over one table.
//!
//! Invariant: all three write the same values to `out`, and stop at the shorter of `items` and
//! `out`. Each form is a separate function in the binary, so that a profile tells them apart.

use std::future::Future;

use gopt::{Batch, MAX_WIDTH};

use crate::touched::Touched;
use crate::work::Work;

/// A table whose look-ups miss the cache.
pub trait Lookup {
    /// The key of a look-up.
    type Key: Copy;
    /// The result of a look-up.
    type Value: Copy;

    /// Looks one key up.
    fn find(&self, key: Self::Key) -> Self::Value;

    /// Looks one item up, with a mark before each access that is expected to miss. There is one
    /// such function for each table and work. It has one caller, so the compiler inlines it into
    /// the loop over the lanes.
    fn find_marked<W: Work<Self::Key, Self::Value>>(
        &self,
        work: &W,
        item: &W::Item,
    ) -> impl Future<Output = W::Out>;

    /// Looks at most [`MAX_WIDTH`] items up, in stages that were divided by hand: each stage
    /// prefetches what the next one reads. Items and `out` are equally long.
    fn find_group<W: Work<Self::Key, Self::Value>>(
        &self,
        work: &W,
        items: &[W::Item],
        out: &mut [W::Out],
    );

    /// Follows the path of a look-up and reports every place that it reads.
    fn touch(&self, key: Self::Key, touched: &mut Touched);
}

/// Looks up one item after the other.
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

/// Looks items up interleaved by the library.
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

/// Looks items up in groups of `width`, at least 1 and at most [`MAX_WIDTH`].
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
