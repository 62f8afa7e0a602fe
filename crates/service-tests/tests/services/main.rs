//! Services as their clients see them, over endpoints of a nexus and over shared memory.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod index;
mod kv;
mod sequencer;
