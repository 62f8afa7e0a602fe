//! Brings calls from any thread to an owner, such as the thread of an endpoint, and brings their
//! ends back.
//!
//! Each call has a slot. Calls that are posted or dropped are linked into a list, which the owner
//! takes as a whole. Posting, dropping and ending are a few atomic
//! operations: no thread waits for another one, so a caller that the kernel has stopped holds up no
//! other. Slots are used again, so after the first calls nothing is allocated.
//!
//! | state of a slot | its content belongs to | next state |
//! |---|---|---|
//! | held | the caller | posted: posted; released: free |
//! | posted | the list | the owner takes it: taken; dropped: dropped |
//! | taken | the owner | it ends: ended; dropped: dropped, and into the list again |
//! | ended | the caller | released: free; dropped: dropped, and into the list again |
//! | dropped | the owner | the owner takes it out of the list: free |
//!
//! Invariants: a slot is in the list at most once. Only its owner uses a slot's content, so the
//! content's lock is always free; a thread that found it taken would panic. There is no unsafe
//! code.
//!
//! No wake-up is lost: a caller first puts its slot into the list and then rings; the owner looks
//! at the list after it has reset the bell, and before it sleeps. Every call rings, not only the
//! first of a burst: if the first caller is stopped between list and bell, the ring of the next one
//! suffices. The bell itself costs a system call only if the owner sleeps.
//!
//! On the way back an owner can wake the tasks of a burst together (`relay.rs`).

#![forbid(unsafe_code)]

mod lease;
mod places;
mod relay;
mod slots;
mod sync;
mod task_waker;

use std::sync::TryLockError;
use std::task::{Context, Poll};

use crate::sync::{AtomicBool, AtomicU32, Ordering};
use relay::Relay;
use slots::{NONE, Slots};

pub use lease::Lease;
pub use places::{Places, TakenPlace, Waiter};
pub use slots::Slot;
pub use task_waker::Wakeup;

/// A bell that wakes the owner.
pub trait Bell {
    /// Wakes the owner: the list has something to take.
    fn ring(&self);
}

/// The content of a slot.
pub trait Letter: Default {
    /// The call ends because the owner is gone.
    fn on_closed(&mut self);
}

/// An entry that the owner takes from the list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum News {
    /// A call begins. The owner has its slot until [`Mailbox::end`].
    Posted(Slot),
    /// A call is no longer wanted. The owner releases the slot after it has forgotten the call.
    Dropped(Slot),
}

const HELD: u32 = 0;
const POSTED: u32 = 1;
const TAKEN: u32 = 2;
const ENDED: u32 = 3;
const DROPPED: u32 = 4;

/// Planted bugs, to prove that the tests under loom find bugs.
#[cfg(all(test, loom))]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Flaw {
    None,
    /// The bell rings before the slot is in the list.
    RingsFirst,
    /// A caller that drops its call uses the slot again, without waiting for the owner.
    ReleasesTaken,
}

/// Calls on their way to the owner, and their ends. The crate's page says how it works.
#[derive(Debug)]
pub struct Mailbox<L, B> {
    slots: Slots<L>,
    /// The last slot that was put into the list.
    head: AtomicU32,
    is_closed: AtomicBool,
    bell: B,
    relay: Relay,
    #[cfg(all(test, loom))]
    flaw: Flaw,
}

impl<L: Letter, B: Bell> Mailbox<L, B> {
    /// A mailbox for at most `limit` calls.
    pub fn new(bell: B, limit: u32) -> Self {
        Self {
            slots: Slots::new(limit),
            head: AtomicU32::new(NONE),
            is_closed: AtomicBool::new(false),
            bell,
            relay: Relay::default(),
            #[cfg(all(test, loom))]
            flaw: Flaw::None,
        }
    }

    // The caller's side.

    /// A slot for a call that is not posted yet. `None`: all slots are in use.
    pub fn hold(&self) -> Option<Slot> {
        self.slots.take()
    }

    /// Reads or writes the content of a slot that belongs to the calling side.
    pub fn with<R>(&self, slot: Slot, run: impl FnOnce(&mut L) -> R) -> R {
        let content = &self.slots.cell(slot).content;
        let mut content = match content.try_lock() {
            Ok(content) => content,
            // A thread has panicked while it used the content. The call must end even so.
            Err(TryLockError::Poisoned(content)) => content.into_inner(),
            Err(TryLockError::WouldBlock) => panic!("a slot has two owners"),
        };
        run(&mut content)
    }

    /// Posts a call that is held. Its end wakes the task of `context`.
    pub fn post(&self, slot: Slot, context: &Context<'_>) {
        self.prepare(slot, context);
        self.push(slot);
    }

