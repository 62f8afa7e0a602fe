//! A sequencer over Dunlin: 64-bit numbers that increase and are never given twice, in sequences
//! with names (RDMA §4.2), over any transport.
//!
//! A server keeps its reservations in a directory; [`serve`] registers the handlers of its
//! [`Desk`]. A [`Client`] takes numbers, finds the server that serves now, and repeats failed
//! requests: a number that is lost in transit only leaves a gap.
//!
//! | file | what it owns |
//! |---|---|
//! | `wire.rs` | the bytes of requests and answers |
//! | `machine.rs` | numbers, reservations and the lease, as a machine |
//! | `state.rs` | the bytes on the disk |
//! | `disk.rs` | the disk behind a trait, and the procedures on it |
//! | `desk.rs`, `service.rs` | requests that wait; handlers of an endpoint |
//! | `client.rs` | the client as a machine, driven by the owner of an endpoint |
//! | `keeper.rs` | the thread for the disk, and the server's loop (feature `nexus`) |
//! | `connection.rs` | a client that blocks, over an endpoint of a nexus (feature `nexus`) |
//! | `futures.rs` | a client for futures (feature `local`) |
//! | `disk/replicated.rs` | a replicated store in place of a directory (feature `replica`) |
//!
//! Only the files of those features and `disk/files.rs` know a transport, a clock or a file. The
//! simulator runs all the others.

#![forbid(unsafe_code)]

#[cfg(any(test, fuzzing, feature = "check"))]
pub mod check;
mod client;
#[cfg(feature = "nexus")]
mod connection;
mod desk;
mod disk;
mod error;
#[cfg(feature = "local")]
mod futures;
#[cfg(feature = "nexus")]
mod keeper;
mod machine;
mod service;
mod state;
mod wire;

pub use client::{Client, ClientOptions, End, Token};
#[cfg(feature = "nexus")]
pub use connection::{Connection, ConnectionError, figures};
pub use desk::{Desk, perform, take_directory};
#[cfg(feature = "nexus")]
pub use disk::Files;
pub use disk::{Claim, ClaimError, Disk, Job, Outcome, Taking, Unchanged};
#[cfg(feature = "replica")]
pub use disk::{Replicated, StoreCalls};
pub use error::Error;
#[cfg(feature = "local")]
pub use futures::Sequence;
#[cfg(feature = "nexus")]
pub use keeper::Keeper;
#[cfg(feature = "mutants")]
pub use machine::Mutant;
pub use machine::{Ending, Options};
pub use service::{Host, serve};
pub use state::{Damage, FORMAT};
pub use wire::{
    Answer, BadName, Figures, MAX_COUNT, MAX_NAME, MAX_SEQUENCES, Malformed, Name, OPEN, Open,
    Opened, Phase, Progress, STATUS, Status, TAKE, Take, VERSION,
};
