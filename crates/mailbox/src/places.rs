//! The places of a channel. A call has one while it is sent or waits to be sent, and keeps it after
//! its end while a server may still hold its request. So the limit of the channel's calls also
//! bounds the requests that stuck servers hold. Tasks can wait for a place.
//!
//! A place goes with its call: from the caller's handle into the slot of the mailbox, to the
//! attempt that is sent, and back to the slot when the attempt ends. Dropping the place frees it.
//!
//! Invariants: no thread waits for another one. A task waits only while no place is free: one
//! atomic number counts both the places that are taken and the tasks that wait, so a task that
//! begins to wait and a place that becomes free never miss each other.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use crate::sync::{AtomicBool, AtomicU32, AtomicU64, Mutex, Ordering};

/// One taken place, in `Places::count`; the bits below count the tasks that wait.
const TAKEN_ONE: u64 = 1 << 32;

/// A thread has the list.
const BUSY: u32 = 1;
/// The thread that has the list looks at it again before it leaves.
const AGAIN: u32 = 2;

/// The places of one channel, some of which are taken.
#[derive(Debug)]
pub struct Places {
    count: AtomicU64,
    most: u64,
    state: AtomicU32,
    /// The tasks that wait, in the order in which they came. The thread that set `BUSY` finds this
    /// lock free.
    waiting: Mutex<VecDeque<Waiting>>,
}

/// A task that waits.
#[derive(Debug)]
struct Waiting {
    /// Its [`Waiter`] has been dropped.
    is_gone: Arc<AtomicBool>,
    waker: Waker,
}

/// A place that is taken. Dropping it frees the place.
#[derive(Debug)]
pub struct TakenPlace(Arc<Places>);

/// A task that waits for a place. If it is dropped after it was woken, another one is woken.
#[derive(Debug, Default)]
pub struct Waiter(Option<Arc<Enrolled>>);

/// A task that is or was in the list.
#[derive(Debug)]
struct Enrolled {
    places: Arc<Places>,
    is_gone: Arc<AtomicBool>,
}

const ALONE: &str = "one thread has the list";

impl Places {
    /// Makes `most` places.
    pub fn new(most: u32) -> Arc<Self> {
        Arc::new(Self {
            count: AtomicU64::new(0),
            most: most.into(),
            state: AtomicU32::new(0),
            waiting: Mutex::new(VecDeque::new()),
        })
    }

    /// Takes a place, if one is free.
    #[inline]
    pub fn take(self: &Arc<Self>) -> Option<TakenPlace> {
        self.reserve().then(|| self.taken())
    }

    /// Counts a place as taken, if one is free. Returns false if none is. The caller frees it by
    /// [`Self::free`], or by dropping the value of [`Self::taken`].
    #[inline]
    pub fn reserve(&self) -> bool {
        let before = self.count.fetch_add(TAKEN_ONE, Ordering::AcqRel);
        let is_free = before / TAKEN_ONE < self.most;
        if !is_free {
            self.free();
        }
        is_free
    }

    /// Frees a place that [`Self::reserve`] has counted.
    #[inline(never)]
    pub fn free(&self) {
        let before = self.count.fetch_sub(TAKEN_ONE, Ordering::AcqRel);
        if !before.is_multiple_of(TAKEN_ONE) {
            self.look();
        }
    }

    /// The place that [`Self::reserve`] has counted.
    #[inline]
    pub fn taken(self: &Arc<Self>) -> TakenPlace {
        TakenPlace(Arc::clone(self))
    }

    /// Reserves a place once one is free; until then, the task of `context` waits as `waiter`.
    #[inline]
    pub fn poll_reserve(self: &Arc<Self>, waiter: &mut Waiter, context: &Context<'_>) -> Poll<()> {
        if !self.reserve() {
            return self.wait(waiter, context);
        }
        if waiter.is_enrolled() {
            waiter.end();
        }
        Poll::Ready(())
    }

