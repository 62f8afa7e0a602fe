//! The atomics of the lock-free parts: those of the standard library, or loom's when its model
//! checker runs them (`RUSTFLAGS="--cfg loom"`).

#[cfg(loom)]
pub(super) use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
#[cfg(not(loom))]
pub(super) use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
