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
    /// The most entries that wait in an inbox.
    pub(crate) frames: usize,
}

impl Shares {
    /// Puts an address into the inbox of the other share that holds it. False if there is none, or
    /// if its inbox is full. An honest kernel completes no frame twice, so it never fills an inbox.
    #[cold]
    fn give(&self, inboxes: &mut [Vec<u64>], giver: usize, addr: u64) -> bool {
        let share = addr.checked_sub(self.start).map(|at| at / self.bytes);
        let share = share.and_then(|share| usize::try_from(share).ok());
        let other = share.filter(|share| *share != giver);
        let inbox = other.and_then(|share| inboxes.get_mut(share));
        match inbox.filter(|inbox| inbox.len() < self.frames) {
            Some(inbox) => inbox.push(addr),
            None => return false,
        }
        true
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

    /// Lets `write` write empty frames into the fill ring, and gives them to the kernel. True if
    /// the kernel takes them only after a system call.
    #[inline]
    pub(crate) fn fill(&self, write: impl FnOnce(&mut Producer<u64>)) -> bool {
        let mut inner = self.lock();
        write(&mut inner.fill);
        inner.fill.publish();
        inner.fill.wants_wakeup()
    }

    /// Takes the completed frames of this share, while they are the `expected` ones, in that order.
    /// Returns their number, and whether other frames wait for [`Self::take_completed`].
    #[inline]
    pub(crate) fn take_expected(&self, share: usize, expected: &[usize]) -> (usize, bool) {
        let inner = &mut *self.lock();
        let completion = &mut inner.completion;
        if !inner.inboxes[share].is_empty() {
            return (0, true);
        }
        completion.available(1);
        let mut taken = 0;
        loop {
            let mut count = 0;
            for (addr, next) in completion.entries().zip(&expected[taken..]) {
                if addr != *next as u64 {
                    break;
                }
                count += 1;
            }
            if count == 0 {
                break;
            }
            completion.advance(count);
            taken += count as usize;
        }
        completion.release();
        (taken, completion.entries().len() > 0)
    }

    /// Passes the completed frames of this share to `take`, which returns false if it does not know
    /// a frame. Returns the number of those that no share knows.
    #[inline]
    pub(crate) fn take_completed(&self, share: usize, mut take: impl FnMut(u64) -> bool) -> u64 {
        let inner = &mut *self.lock();
        let Inner {
            completion,
            shares,
            inboxes,
            ..
        } = inner;
        let mut bad = 0;
        if !inboxes[share].is_empty() {
            let unknown = inboxes[share].drain(..).filter(|addr| !take(*addr));
            bad += unknown.count() as u64;
        }
        completion.available(1);
        // Only the entries that it shows now, however fast the kernel adds others.
        while completion.entries().len() > 0 {
            let mut count = 0;
            for addr in completion.entries() {
                // Most frames belong to the caller.
                if !take(addr) {
                    bad += u64::from(!shares.give(inboxes, share, addr));
                }
                count += 1;
            }
            completion.advance(count);
        }
        completion.release();
        bad
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
