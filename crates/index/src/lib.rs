//! An ordered index over Dunlin: a tree in memory (eRPC §7.2), over any transport.
//!
//! All endpoints of a server share one [`Index`]. [`serve`] registers its handlers: gets and writes
//! run in the dispatch threads, and scans, which may take long, in workers. A [`Client`] encodes
//! requests and reads answers; a `Connection` blocks.
//!
//! | file | what it owns |
//! |---|---|
//! | `index.rs` | the operations on the items |
//! | `trees.rs` | the trees that have the items |
//! | `long.rs` | keys that are too long for a node of a tree |
//! | `value.rs` | values, as the trees keep them |
//! | `values.rs` | long values |
//! | `range.rs` | parts of the keys, and places at which scans continue |
//! | `wire.rs` | the bytes of requests and answers |
//! | `service.rs` | handlers of an endpoint |
//! | `client.rs` | calls of a client, driven by the owner of an endpoint |
//! | `connection.rs` | a client that blocks, over an endpoint of a nexus (feature `nexus`) |
//! | `snapshot.rs` | files with all items |
//! | `check.rs` | properties that hold for any bytes |
//!
//! Only `connection.rs` knows a transport or a clock.

#![forbid(unsafe_code)]

#[cfg(any(test, fuzzing, feature = "check"))]
pub mod check;
mod client;
#[cfg(feature = "nexus")]
mod connection;
mod error;
mod index;
mod long;
mod range;
mod service;
pub mod snapshot;
mod trees;
mod value;
mod values;
mod wire;

pub use client::{Client, End, Token};
#[cfg(feature = "nexus")]
pub use connection::{Connection, ConnectionError, Cursor};
pub use error::Error;
#[cfg(feature = "mutants")]
pub use index::Mutant;
pub use index::{Index, Total};
pub use range::{Direction, MAX_KEY, Range, Start};
pub use service::{Host, Register, serve, serve_in_dispatch};
pub use wire::{
    Answer, KEYED, MAX_LIMIT, MAX_VALUE, Malformed, Request, SCAN, SCAN_ROOM, Scan, ScanAnswer,
    ScanItem, Status, VERSION, What,
};
