//! The fill and the completion ring of a queue, which all of its endpoints share.
//!
//! Each endpoint has a share of the frames to send, and the shares lie one after the other in the
//! region. The kernel completes the frames of all endpoints in one ring. The endpoint that reads
//! the ring keeps its own frames, and puts the others into the inboxes of their endpoints.
//!
//! Invariants: one lock guards both rings and the inboxes. An endpoint takes the lock to give
//! frames back after a burst that took packets, and to send when it has no free frame. An inbox
//! holds at most as many entries as its share has frames, so an endpoint that has stopped costs the
//! others nothing. Called by `receive` and `transmit`; made by `queue`.

use std::sync::PoisonError;

use crate::ring::{Consumer, Producer};
use crate::sync::{Mutex, MutexGuard};

/// Where the shares lie in the region, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Shares {
    /// The first byte of the first share.
    pub(crate) start: u64,
    /// Bytes of each share.
    pub(crate) bytes: u64,
    /// Number of shares.
    pub(crate) count: usize,
    /// Most entries that wait in an inbox.
    pub(crate) frames: usize,
}

impl Shares {
    /// Whether this share holds the address.
    #[inline]
    fn has(&self, share: usize, addr: u64) -> bool {
        let start = self.start + share as u64 * self.bytes;
        addr.wrapping_sub(start) < self.bytes
    }

    /// The share that holds this address, if any.
    #[cold]
    fn of(&self, addr: u64) -> Option<usize> {
        let share = addr.checked_sub(self.start)? / self.bytes;
        usize::try_from(share).ok().filter(|it| *it < self.count)
    }
}

/// The two rings, and the inboxes.
#[derive(Debug)]
pub(crate) struct SharedRings {
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    fill: Producer<u64>,
    completion: Consumer<u64>,
    shares: Shares,
    /// For each share, completed frames that its endpoint has not taken yet.
    inboxes: Vec<Vec<u64>>,
}

impl SharedRings {
    /// The rings of a queue with these shares.
    pub(crate) fn new(fill: Producer<u64>, completion: Consumer<u64>, shares: Shares) -> Self {
        let inbox = || Vec::with_capacity(shares.frames);
        let inboxes = (0..shares.count).map(|_| inbox()).collect();
        let inner = Mutex::new(Inner {
            fill,
            completion,
            shares,
            inboxes,
        });
        Self { inner }
    }

    /// Gives the kernel the empty frames that `next` returns, while the fill ring has room. True if
    /// the kernel waits for a system call.
    pub(crate) fn fill(&self, mut next: impl FnMut() -> Option<u64>) -> bool {
        let mut inner = self.lock();
        while inner.fill.room(1) > 0 {
            let Some(addr) = next() else {
                break;
            };
            inner.fill.push(addr);
        }
        inner.fill.publish();
        inner.fill.wants_wakeup()
    }

    /// Passes the completed frames of this share to `take`, and addresses that belong to no share
    /// too.
    pub(crate) fn take_completed(&self, share: usize, mut take: impl FnMut(u64)) {
        let inner = &mut *self.lock();
        inner.inboxes[share].drain(..).for_each(&mut take);
        if inner.completion.available(1) == 0 {
            return;
        }
        while let Some(addr) = inner.completion.pop() {
            // Most frames are the caller's, and a division takes long.
            if inner.shares.has(share, addr) {
                take(addr);
                continue;
            }
            let owner = inner.shares.of(addr);
            match owner.map(|owner| &mut inner.inboxes[owner]) {
                Some(inbox) if inbox.len() < inner.shares.frames => inbox.push(addr),
                // An honest kernel completes no frame twice, so it adds none to a full inbox.
                _ => take(addr),
            }
        }
        inner.completion.release();
    }

    /// Whether the kernel broke the fill ring, and whether it broke the completion ring.
    #[cfg(not(loom))]
    pub(crate) fn broken(&self) -> [bool; 2] {
        let inner = self.lock();
        [inner.fill.is_broken(), inner.completion.is_broken()]
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Code that panics under the lock leaves the rings in a valid state.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(all(test, loom))]
mod loom_tests;
#[cfg(test)]
#[cfg(not(loom))]
mod tests;
