//! The commands of `dunlin` as a user runs them. All tests are in one program, because each program
//! of tests compiles its endpoints again.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod endpoints;
#[cfg(feature = "index")]
mod index;
#[cfg(feature = "kv")]
mod kv;
#[cfg(feature = "kv")]
mod memcached;
mod program;
#[cfg(feature = "replica")]
mod replica;
#[cfg(feature = "sequencer")]
mod sequencer;
