//! Time as an argument. Core reads a clock only through [`Clock`], at the places marked in
//! `endpoint/event_loop.rs`, so the same code runs in simulated time.

use std::ops::{Add, AddAssign, Sub};

/// A point in time, or a span, in nanoseconds. Points count from an origin that the clock chooses
/// and are never compared between processes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Nanos(pub u64);

impl Nanos {
    /// The origin, or an empty span.
    pub const ZERO: Self = Self(0);
    /// Later than any other time: "never".
    pub const MAX: Self = Self(u64::MAX);

    /// `n` microseconds.
    #[inline]
    pub const fn from_micros(n: u64) -> Self {
        Self(n * 1_000)
    }

    /// `n` milliseconds.
    #[inline]
    pub const fn from_millis(n: u64) -> Self {
        Self(n * 1_000_000)
    }

    /// `n` seconds.
    #[inline]
    pub const fn from_secs(n: u64) -> Self {
        Self(n * 1_000_000_000)
    }

    /// The span from `earlier` to `self`; zero if `earlier` is later.
    #[inline]
    #[must_use]
    pub const fn since(self, earlier: Self) -> Self {
        Self(self.0.saturating_sub(earlier.0))
    }

    /// The earlier or shorter of the two.
    #[inline]
    #[must_use]
    pub const fn min(self, other: Self) -> Self {
        if self.0 < other.0 { self } else { other }
    }

    /// The later or longer of the two.
    #[inline]
    #[must_use]
    pub const fn max(self, other: Self) -> Self {
        if self.0 > other.0 { self } else { other }
    }

    /// The span `n` times as long; [`Self::MAX`] if that is too long.
    #[inline]
    #[must_use]
    pub const fn times(self, n: u64) -> Self {
        Self(self.0.saturating_mul(n))
    }

    /// The value for arithmetic that need not be exact.
    #[inline]
    #[must_use]
    pub(crate) fn as_f64(self) -> f64 {
        self.0 as f64
    }
}

impl Add for Nanos {
    type Output = Self;
    /// Saturates, so that "never" stays "never".
    #[inline]
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Nanos {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Nanos {
    type Output = Self;
    /// Saturates at zero.
    #[inline]
    fn sub(self, other: Self) -> Self {
        self.since(other)
    }
}

impl From<std::time::Duration> for Nanos {
    /// Spans beyond 584 years become [`Nanos::MAX`].
    fn from(span: std::time::Duration) -> Self {
        Self(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl From<Nanos> for std::time::Duration {
    fn from(span: Nanos) -> Self {
        Self::from_nanos(span.0)
    }
}

/// The source of an endpoint's time: the time stamp counter, or a simulator.
pub trait Clock {
    /// The time now; never less than the result of an earlier call.
    fn now(&mut self) -> Nanos;
}
