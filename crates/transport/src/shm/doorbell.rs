//! The doorbell of a receiver: which of its parked rings have packets, and whether it sleeps.
//!
//! There is one per endpoint, in memory that it shares with all of its peers. A peer that finds its
//! ring parked sets its bit here; if the receiver sleeps, the peer also wakes it through the
//! channel's socket. One word summarises 64 words of bits, so a look costs one cache line.
//!
//! Invariants:
//! - A peer sets its bit, then the summary, then reads `sleeping`; the receiver takes the summary
//!   before the bits, and reads the summary after it has set `sleeping`. So a receiver never sleeps
//!   while a bit is set.
//! - A peer can write anything here. At worst it causes needless looks, and delays other peers'
//!   packets until the receiver's next round over its parked rings. Therefore each ring's own
//!   memory, to which only its peer can write, also shows whether the receiver must be woken
//!   (`ring::Parked`).

use super::sync::{AtomicU32, AtomicU64, Ordering, fence};

/// The most bits in a doorbell, and so the most peers of an endpoint.
#[cfg(not(loom))]
#[expect(clippy::cast_possible_truncation, reason = "a small constant")]
pub(super) const MAX_BITS: u32 = WORDS as u32 * 64;

#[cfg(not(loom))]
const WORDS: usize = 64;
#[cfg(loom)]
const WORDS: usize = 2;

/// The memory that the receiver and its peers share. All zeros: the receiver is awake.
#[repr(C)]
#[derive(Debug)]
pub(super) struct Doorbell {
    summary: Line<AtomicU64>,
    sleeping: Line<AtomicU32>,
    bits: Line<[AtomicU64; WORDS]>,
}

/// Aligned to two cache lines, because processors fetch them in pairs.
#[repr(C, align(128))]
#[derive(Debug)]
struct Line<T>(T);

impl Default for Doorbell {
    fn default() -> Self {
        Self {
            summary: Line(AtomicU64::new(0)),
            sleeping: Line(AtomicU32::new(0)),
            bits: Line(std::array::from_fn(|_| AtomicU64::new(0))),
        }
    }
}

impl Doorbell {
    /// Sets a peer's bit. Returns true if the receiver sleeps and must be woken.
    ///
    /// A `bit` that does not exist has no effect; `channel` refuses peers that claim one.
    pub(super) fn ring(&self, bit: u32) -> bool {
        let word = bit as usize / 64;
        let Some(bits) = self.bits.0.get(word) else {
            return false;
        };
        // Release: the thread that takes the bit sees what the peer put into its ring.
        bits.fetch_or(1 << (bit % 64), Ordering::Release);
        self.summary.0.fetch_or(1 << word, Ordering::Release);
        fence(Ordering::SeqCst);
        self.sleeping.0.load(Ordering::Relaxed) != 0
    }

    /// True if some bit may be set.
    #[inline]
    pub(super) fn has_rung(&self) -> bool {
        self.summary.0.load(Ordering::Relaxed) != 0
    }

    /// Takes all bits, in rising order.
    pub(super) fn take(&self, mut each: impl FnMut(u32)) {
        let mut words = self.summary.0.swap(0, Ordering::Acquire);
        while words != 0 {
            let word = words.trailing_zeros();
            words &= words - 1;
            let Some(bits) = self.bits.0.get(word as usize) else {
                return;
            };
            let mut bits = bits.swap(0, Ordering::Acquire);
            while bits != 0 {
                each(word * 64 + bits.trailing_zeros());
                bits &= bits - 1;
            }
        }
    }

    /// Prepares to sleep. Returns false if the receiver must not, because a bit is set.
    #[must_use]
    pub(super) fn fall_asleep(&self) -> bool {
        self.sleeping.0.store(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        !self.has_rung()
    }

    /// Notes that the receiver is awake.
    pub(super) fn wake_up(&self) {
        self.sleeping.0.store(0, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
