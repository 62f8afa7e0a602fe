//! Rare orders for an endpoint's thread: to open or close a channel, or to use the addresses that a
//! look-up has found. They wait in a list with a lock; calls go through the mailbox.

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
    /// A channel has neither a handle nor a call left.
    Close(u32),
    /// The addresses that a look-up of one of a channel's sources has found; `None`: it has found
    /// none.
    Names(u32, usize, Option<Vec<String>>),
    /// The addresses that the look-up of a name has found, for all channels that asked for it.
    Name(Arc<str>, Option<Vec<String>>),
    /// A task waits for a change of a channel's state, until this time.
    Wait(u32, Nanos),
    /// A call of a channel has ended at its deadline, before it was posted.
    Late(u32),
    /// The thread ends.
    Stop,
    /// The thread must panic, as if it had met a bug of ours.
    #[cfg(test)]
    Panic,
}

#[derive(Debug, Default)]
pub(crate) struct Orders {
    list: Mutex<List>,
    /// True if there may be orders. If it is false, the thread need not take the lock.
    any: AtomicBool,
    pub(crate) doorbell: Doorbell,
}

#[derive(Debug, Default)]
struct List {
    orders: Vec<Order>,
    /// The thread has ended, and takes no more orders.
    is_closed: bool,
}

/// Orders that were taken. Dropping it refuses those that are left.
pub(crate) struct Taken(std::vec::IntoIter<Order>);

/// The bell of an endpoint, once the endpoint exists.
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
        // Cleared before the list is read: an order that comes in between sets it again.
        self.any.store(false, Ordering::SeqCst);
        let orders = std::mem::take(&mut self.lock().orders);
        Taken(orders.into_iter())
    }

    /// Refuses the orders in the list and later ones, because the thread ends.
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
    /// Refuses an order, because the thread has ended: closes a channel that should be opened, and
    /// ignores other orders.
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
