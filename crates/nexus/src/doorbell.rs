//! A bell: one thread rings it so that another, which may spin or sleep, fetches something (design
//! §10).
//!
//! The owner calls [`Doorbell::take`] once per iteration, which costs one relaxed load if the bell
//! was not rung. Ringing costs a system call only while the owner sleeps.
//!
//! Invariant (no wake-up is lost): a ringer sets `rung` and then reads `asleep`; an owner that goes
//! to sleep sets `asleep` and then reads `rung`. Both use sequentially consistent operations, so at
//! least one of them sees the other's write.

use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::ffi::EventFd;

/// A flag, and a descriptor that becomes readable when the bell rings for an owner that sleeps.
#[derive(Debug)]
pub(crate) struct Doorbell {
    rung: AtomicBool,
    asleep: AtomicBool,
    event: EventFd,
}

impl Doorbell {
    /// Makes a doorbell that has not been rung, for a thread that is awake.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            rung: AtomicBool::new(false),
            asleep: AtomicBool::new(false),
            event: EventFd::new()?,
        })
    }

    /// Rings for the owner. The object to fetch must already be in its place.
    pub(crate) fn ring(&self) {
        // If an earlier ring has not been taken, the owner is awake or being woken.
        if !self.rung.swap(true, Ordering::SeqCst) && self.asleep.load(Ordering::SeqCst) {
            self.event.signal();
        }
    }

    /// Takes all rings since the last call. True if there were any.
    #[inline]
    pub(crate) fn take(&self) -> bool {
        self.rung.load(Ordering::Relaxed) && self.rung.swap(false, Ordering::SeqCst)
    }

    /// True if the bell was rung and the ring was not taken.
    pub(crate) fn is_rung(&self) -> bool {
        self.rung.load(Ordering::Relaxed)
    }

    /// Announces that the owner will wait for the descriptor.
    ///
    /// Returns false if the bell has been rung: the owner must not wait. In both cases it must call
    /// [`Doorbell::wake`] afterwards.
    pub(crate) fn sleep(&self) -> bool {
        self.asleep.store(true, Ordering::SeqCst);
        !self.rung.load(Ordering::SeqCst)
    }

    /// Ends the state that [`Doorbell::sleep`] began. `signalled`: the descriptor was readable.
    pub(crate) fn wake(&self, signalled: bool) {
        self.asleep.store(false, Ordering::SeqCst);
        if signalled {
            self.event.clear();
        }
    }
}

/// Rings the bell, for callers that know only a waker.
impl std::task::Wake for Doorbell {
    fn wake(self: Arc<Self>) {
        self.ring();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.ring();
    }
}

impl AsRawFd for Doorbell {
    fn as_raw_fd(&self) -> RawFd {
        self.event.as_raw_fd()
    }
}

#[cfg(test)]
mod tests;
