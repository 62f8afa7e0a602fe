//! Orders for an endpoint's thread that are rare: channels that open and close, names that were
//! looked up. They wait in a list with a lock; calls take the mailbox.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
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
    /// The thread panics, as one of our own mistakes would make it.
    #[cfg(test)]
    Panic,
}

#[derive(Debug, Default)]
pub(crate) struct Orders {
    list: Mutex<List>,
    /// There may be some: spares the lock.
    any: AtomicBool,
    pub(crate) doorbell: Doorbell,
}

#[derive(Debug, Default)]
struct List {
    orders: Vec<Order>,
    /// The thread has ended, and takes no orders any more.
    is_closed: bool,
}

/// Orders that were taken; dropped, the rest of them is refused.
pub(crate) struct Taken(std::vec::IntoIter<Order>);

/// The bell of an endpoint, once that is made.
#[derive(Clone, Debug, Default)]
pub(crate) struct Doorbell(Arc<OnceLock<Waker>>);

impl Orders {
    pub(crate) fn send(&self, order: Order) {
        let mut list = self.lock();
        if list.is_closed {
            drop(list);
            return order.refuse();
        }
        list.orders.push(order);
        drop(list);
        self.any.store(true, Ordering::Release);
        self.doorbell.ring();
    }

    pub(crate) fn any(&self) -> bool {
        self.any.load(Ordering::Acquire)
    }

    pub(crate) fn take(&self) -> Taken {
        // Cleared before the list is read: an order that comes between both is seen again.
        self.any.store(false, Ordering::SeqCst);
        let orders = std::mem::take(&mut self.lock().orders);
        Taken(orders.into_iter())
    }

    /// The thread ends: these orders and later ones are refused.
    pub(crate) fn close(&self) {
        self.lock().is_closed = true;
        drop(self.take());
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.lock().is_closed
    }

    fn lock(&self) -> MutexGuard<'_, List> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Order {
    /// Without a thread a channel that opens is closed at once; the other orders have no effect.
    fn refuse(self) {
        if let Self::Open(_, _, board) = self {
            board.close();
        }
    }
}

impl Iterator for Taken {
    type Item = Order;

    fn next(&mut self) -> Option<Order> {
        self.0.next()
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.for_each(Order::refuse);
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
