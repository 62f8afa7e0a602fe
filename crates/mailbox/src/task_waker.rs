//! The waker of a task: one that waits for its call, or one that owns a mailbox and waits for
//! calls. One thread at a time registers it, any thread wakes it, and neither waits for the other.
//!
//! Invariant: a wake that comes while a waker is being registered is not lost; the registering
//! thread then wakes the task itself.

use std::task::Waker;

use crate::relay::wake;
use crate::sync::{AtomicU32, Mutex, Ordering};

const LEAVING: u32 = 1;
const WAKING: u32 = 2;

/// The waker of a task, which any thread may wake. As the [`Bell`](crate::Bell) of a mailbox, it
/// wakes an owner that is a task, and only once for a burst of calls: waking removes the waker
/// until the task registers it again.
#[derive(Debug, Default)]
pub struct Wakeup {
    /// The thread that uses the waker: the registering one, a waking one, or none.
    busy: AtomicU32,
    /// The thread that `busy` names finds this lock free.
    waker: Mutex<Option<Waker>>,
}

const ALONE: &str = "one thread has it";

impl Wakeup {
    /// Registers a waker in place of the earlier one.
    pub fn register(&self, waker: &Waker) {
        let alone = self
            .busy
            .compare_exchange(0, LEAVING, Ordering::Acquire, Ordering::Acquire);
        if alone.is_err() {
            // The task is being woken, perhaps through its previous waker.
            return waker.wake_by_ref();
        }
        let before = {
            let mut place = self.waker.try_lock().expect(ALONE);
            match &*place {
                Some(before) if before.will_wake(waker) => None,
                _ => place.replace(waker.clone()),
            }
        };
        let done = self
            .busy
            .compare_exchange(LEAVING, 0, Ordering::AcqRel, Ordering::Acquire);
        if done.is_err() {
            // A wake came meanwhile.
            let waker = self.waker.try_lock().expect(ALONE).take();
            self.busy.store(0, Ordering::Release);
            waker.inspect(Waker::wake_by_ref);
        }
        drop(before);
    }

    /// Wakes the task, if there is one.
    pub fn wake(&self) {
        if let Some(waker) = self.take() {
            wake(waker);
        }
    }

    /// Takes the waker, for a thread that will wake the task. `None`: there is no task, or one that
    /// another thread wakes.
    pub(crate) fn take(&self) -> Option<Waker> {
        if self.busy.fetch_or(WAKING, Ordering::AcqRel) != 0 {
            return None;
        }
        let waker = self.waker.try_lock().expect(ALONE).take();
        self.busy.fetch_and(!WAKING, Ordering::Release);
        waker
    }
}
