//! The lanes of a batch: fixed places on the stack in which look-ups run and never move.
//!
//! Invariants: lane `i` is initialised exactly while bit `i` of `live` is set, and then holds a
//! look-up that has not ended. A look-up stays at its address until it is dropped there, once. So
//! empty lanes are never visited. A panic unwinds through `Drop`, which drops every look-up under
//! way. Only `batch.rs` uses this module.
//!
//! The unsafe code has two reasons: it pins elements of an array, which the compiler cannot check,
//! and it initialises lanes only when they are used, so that a short batch does not pay for all of
//! them.

use core::future::Future;
use core::marker::PhantomPinned;
use core::mem::MaybeUninit;
use core::pin::Pin;
use core::task::{Context, Poll};

/// The most lanes of a batch: the bits of the mask.
pub(crate) const MAX_LANES: usize = 64;

/// Up to `CAP` look-ups.
pub(crate) struct Lanes<F, const CAP: usize> {
    lanes: [MaybeUninit<Lane<F>>; CAP],
    live: u64,
    _pinned: PhantomPinned,
}

/// One look-up, and the number of its item.
struct Lane<F> {
    index: usize,
    future: F,
}

impl<F: Future, const CAP: usize> Lanes<F, CAP> {
    /// Lanes without look-ups.
    #[inline(always)]
    pub(crate) const fn new() -> Self {
        const { assert!(CAP >= 1 && CAP <= MAX_LANES, "a batch has 1 to 64 lanes") };
        Self {
            lanes: [const { MaybeUninit::uninit() }; CAP],
            live: 0,
            _pinned: PhantomPinned,
        }
    }

    /// True if some lane holds a look-up.
    #[inline(always)]
    pub(crate) const fn is_live(&self) -> bool {
        self.live != 0
    }

    /// Puts a look-up that has not run yet into a lane that holds none.
    ///
    /// # Panics
    /// If there is no such lane, or if it already holds a look-up.
    #[inline(always)]
    pub(crate) fn open(self: Pin<&mut Self>, lane: usize, index: usize, future: F) {
        assert!(
            self.live & bit(lane) == 0,
            "the lane holds a look-up already"
        );
        // SAFETY: this moves no look-up, because the lane that is written holds none.
        let this = unsafe { self.get_unchecked_mut() };
        this.lanes[lane].write(Lane { index, future });
        this.live |= bit(lane);
    }

    /// Lets the look-up of each lane run to its next mark or to its end, in the order of lanes.
    ///
    /// When a look-up has ended, calls `ended` with its lane, the number of its item, and its
    /// value. The look-up that `ended` returns takes the lane and runs to its first mark at once.
    #[inline(always)]
    pub(crate) fn round(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        mut ended: impl FnMut(usize, usize, F::Output) -> Option<(usize, F)>,
    ) {
        // SAFETY: a look-up is touched in place only, and dropped there by `drop_in_place`.
        let this = unsafe { self.get_unchecked_mut() };
        let mut live = InRegister {
            mask: this.live,
            home: &mut this.live,
        };
        let mut turn = live.mask;
        while turn != 0 {
            let at = lowest(turn);
            turn &= turn - 1;
            // SAFETY: only lanes below `CAP` are opened, so all bits of `live` are below it.
            let place = unsafe { this.lanes.get_unchecked_mut(at) };
            // Each lane has a loop of its own, so the compiler sees that a look-up which was just
            // put there starts at its beginning.
            loop {
                // SAFETY: the bit is set in `live` when the turn begins. It is cleared only below,
                // and the loop goes on only after the lane was written. So it is initialised.
                let lane = unsafe { place.assume_init_mut() };
                // SAFETY: `Lanes` is pinned, and the look-up is not moved until it is dropped.
                let future = unsafe { Pin::new_unchecked(&mut lane.future) };
                let Poll::Ready(value) = future.poll(cx) else {
                    break;
                };
                let index = lane.index;
                // Cleared first: should the drop panic, the lane is not dropped a second time.
                live.mask &= !bit(at);
                // SAFETY: the lane is initialised, and its bit is cleared, so it is not used
                // before it is written again.
                unsafe { place.assume_init_drop() };
                let Some((index, future)) = ended(at, index, value) else {
                    break;
                };
                place.write(Lane { index, future });
                live.mask |= bit(at);
            }
        }
    }
}

/// The mask of live lanes during a round. The compiler keeps it in a register. It is written back
/// to memory when the round ends, also by a panic.
struct InRegister<'a> {
    mask: u64,
    home: &'a mut u64,
}

impl Drop for InRegister<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        *self.home = self.mask;
    }
}

impl<F, const CAP: usize> Lanes<F, CAP> {
    /// Drops every look-up where it lies.
    fn clear(&mut self) {
        while self.live != 0 {
            let at = lowest(self.live);
            // Cleared first: should the drop panic, the lane is not dropped a second time.
            self.live &= !bit(at);
            // SAFETY: the bit was set, so the lane is initialised, and it is not used again.
            unsafe { self.lanes[at].assume_init_drop() };
        }
    }
}

impl<F, const CAP: usize> Drop for Lanes<F, CAP> {
    fn drop(&mut self) {
        let rest = ClearOnUnwind(self);
        rest.0.clear();
        core::mem::forget(rest);
    }
}

/// Drops the other look-ups when the drop of one panics, as arrays do.
struct ClearOnUnwind<'a, F, const CAP: usize>(&'a mut Lanes<F, CAP>);

impl<F, const CAP: usize> Drop for ClearOnUnwind<'_, F, CAP> {
    fn drop(&mut self) {
        self.0.clear();
    }
}

#[inline(always)]
const fn bit(lane: usize) -> u64 {
    1 << lane
}

/// The lowest lane of a mask, which is not empty.
#[inline(always)]
const fn lowest(lanes: u64) -> usize {
    lanes.trailing_zeros() as usize
}

#[cfg(test)]
mod tests;