    /// Posts a call like [`Self::post`], without ringing the bell. The caller rings it after the
    /// last call of its burst.
    pub fn post_quietly(&self, slot: Slot, context: &Context<'_>) {
        self.prepare(slot, context);
        self.link(slot);
        self.end_if_closed();
    }

    /// Ready once the call has ended. From then on the content belongs to the caller again.
    pub fn poll_end(&self, slot: Slot, context: &Context<'_>) -> Poll<()> {
        let cell = self.slots.cell(slot);
        let has_ended = || cell.state.load(Ordering::Acquire) == ENDED;
        self.relay.wake_all();
        if has_ended() {
            return Poll::Ready(());
        }
        cell.wakeup.register(context.waker());
        match has_ended() {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }

    /// Frees a slot: one that is held, one whose call has ended, or one that the owner has taken as
    /// dropped.
    pub fn release(&self, slot: Slot) {
        self.slots.cell(slot).state.store(HELD, Ordering::Relaxed);
        self.slots.give_back(slot);
    }

    /// Drops a posted call, which the caller no longer wants.
    pub fn give_up(&self, slot: Slot) {
        let state = &self.slots.cell(slot).state;
        #[cfg(all(test, loom))]
        if self.flaw == Flaw::ReleasesTaken && change(state, TAKEN, HELD) {
            return self.slots.give_back(slot);
        }
        // It is in the list, where the owner will find it.
        if change(state, POSTED, DROPPED) {
            return;
        }
        if change(state, TAKEN, DROPPED) || change(state, ENDED, DROPPED) {
            self.push(slot);
        }
    }

    // The owner's side.

    /// The bell, on which an owner that is a task registers its waker, and which a caller rings
    /// after [`Self::post_quietly`].
    pub const fn bell(&self) -> &B {
        &self.bell
    }

    /// True if there is nothing to take.
    pub fn is_empty(&self) -> bool {
        self.head.load(Ordering::Acquire) == NONE
    }

    /// Takes everything that is in the list, the oldest first. If `each` panics, the calls that it
    /// has not seen end.
    pub fn take(&self, mut each: impl FnMut(News)) {
        if self.is_empty() {
            return;
        }
        let mut rest = Rest {
            mailbox: self,
            next: self.reversed(self.head.swap(NONE, Ordering::AcqRel)),
        };
        while let Some((slot, is_posted)) = rest.next() {
            match is_posted {
                true => each(News::Posted(slot)),
                false => each(News::Dropped(slot)),
            }
        }
    }

    /// Ends a call that was taken; the slot's content says how. Returns false if the caller has
    /// dropped the call: the owner keeps the content, and will find the slot in the list.
    pub fn end(&self, slot: Slot) -> bool {
        let cell = self.slots.cell(slot);
        let is_wanted = change(&cell.state, TAKEN, ENDED);
        if is_wanted {
            // Another call may have the slot by now; its task is then woken once without need.
            cell.wakeup.wake();
        }
        is_wanted
    }

    /// Ends a call like [`Self::end`], but its task is woken later: by the owner, or by another
    /// task that polls. The owner must not sleep before [`Self::all_are_woken`].
    pub fn end_later(&self, slot: Slot) -> bool {
        let cell = self.slots.cell(slot);
        let is_wanted = change(&cell.state, TAKEN, ENDED);
        if is_wanted && let Some(waker) = cell.wakeup.take() {
            self.relay.add(waker);
        }
        is_wanted
    }

    /// True if no task waits for a wake-up that [`Self::end_later`] put off.
    pub fn all_are_woken(&self) -> bool {
        self.relay.is_empty()
    }

    /// True if the tasks that wait belong to a new burst, and none of them was woken.
    pub fn has_new_burst(&self) -> bool {
        self.relay.is_new()
    }

    /// Wakes the first task of a burst. When it polls its call, it wakes the others, which costs no
    /// system call if they belong to its runtime.
    pub fn wake_first(&self) {
        self.relay.wake_first();
    }

    /// Wakes all tasks that still wait, unless another thread is waking them.
    pub fn wake_all(&self) {
        self.relay.wake_all();
    }

    /// Ends each call that was taken and has not ended. `how` writes the end into the slot's
    /// content. This is for an owner that has panicked and may have forgotten some calls.
    pub fn end_taken(&self, how: impl Fn(&mut L)) {
        for (slot, cell) in self.slots.all() {
            if cell.state.load(Ordering::Acquire) == TAKEN {
                self.with(slot, &how);
                self.end(slot);
            }
        }
    }

    /// Ends the posted calls in the list, for an owner that takes no more calls; calls that were
    /// dropped stay in the list. Any thread may call this. The owner sets a flag of its own and
    /// then calls this. A caller posts its call, reads the flag, and calls this too if the flag is
    /// set. So one of the two ends each call.
    #[cold]
    pub fn end_posted(&self) {
        let mut next = self.head.swap(NONE, Ordering::AcqRel);
        while next != NONE {
            let slot = Slot(next);
            let cell = self.slots.cell(slot);
            // Read before the slot can be used again.
            next = cell.next.load(Ordering::Relaxed);
            match change(&cell.state, POSTED, TAKEN) {
                true => drop(self.end(slot)),
                false => self.push(slot),
            }
        }
    }

    /// Closes the mailbox: calls in the list end, and so do calls that are posted from now on. The
    /// owner must have ended the calls that it has taken.
    pub fn close(&self) {
        self.is_closed.store(true, Ordering::Relaxed);
        self.refuse();
        self.relay.wake_all();
    }

    // Inside.

    fn prepare(&self, slot: Slot, context: &Context<'_>) {
        let cell = self.slots.cell(slot);
        cell.wakeup.register(context.waker());
        cell.state.store(POSTED, Ordering::Release);
    }

    /// Puts a slot into the list, and rings.
    fn push(&self, slot: Slot) {
        #[cfg(all(test, loom))]
        if self.flaw == Flaw::RingsFirst {
            self.bell.ring();
        }
        self.link(slot);
        #[cfg(all(test, loom))]
        if self.flaw == Flaw::RingsFirst {
            return;
        }
        self.bell.ring();
        self.end_if_closed();
    }

    /// Puts a slot into the list.
    fn link(&self, slot: Slot) {
        let next = &self.slots.cell(slot).next;
        let mut head = self.head.load(Ordering::Relaxed);
        loop {
            next.store(head, Ordering::Relaxed);
            let pushed =
                self.head
                    .compare_exchange_weak(head, slot.0, Ordering::AcqRel, Ordering::Relaxed);
            match pushed {
                Ok(_) => break,
                Err(now) => head = now,
            }
        }
    }

    /// Ends the calls in the list if the mailbox is closed, after the calling thread has put a slot
    /// into it. If `refuse` ran before that, the exchange in `link` has read the value that
    /// `refuse` left in `head`. Therefore this thread sees that the mailbox is closed.
    fn end_if_closed(&self) {
        if self.is_closed.load(Ordering::Relaxed) {
            self.refuse();
        }
    }

    /// Ends every call in the list. Any thread may call this.
    #[cold]
    fn refuse(&self) {
        drop(Rest {
            mailbox: self,
            next: self.head.swap(NONE, Ordering::AcqRel),
        });
    }

    /// Reverses a list; returns the slot that was last.
    fn reversed(&self, mut from: u32) -> u32 {
        let mut before = NONE;
        while from != NONE {
            let next = &self.slots.cell(Slot(from)).next;
            let after = next.load(Ordering::Relaxed);
            next.store(before, Ordering::Relaxed);
            (before, from) = (from, after);
        }
        before
    }
}

impl Bell for Wakeup {
    fn ring(&self) {
        self.wake();
    }
}

/// The rest of a list that was taken from the mailbox. Dropping it ends the calls in it.
struct Rest<'a, L: Letter, B: Bell> {
    mailbox: &'a Mailbox<L, B>,
    next: u32,
}

impl<L: Letter, B: Bell> Rest<'_, L, B> {
    /// The next slot, and whether it is posted; otherwise its call was dropped.
    fn next(&mut self) -> Option<(Slot, bool)> {
        if self.next == NONE {
            return None;
        }
        let slot = Slot(self.next);
        let cell = self.mailbox.slots.cell(slot);
        // Read before the slot can be used again.
        self.next = cell.next.load(Ordering::Relaxed);
        Some((slot, change(&cell.state, POSTED, TAKEN)))
    }
}

impl<L: Letter, B: Bell> Drop for Rest<'_, L, B> {
    fn drop(&mut self) {
        while let Some((slot, is_posted)) = self.next() {
            // This is called for a dropped call, too, because its content may hold an answer.
            self.mailbox.with(slot, L::on_closed);
            match is_posted {
                true => drop(self.mailbox.end(slot)),
                false => self.mailbox.release(slot),
            }
        }
    }
}

fn change(state: &AtomicU32, from: u32, to: u32) -> bool {
    state
        .compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire)
        .is_ok()
}

#[cfg(all(test, loom))]
mod loom_tests;
#[cfg(all(test, not(loom)))]
mod tests;
