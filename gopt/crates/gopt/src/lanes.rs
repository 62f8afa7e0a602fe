//! The lanes of a batch: fixed places on the stack in which look-ups run and never move.
//!
//! Invariants: the busy lanes form a ring of links, and a lane is in the ring exactly while it
//! holds a look-up that has not ended. A look-up stays at its address until it is dropped there,
//! once. A panic unwinds through the destructor of [`Ring`], which drops every look-up in flight.
//! Only `batch.rs` uses this module.
//!
//! The unsafe code has three reasons: it pins elements of an array, which the compiler cannot
//! check; it initialises lanes only when they are used, so that a short batch does not pay for all
//! of them; and lanes link to each other.

use core::future::Future;
use core::mem::{self, MaybeUninit};
use core::pin::Pin;
use core::ptr;
use core::task::Poll;

use crate::turn::Permit;

/// The most lanes of a batch.
pub(crate) const MAX_LANES: usize = 64;

/// Gives the items of a batch, and takes their values.
pub(crate) trait Source<F: Future> {
    /// The next look-up and the number of its item, if one may begin now. After `None`, the batch
    /// asks again when another look-up has ended.
    fn next(&mut self) -> Option<(usize, F)>;

    /// Takes the value of an item.
    fn on_end(&mut self, number: usize, value: F::Output);
}

/// One look-up, the number of its item, and the busy lanes around it.
struct Lane<F> {
    next: *mut Lane<F>,
    previous: *mut Lane<F>,
    number: usize,
    future: MaybeUninit<F>,
}

/// The busy lanes. `at` is the one whose turn it is, or null if the ring is empty.
struct Ring<F> {
    at: *mut Lane<F>,
}

/// The lane whose look-up has ended. Leaves the ring when this is dropped.
struct Vacant<'a, F>(&'a mut Ring<F>);

/// The lanes that hold no look-up: a list of used ones, followed by those that were never used.
struct Spare<F> {
    first: *mut Lane<F>,
    unused: *mut Lane<F>,
    end: *mut Lane<F>,
}

/// Runs the look-ups of `source` in `width` lanes, in turns, until the source has no more and all
/// have ended. A lane whose look-up has ended takes the next one, which immediately runs to its
/// first mark.
#[inline(always)]
pub(crate) fn run<F, S, const CAP: usize>(width: usize, source: &mut S)
where
    F: Future,
    S: Source<F>,
{
    assert!(1 <= width && width <= CAP, "a batch uses lanes that it has");
    let mut lanes = [const { MaybeUninit::<Lane<F>>::uninit() }; CAP];
    let lanes: *mut Lane<F> = lanes.as_mut_ptr().cast();
    let permit = Permit::new();
    permit.with_context(|cx| {
        let Some(mut begun) = source.next() else {
            return;
        };
        // SAFETY: `lanes` has `CAP` places; `CAP` is at least `width`, and `width` at least 1.
        let (mut ring, mut spare) = unsafe { (Ring::of(lanes), Spare::of(lanes, width)) };
        loop {
            // SAFETY: `at` holds no look-up: it is the first lane, a spare one, or one whose
            // look-up has ended.
            unsafe { ring.begin(begun) };
            // The compiler peels the first turn off the inner loop. In that turn it knows that the
            // look-up starts at its beginning without a permit; in all later turns it knows that
            // there is a permit.
            let mut is_first = true;
            begun = loop {
                permit.set(!is_first);
                // SAFETY: the ring is not empty. Read before the poll, so that the next turn need
                // not wait for this link.
                let following = unsafe { (*ring.at).next };
                // SAFETY: a lane in the ring holds a look-up, which does not move: it is dropped
                // in place, and the lanes stay where they are until this function ends.
                let look_up = unsafe { Pin::new_unchecked((*ring.at).future.assume_init_mut()) };
                if let Poll::Ready(value) = look_up.poll(cx) {
                    let vacant = Vacant(&mut ring);
                    let lane = vacant.0.at;
                    // SAFETY: the look-up is dropped once, because the lane is vacant now: it is
                    // filled again, or leaves the ring, also if this drop panics.
                    unsafe { (*lane).future.assume_init_drop() };
                    // SAFETY: the number was written together with the look-up.
                    source.on_end(unsafe { (*lane).number }, value);
                    if let Some(next) = source.next() {
                        mem::forget(vacant);
                        break next;
                    }
                    drop(vacant);
                    // SAFETY: the lane has left the ring.
                    unsafe { spare.push(lane) };
                    if ring.at.is_null() {
                        return;
                    }
                } else {
                    if is_first
                        && !spare.first.is_null()
                        && let Some(next) = source.next()
                    {
                        // SAFETY: there is a spare lane, and it is filled before any other code
                        // runs.
                        unsafe { ring.insert(spare.pop()) };
                        break next;
                    }
                    ring.at = following;
                }
                is_first = false;
            };
        }
    });
}

