//! The conformance suite: the behaviour that every transport must have (design §12).
//!
//! `suite` and `waking` hold the tests, generic over a [`harness::Harness`]; a transport joins by
//! implementing it and calling [`suite::run_all`].
#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod auto;
mod harness;
mod lanes;
mod shm;
mod suite;
mod udp;
mod waking;
