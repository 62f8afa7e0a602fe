//! Shared memory between processes, of which some die, and with peers that write arbitrary values.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod descriptors;
mod endpoint;
mod hostile;
mod lifecycle;
mod passing;
mod processes;
mod references;
mod within;
