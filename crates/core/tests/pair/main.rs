//! Two endpoints, one clock that the test sets, and a wire that the test can inspect. The tests
//! show every rule of the slot protocol as a sequence of packets.
#![allow(clippy::unwrap_used, reason = "a test says what it expects by failing")]

mod again;
mod backlog;
mod below_one;
mod calls;
mod challenges;
mod declared;
mod drain;
mod echoes;
mod handlers;
mod handles;
mod hostile;
mod inquiries;
mod large;
mod loss;
mod memory;
mod paced;
mod packets;
mod pairs;
mod proofs;
mod quiet;
mod references;
mod regressions;
mod sessions;
mod slow;
mod strays;
