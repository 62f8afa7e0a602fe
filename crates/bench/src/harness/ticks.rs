//! A clock that is cheap to read: the time stamp counter, if there is one. Each run measures the
//! length of a tick by reading the standard clock at its beginning and its end.

use std::time::{Duration, Instant};

/// A reading of the counter.
#[inline]
pub(crate) fn now() -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: every x86-64 processor has the instruction; it only writes registers.
        unsafe { core::arch::x86_64::_rdtsc() }
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        static ORIGIN: std::sync::LazyLock<Instant> = std::sync::LazyLock::new(Instant::now);
        u64::try_from(ORIGIN.elapsed().as_nanos()).expect("a process runs less than 584 years")
    }
}

/// A stretch of time that is measured with both clocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stretch {
    ticks: u64,
    instant: Instant,
}

impl Stretch {
    /// Begins a stretch now.
    pub(crate) fn begin() -> Self {
        Self {
            ticks: now(),
            instant: Instant::now(),
        }
    }

    /// Time since the beginning.
    pub(crate) fn elapsed(&self) -> Duration {
        self.instant.elapsed()
    }

    /// Nanoseconds per tick, from the beginning to now. Over a few milliseconds, the error is less
    /// than one in a thousand.
    #[expect(
        clippy::cast_precision_loss,
        reason = "a few ticks in 2^53 do not matter"
    )]
    pub(crate) fn ns_per_tick(&self) -> f64 {
        let ticks = now().wrapping_sub(self.ticks).max(1);
        self.elapsed().as_nanos() as f64 / ticks as f64
    }
}