    /// Lets the task of `context` wait as `waiter`.
    #[cold]
    fn wait(self: &Arc<Self>, waiter: &mut Waiter, context: &Context<'_>) -> Poll<()> {
        let waker = context.waker().clone();
        if self.state.fetch_or(BUSY, Ordering::AcqRel) & BUSY != 0 {
            // Another thread has the list, and will give it back soon.
            waker.wake();
            return Poll::Pending;
        }
        let before = self.with(|waiting| self.enroll(waiting, waiter, waker));
        // A place may have become free before the task was counted.
        self.state.fetch_or(AGAIN, Ordering::AcqRel);
        self.leave();
        drop(before);
        Poll::Pending
    }

    /// Puts a task into the list; returns the task's previous waker if it was there already.
    fn enroll(
        self: &Arc<Self>,
        list: &mut VecDeque<Waiting>,
        waiter: &mut Waiter,
        waker: Waker,
    ) -> Option<Waker> {
        let enrolled = waiter.0.get_or_insert_with(|| {
            Arc::new(Enrolled {
                places: Arc::clone(self),
                is_gone: Arc::new(AtomicBool::new(false)),
            })
        });
        let is_gone = &enrolled.is_gone;
        let is_it = |it: &&mut Waiting| Arc::ptr_eq(&it.is_gone, is_gone);
        if let Some(waiting) = list.iter_mut().find(is_it) {
            return Some(std::mem::replace(&mut waiting.waker, waker));
        }
        list.push_back(Waiting {
            is_gone: Arc::clone(is_gone),
            waker,
        });
        self.count.fetch_add(1, Ordering::AcqRel);
        None
    }

    fn has_room(&self) -> bool {
        self.count.load(Ordering::Acquire) / TAKEN_ONE < self.most
    }

    /// Wakes tasks if there is room for them, now or as soon as the thread that has the list
    /// leaves it.
    #[cold]
    fn look(&self) {
        if self.state.fetch_or(BUSY | AGAIN, Ordering::AcqRel) & BUSY == 0 {
            self.leave();
        }
    }

    /// Gives the list back. Looks at it first if another thread has asked for that.
    fn leave(&self) {
        loop {
            if self.state.fetch_and(!AGAIN, Ordering::AcqRel) & AGAIN != 0 {
                self.wake_one();
            }
            let left = self
                .state
                .compare_exchange(BUSY, 0, Ordering::AcqRel, Ordering::Acquire);
            if left.is_ok() {
                return;
            }
        }
    }

    /// Wakes the task that waits longest, if there is room. Once that task has its place, or is
    /// gone, the drop of its [`Waiter`] wakes the next one.
    fn wake_one(&self) {
        while self.has_room() {
            let Some(next) = self.with(VecDeque::pop_front) else {
                return;
            };
            self.count.fetch_sub(1, Ordering::AcqRel);
            if !next.is_gone.load(Ordering::Acquire) {
                // A waker is code of the program, and its panic must affect only its own task.
                let _ = catch_unwind(AssertUnwindSafe(|| next.waker.wake()));
                return;
            }
        }
    }

    fn with<R>(&self, run: impl FnOnce(&mut VecDeque<Waiting>) -> R) -> R {
        run(&mut self.waiting.try_lock().expect(ALONE))
    }
}

impl Drop for TakenPlace {
    fn drop(&mut self) {
        self.0.free();
    }
}

impl Waiter {
    /// A task that does not wait yet.
    pub const fn new() -> Self {
        Self(None)
    }

    /// Whether the task waits, or has waited and has not taken its place yet.
    #[inline]
    pub const fn is_enrolled(&self) -> bool {
        self.0.is_some()
    }

    /// The task no longer waits.
    #[cold]
    #[inline(never)]
    fn end(&mut self) {
        self.0 = None;
    }
}

impl Drop for Enrolled {
    /// The task has its place, or is gone.
    fn drop(&mut self) {
        self.is_gone.store(true, Ordering::Release);
        // The task may have been woken for a place that it does not take, or several places may be
        // free.
        let count = self.places.count.load(Ordering::Acquire);
        if !count.is_multiple_of(TAKEN_ONE) {
            self.places.look();
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
