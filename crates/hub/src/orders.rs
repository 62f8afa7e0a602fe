//! Orders for an endpoint's thread that are rare: channels that open and close, names that were
//! looked up. They wait in a list with a lock; calls take the mailbox.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::Waker;

use dunlin_core::Nanos;

use crate::board::Board;
use crate::plan::Plan;
use dunlin_mailbox::Bell;

#[derive(Debug)]
pub(crate) enum Order {
    /// A channel opens.
    Open(u32, Box<Plan>, Arc<Board>),
    /// A channel has no handle and no call any more.
    Close(u32),
    /// The addresses of a channel's names; `None`: the look-up has failed.
    Names(u32, Option<Vec<String>>),
    /// A task waits for a channel until then.
    Wait(u32, Nanos),
    /// The thread ends.
    Stop,
}

#[derive(Debug, Default)]
pub(crate) struct Orders {
    list: Mutex<Vec<Order>>,
    /// There may be some: spares the lock.
    any: AtomicBool,
    pub(crate) doorbell: Doorbell,
}

/// The bell of an endpoint, once that is made.
#[derive(Clone, Debug, Default)]
pub(crate) struct Doorbell(Arc<OnceLock<Waker>>);

impl Orders {
    pub(crate) fn send(&self, order: Order) {
        self.list
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(order);
        self.any.store(true, Ordering::Release);
        self.doorbell.ring();
    }

    pub(crate) fn any(&self) -> bool {
        self.any.load(Ordering::Acquire)
    }

    pub(crate) fn take(&self) -> Vec<Order> {
        // Cleared before the list is read: an order that comes between both is seen again.
        self.any.store(false, Ordering::SeqCst);
        let mut list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *list)
    }
}

impl Doorbell {
    pub(crate) fn set(&self, waker: Waker) {
        let was_empty = self.0.set(waker);
        debug_assert!(was_empty.is_ok(), "an endpoint is made once");
    }
}

impl Bell for Doorbell {
    fn ring(&self) {
        if let Some(waker) = self.0.get() {
            waker.wake_by_ref();
        }
    }
}
