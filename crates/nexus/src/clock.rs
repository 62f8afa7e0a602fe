//! The real clock of an endpoint: the time stamp counter if it can be trusted, otherwise the
//! kernel's monotonic clock.
//!
//! Reading the counter costs about 15 ns, half of `Instant::now` (design §12). The counter is
//! calibrated once per process against the monotonic clock; all clocks of the process share the
//! calibration and the origin, so their times can be compared. Invariant: one [`TscClock`] never
//! goes backwards. Called by the event loop (design §3) and by the control thread.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use dunlin_core::{Clock, Nanos};

/// How long the calibration lasts. Its beginning and its end are known to about 30 ns, so the rate
/// is accurate to about 10 parts in a million; round-trip times need far less precision.
const CALIBRATION: Duration = Duration::from_millis(4);

/// The clock of one thread.
#[derive(Clone, Debug)]
pub struct TscClock {
    source: Source,
    last: Nanos,
}

/// The source of the time, and its conversion to nanoseconds since the origin.
#[derive(Clone, Copy, Debug)]
enum Source {
    /// `nanos = (counter - origin) * scale / 2^32`.
    Counter { origin: u64, scale: u64 },
    /// The kernel's clock, for processors whose counter stops or changes its rate.
    Kernel { origin: Instant },
}

impl TscClock {
    /// Makes a clock that shares origin and rate with all other clocks of this process.
    ///
    /// The first call of a process takes a few milliseconds for the calibration.
    pub fn new() -> Self {
        static SOURCE: OnceLock<Source> = OnceLock::new();
        Self {
            source: *SOURCE.get_or_init(calibrate),
            last: Nanos::ZERO,
        }
    }

    /// True if the clock uses the time stamp counter, false if it uses the kernel's clock.
    pub fn uses_counter(&self) -> bool {
        matches!(self.source, Source::Counter { .. })
    }
}

impl Default for TscClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for TscClock {
    #[inline]
    fn now(&mut self) -> Nanos {
        let read = match self.source {
            Source::Counter { origin, scale } => {
                scaled(counter::read().wrapping_sub(origin), scale)
            }
            Source::Kernel { origin } => Nanos::from(origin.elapsed()),
        };
        // If the thread moves between cores, their counters may differ by a few ticks. A counter
        // before the origin would give a huge number, which is refused as well.
        if read > self.last && read.0 < u64::MAX / 2 {
            self.last = read;
        }
        self.last
    }
}

/// Nanoseconds of `ticks`, with `scale` in units of 2⁻³² ns.
#[inline]
#[expect(
    clippy::cast_possible_truncation,
    reason = "584 years of nanoseconds fit into 64 bits"
)]
fn scaled(ticks: u64, scale: u64) -> Nanos {
    Nanos(((u128::from(ticks) * u128::from(scale)) >> 32) as u64)
}

/// Measures the rate of the counter, if the processor promises a constant one.
fn calibrate() -> Source {
    let kernel = Source::Kernel {
        origin: Instant::now(),
    };
    if !counter::is_invariant() {
        return kernel;
    }
    let (start, first) = paired_reading();
    while start.elapsed() < CALIBRATION {
        std::hint::spin_loop();
    }
    let (end, last) = paired_reading();
    let ticks = u128::from(last.wrapping_sub(first));
    let nanos = end.duration_since(start).as_nanos();
    match rate(nanos, ticks) {
        Some(scale) => Source::Counter {
            origin: first,
            scale,
        },
        None => kernel,
    }
}

/// `nanos / ticks` in units of 2⁻³², if it is a plausible rate: 100 MHz to 100 GHz.
fn rate(nanos: u128, ticks: u128) -> Option<u64> {
    let scale = u64::try_from((nanos << 32).checked_div(ticks)?).ok()?;
    let plausible = (1 << 32) / 100..=10 << 32;
    plausible.contains(&scale).then_some(scale)
}

/// Reads both clocks at nearly the same moment: takes the fastest of several tries.
fn paired_reading() -> (Instant, u64) {
    let mut best: Option<(Duration, Instant, u64)> = None;
    for _ in 0..16 {
        let before = Instant::now();
        let ticks = counter::read();
        let took = before.elapsed();
        if best.is_none_or(|(least, ..)| took < least) {
            best = Some((took, before + took / 2, ticks));
        }
    }
    let (_, at, ticks) = best.expect("the loop above ran");
    (at, ticks)
}

#[cfg(target_arch = "x86_64")]
mod counter {
    //! The time stamp counter of x86-64.

    use std::arch::x86_64::{__cpuid, _rdtsc};

    /// The counter now. It is not a barrier: neighbouring instructions may move across it.
    #[inline]
    pub(super) fn read() -> u64 {
        // SAFETY: every x86-64 processor has the instruction. An operating system may forbid it
        // to user programs; Linux does so only on request of the program itself.
        unsafe { _rdtsc() }
    }

    /// Whether the processor promises one rate in all power states (Intel SDM volume 3, 18.17.1).
    pub(super) fn is_invariant() -> bool {
        const EXTENDED: u32 = 0x8000_0000;
        const POWER: u32 = 0x8000_0007;
        __cpuid(EXTENDED).eax >= POWER && __cpuid(POWER).edx & 1 << 8 != 0
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod counter {
    //! Other processors use the kernel's clock.

    #[inline]
    pub(super) fn read() -> u64 {
        0
    }

    pub(super) fn is_invariant() -> bool {
        false
    }
}

#[cfg(test)]
mod tests;
