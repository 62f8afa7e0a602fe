//! Bytes that the device reads in the msgbufs, and the place in the sequence of packets up to which
//! it no longer needs them (rule S12). Devices finish in any order; places advance in order.
//!
//! Invariants: a flag belongs to the device from [`Lent::lend`] until it is 1, and is neither
//! written nor freed here meanwhile. Owned by `transmit`, which keeps the bytes unchanged until
//! [`Lent::done`] has passed their packet.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU8, Ordering};

use dunlin_core::transport::TxSeq;

/// The most packets whose bytes the device may have at a time: as many as a queue has descriptors,
/// of which each such packet takes two.
pub(crate) const MOST: usize = 512;

/// Packets whose bytes are lent, oldest first.
#[derive(Debug)]
pub(crate) struct Lent {
    /// One for each packet, in turn: 1 when the device no longer needs its bytes.
    flags: Box<[AtomicU8]>,
    /// The places of the packets in the sequence, and the flag of the oldest.
    places: VecDeque<u64>,
    oldest: usize,
}

impl Lent {
    pub(crate) fn new() -> Self {
        Self {
            flags: (0..MOST).map(|_| AtomicU8::new(1)).collect(),
            places: VecDeque::with_capacity(MOST),
            oldest: 0,
        }
    }

    /// Whether the device has bytes.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Whether another packet may be lent. If too many seem to be lent, first collects those that
    /// came back.
    pub(crate) fn has_room(&mut self) -> bool {
        if self.places.len() == MOST {
            self.collect();
        }
        self.places.len() < MOST
    }

    /// Notes that the device gets the packet at this place, which is at or after all earlier
    /// places. Returns the flag that the device sets. There must be room.
    pub(crate) fn lend(&mut self, place: u64) -> &AtomicU8 {
        debug_assert!(self.places.len() < MOST, "the caller looks for room");
        let flag = &self.flags[(self.oldest + self.places.len()) % MOST];
        self.places.push_back(place);
        flag.store(0, Ordering::Relaxed);
        flag
    }

    /// The place up to which the device no longer needs bytes; `given` if it has none.
    #[inline]
    pub(crate) fn done(&mut self, given: TxSeq) -> TxSeq {
        if self.is_empty() {
            return given;
        }
        self.collect();
        self.places.front().map_or(given, |place| TxSeq(*place))
    }

    /// Forgets the oldest packets whose bytes are back.
    #[cold]
    fn collect(&mut self) {
        while !self.places.is_empty() && self.flags[self.oldest].load(Ordering::Acquire) == 1 {
            self.places.pop_front();
            self.oldest = (self.oldest + 1) % MOST;
        }
    }
}

impl Drop for Lent {
    /// The device may still write to flags that it has not set, so the memory of these is never
    /// freed.
    fn drop(&mut self) {
        self.collect();
        if !self.is_empty() {
            std::mem::forget(std::mem::take(&mut self.flags));
        }
    }
}

#[cfg(test)]
mod tests;
