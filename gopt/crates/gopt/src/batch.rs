//! Runs look-ups interleaved (G-Opt §3.2): gives items to lanes, and passes on the values.
//!
//! Invariant: each item that was taken is looked up once, and its value is passed on once, unless
//! there is a panic.

use core::fmt;
use core::future::Future;
use core::iter::Enumerate;

use crate::lanes::{self, MAX_LANES, Source};

/// The most lanes that a batch can have. Cores of today overlap 10 to 48 misses.
pub const MAX_WIDTH: usize = MAX_LANES;

/// Runs look-ups on at most `CAP` lanes, which lie on the stack; `width` of them are in use.
///
/// ```
/// async fn double(n: u32) -> u32 {
///     gopt::switch().await;
///     2 * n
/// }
/// let mut out = [0; 3];
/// let written = gopt::Batch::<16>::new().map([1, 2, 3], &mut out, double);
/// assert_eq!((written, out), (3, [2, 4, 6]));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Batch<const CAP: usize> {
    width: usize,
}

/// The error for a width that is zero, or more than the lanes of the batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WidthError {
    /// The width that was asked for, in lanes.
    pub width: usize,
    /// How many lanes the batch has.
    pub capacity: usize,
}

impl fmt::Display for WidthError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { width, capacity } = self;
        write!(f, "a batch of {capacity} lanes cannot use {width}")
    }
}

impl core::error::Error for WidthError {}

impl<const CAP: usize> Default for Batch<CAP> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const CAP: usize> Batch<CAP> {
    /// A batch that uses all its lanes; the compiler knows the width. A capacity of 0, or of more
    /// than [`MAX_WIDTH`], does not compile.
    #[inline]
    #[must_use]
    pub const fn new() -> Self {
        const { assert!(CAP >= 1 && CAP <= MAX_WIDTH, "a batch has 1 to 64 lanes") };
        Self { width: CAP }
    }

    /// A batch whose width, in lanes, is known at run time.
    ///
    /// # Errors
    /// [`WidthError`] unless `1 <= width <= CAP`.
    ///
    /// ```
    /// assert!(gopt::Batch::<32>::with_width(12).is_ok());
    /// let error = gopt::Batch::<32>::with_width(0).unwrap_err();
    /// assert_eq!(error.to_string(), "a batch of 32 lanes cannot use 0");
    /// ```
    #[inline]
    pub const fn with_width(width: usize) -> Result<Self, WidthError> {
        let Self { width: capacity } = Self::new();
        if width == 0 || width > capacity {
            return Err(WidthError { width, capacity });
        }
        Ok(Self { width })
    }

    /// The number of lanes in use.
    #[inline]
    #[must_use]
    pub const fn width(self) -> usize {
        self.width
    }

    /// Looks every item up and passes each value to `done` with the number of its item, in the
    /// order in which look-ups end. Takes the next item when a lane is free.
    ///
    /// # Panics
    /// If `lookup`, a look-up, `done` or the iterator panics. Then all look-ups in flight are
    /// dropped.
    #[inline]
    pub fn for_each<I, F, L, D>(self, items: I, lookup: L, done: D)
    where
        I: IntoIterator,
        L: FnMut(I::Item) -> F,
        F: Future,
        D: FnMut(usize, F::Output),
    {
        let items = items.into_iter().enumerate();
        let mut source = AsTheyEnd {
            items,
            lookup,
            done,
        };
        lanes::run::<F, _, CAP>(self.width, &mut source);
    }

    /// Looks every item up and writes the value of item `i` to `out[i]`. Stops at the end of the
    /// items or of `out`, whichever comes first, and returns the number of values that it wrote.
    ///
    /// # Panics
    /// As [`Batch::for_each`]. Some places of `out` then have new values, the others their old
    /// ones.
    #[inline]
    pub fn map<I, F, L>(self, items: I, out: &mut [F::Output], lookup: L) -> usize
    where
        I: IntoIterator,
        L: FnMut(I::Item) -> F,
        F: Future,
    {
        let mut written = 0;
        // The places come first in the pair of iterators, so that no item is taken without a place
        // for its value.
        let items = (0..out.len()).zip(items).map(|(_, item)| item);
        self.for_each(items, lookup, |index, value| {
            out[index] = value;
            written += 1;
        });
        written
    }

    /// Looks every item up and passes the values to `done` in the order of their items. A slow
    /// look-up holds back the values of all later items, and meanwhile fewer than `width` of these
    /// begin. [`Batch::map`] does not wait in this way.
    ///
    /// # Panics
    /// As [`Batch::for_each`].
    #[inline]
    pub fn in_order<I, F, L, D>(self, items: I, lookup: L, done: D)
    where
        I: IntoIterator,
        L: FnMut(I::Item) -> F,
        F: Future,
        D: FnMut(F::Output),
    {
        let mut source = InOrder::<_, _, _, F::Output, CAP> {
            items: items.into_iter(),
            lookup,
            done,
            ended: [const { None }; CAP],
            width: self.width,
            under_way: 0,
            oldest: 0,
        };
        lanes::run::<F, _, CAP>(self.width, &mut source);
    }
}

/// The items of [`Batch::for_each`]. The number of an item is its place among the items.
struct AsTheyEnd<I, L, D> {
    items: Enumerate<I>,
    lookup: L,
    done: D,
}

impl<I, F, L, D> Source<F> for AsTheyEnd<I, L, D>
where
    I: Iterator,
    L: FnMut(I::Item) -> F,
    F: Future,
    D: FnMut(usize, F::Output),
{
    #[inline(always)]
    fn next(&mut self) -> Option<(usize, F)> {
        let (number, item) = self.items.next()?;
        Some((number, (self.lookup)(item)))
    }

    #[inline(always)]
    fn on_end(&mut self, number: usize, value: F::Output) {
        (self.done)(number, value);
    }
}

/// The items of [`Batch::in_order`]. The number of an item is its place in `ended`, a ring that
/// holds the values that came before the values of older items.
struct InOrder<I, L, D, V, const CAP: usize> {
    items: I,
    lookup: L,
    done: D,
    ended: [Option<V>; CAP],
    width: usize,
    /// Items that have begun, and whose values were not yet passed to `done`.
    under_way: usize,
    /// The place of the oldest such item.
    oldest: usize,
}

impl<I, F, L, D, const CAP: usize> Source<F> for InOrder<I, L, D, F::Output, CAP>
where
    I: Iterator,
    L: FnMut(I::Item) -> F,
    F: Future,
    D: FnMut(F::Output),
{
    #[inline(always)]
    fn next(&mut self) -> Option<(usize, F)> {
        if self.under_way == self.width {
            return None;
        }
        let look_up = (self.lookup)(self.items.next()?);
        let place = (self.oldest + self.under_way) % self.width;
        self.under_way += 1;
        Some((place, look_up))
    }

    #[inline(always)]
    fn on_end(&mut self, place: usize, value: F::Output) {
        self.ended[place] = Some(value);
        while let Some(value) = self.ended[self.oldest].take() {
            self.oldest = (self.oldest + 1) % self.width;
            self.under_way -= 1;
            (self.done)(value);
        }
    }
}

#[cfg(test)]
mod tests;
