//! Queues of a device with the packets of one endpoint each, which the device puts there by a rule
//! (rte_flow). The endpoint then shares its queue with no other.
//!
//! Invariants: a queue has one owner at a time, and its rule ends before it is free. While the
//! owner does not poll, the thread that keeps the device looks at the queue. A packet that is left
//! there after the rule has ended goes through an inbox. Owned by `port`.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::device::{Rule, RxQueue};

/// The queues of a device that rules may fill.
#[derive(Debug)]
pub(crate) struct Rules(Vec<Ruled>);

/// A queue.
#[derive(Debug)]
struct Ruled {
    rx: Mutex<RxQueue>,
    is_taken: AtomicBool,
    /// Whether the owner has polled since the keeper last looked.
    is_polled: AtomicBool,
}

/// The queue of an endpoint. The endpoint leaves it when this is dropped.
#[derive(Debug)]
pub(crate) struct Own {
    /// `None` once the rule has ended.
    rule: Option<Rule>,
    queue: &'static Ruled,
}

impl Rules {
    /// No rules yet.
    pub(crate) fn new(queues: Vec<RxQueue>) -> Self {
        let ruled = |rx| Ruled {
            rx: Mutex::new(rx),
            is_taken: AtomicBool::new(false),
            is_polled: AtomicBool::new(false),
        };
        Self(queues.into_iter().map(ruled).collect())
    }

    /// Gives an endpoint a queue of its own. `None` if the device refuses the rule, or if other
    /// endpoints have all queues.
    pub(crate) fn take(&'static self, to: SocketAddr) -> Option<Own> {
        let is_free = |queue: &&Ruled| !queue.is_taken.swap(true, Ordering::Acquire);
        let queue = self.0.iter().find(is_free)?;
        let rx = queue.rx.lock().unwrap_or_else(PoisonError::into_inner);
        let rule = rx.steer(to);
        drop(rx);
        let own = Own { rule, queue };
        own.rule.is_some().then_some(own)
    }

    /// All queues.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Mutex<RxQueue>> {
        self.0.iter().map(|queue| &queue.rx)
    }

    /// Each queue, and whether its owner has polled it since the last call.
    pub(crate) fn looks(&self) -> impl Iterator<Item = (&Mutex<RxQueue>, bool)> {
        let look = |queue: &Ruled| queue.is_polled.swap(false, Ordering::Relaxed);
        self.0.iter().map(move |queue| (&queue.rx, look(queue)))
    }

    /// Whether the device has queues for rules.
    pub(crate) fn has_queues(&self) -> bool {
        !self.0.is_empty()
    }
}

impl Own {
    /// Returns the queue, and notes that the owner looks at it now.
    #[inline]
    pub(crate) fn poll(&self) -> &'static Mutex<RxQueue> {
        if !self.queue.is_polled.load(Ordering::Relaxed) {
            self.queue.is_polled.store(true, Ordering::Relaxed);
        }
        &self.queue.rx
    }

    /// Notes that the owner will sleep, so that the keeper looks soon.
    pub(crate) fn on_sleep(&self) {
        self.queue.is_polled.store(false, Ordering::Relaxed);
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        self.rule = None;
        self.on_sleep();
        self.queue.is_taken.store(false, Ordering::Release);
    }
}

#[cfg(test)]
pub(crate) mod tests;
