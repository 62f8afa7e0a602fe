//! Memory-latency hiding for batched look-ups (G-Opt §3).
//!
//! Write a look-up as if for one item: an `async fn` that marks its expensive memory accesses. A
//! [`Batch`] then runs many of them interleaved. At each mark a look-up prefetches, and the next
//! one of the batch continues, so that the misses of all of them overlap:
//!
//! ```
//! async fn chase(next: &[u32], start: u32, hops: u32) -> u32 {
//!     let mut at = start;
//!     for _ in 0..hops {
//!         at = *gopt::load(&next[at as usize]).await;
//!     }
//!     at
//! }
//!
//! let next = [3, 0, 1, 2];
//! let starts = [0, 1, 2, 3, 0];
//! let mut ends = [0; 5];
//! gopt::Batch::<4>::new().map(starts, &mut ends, |start| chase(&next, start, 5));
//! assert_eq!(ends, [3, 0, 1, 2, 3]);
//! ```
//!
//! There is no runtime: the compiler turns the look-up into a state machine, and the batch keeps a
//! fixed number of them (lanes) on its stack and polls them in turn. It allocates nothing and wakes
//! nothing. A lane whose look-up has ended takes the next item, or is not polled again.
//!
//! The crate needs neither `std` nor `alloc`. Its unsafe code is in `lanes.rs` (pinning),
//! `turn.rs` (a waker) and `prefetch.rs` (one instruction); Miri runs the tests of all three.

#![no_std]

#[cfg(test)]
extern crate std;

mod batch;
mod lanes;
mod prefetch;
mod tune;
mod turn;

/// The pages about this crate. Their code blocks are compiled as doc tests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
#[doc = include_str!("../../../docs/gopt.md")]
mod pages {}

pub use batch::{Batch, MAX_WIDTH, WidthError};
pub use prefetch::{
    Hint, Load, LoadMut, Nta, Prefetch, Switch, T0, T1, T2, Write, load, load_mut, prefetch,
    prefetch_now, switch,
};
pub use tune::{ROUNDS, Tuned};