impl<F> Ring<F> {
    /// A ring of one lane, which the caller fills.
    ///
    /// # Safety
    /// `lane` is a place for a lane.
    #[inline(always)]
    unsafe fn of(lane: *mut Lane<F>) -> Self {
        // SAFETY: as the caller promises.
        unsafe {
            (*lane).next = lane;
            (*lane).previous = lane;
        }
        Self { at: lane }
    }

    /// Puts a look-up into the lane at `at`.
    ///
    /// # Safety
    /// The ring is not empty, and that lane holds no look-up.
    #[inline(always)]
    unsafe fn begin(&mut self, (number, future): (usize, F)) {
        // SAFETY: as the caller promises; nothing is overwritten that needs a drop.
        unsafe {
            (*self.at).number = number;
            (*self.at).future.write(future);
        }
    }

    /// Links a lane after the one at `at`, and goes to it.
    ///
    /// # Safety
    /// The ring is not empty, and `lane` is not in it. The caller fills the lane.
    #[inline(always)]
    unsafe fn insert(&mut self, lane: *mut Lane<F>) {
        // SAFETY: as the caller promises; all links of lanes in the ring are valid.
        unsafe {
            let next = (*self.at).next;
            (*lane).next = next;
            (*lane).previous = self.at;
            (*self.at).next = lane;
            (*next).previous = lane;
        }
        self.at = lane;
    }
}

impl<F> Drop for Ring<F> {
    #[inline(always)]
    fn drop(&mut self) {
        // By value: a reference would force `at` into memory.
        drop_all(self.at);
    }
}

impl<F> Drop for Vacant<'_, F> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: the ring is not empty while its current lane is vacant, and its links are valid.
        unsafe {
            let (next, previous) = ((*self.0.at).next, (*self.0.at).previous);
            if next == self.0.at {
                self.0.at = ptr::null_mut();
            } else {
                self.0.at = next;
                (*previous).next = next;
                (*next).previous = previous;
            }
        }
    }
}

impl<F> Spare<F> {
    /// The lanes after the first of `width`.
    ///
    /// # Safety
    /// `lanes` are `width` places, at least one.
    #[inline(always)]
    unsafe fn of(lanes: *mut Lane<F>, width: usize) -> Self {
        // SAFETY: both are within the places, or at their end.
        let (unused, end) = unsafe { (lanes.add(1), lanes.add(width)) };
        let first = if unused == end {
            ptr::null_mut()
        } else {
            unused
        };
        Self { first, unused, end }
    }

    /// Takes a lane.
    ///
    /// # Safety
    /// `first` is not null.
    #[inline(always)]
    unsafe fn pop(&mut self) -> *mut Lane<F> {
        let lane = self.first;
        if lane == self.unused {
            // SAFETY: an unused lane is below `end`.
            *self = unsafe { Self::of(lane, self.end.offset_from_unsigned(lane)) };
        } else {
            // SAFETY: `push` wrote the link of a lane that was used.
            self.first = unsafe { (*lane).next };
        }
        lane
    }

    /// Takes a lane back.
    ///
    /// # Safety
    /// `lane` is in no list and in no ring.
    #[inline(always)]
    unsafe fn push(&mut self, lane: *mut Lane<F>) {
        // SAFETY: as the caller promises, nothing else has the lane.
        unsafe { (*lane).next = self.first };
        self.first = lane;
    }
}

/// Drops every look-up of a ring in place. This happens only while a panic unwinds, and then a
/// destructor that panics ends the process.
#[cold]
#[inline(never)]
fn drop_all<F>(at: *mut Lane<F>) {
    let mut lane = at;
    while !lane.is_null() {
        // SAFETY: a lane in the ring holds a look-up, and each lane is visited once.
        unsafe {
            (*lane).future.assume_init_drop();
            lane = (*lane).next;
        }
        if lane == at {
            break;
        }
    }
}

#[cfg(test)]
mod tests;
