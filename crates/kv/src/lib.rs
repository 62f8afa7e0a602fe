//! A key-value service over Dunlin: MICA's tables behind HERD's interface (HERD §4), over any
//! transport.
//!
//! A server has partitions. Each belongs to one thread and its endpoint, which share nothing with
//! the others; [`serve`] registers a [`Partition`]'s handlers. A [`Client`] fetches the [`Map`] of
//! the partitions when it connects, and sends each operation to the endpoint that has the key.
//!
//! | file | what it owns |
//! |---|---|
//! | `wire.rs` | the bytes of requests and answers |
//! | `partition.rs` | one table, and the operations on it |
//! | `service.rs` | handlers of an endpoint |
//! | `client.rs` | the client as a machine, driven by the owner of an endpoint |
//! | `fleet.rs` | the client of several servers, as a machine |
//! | `connection.rs` | a client that blocks, over an endpoint of a nexus (feature `nexus`) |
//! | `connections.rs` | the same for several servers |
//! | `directory.rs` | the names of servers, and their addresses |
//! | `channels.rs` | an async client of several servers, over channels (feature `hub`) |
//! | `dump.rs` | files of items, as lines |
//! | `check.rs` | properties that hold for any bytes |
//!
//! Only the clients of the features `nexus` and `hub` know a transport or a clock. The simulator
//! runs all the other code.

#![forbid(unsafe_code)]

#[cfg(feature = "hub")]
mod channels;
#[cfg(any(test, fuzzing, feature = "check"))]
pub mod check;
mod client;
#[cfg(feature = "nexus")]
mod connection;
#[cfg(feature = "nexus")]
mod connections;
#[cfg(feature = "nexus")]
mod directory;
pub mod dump;
mod error;
mod fleet;
mod partition;
mod service;
mod wire;

#[cfg(feature = "hub")]
pub use channels::Channels;
#[cfg(feature = "mutants")]
pub use client::Mutant;
pub use client::{Client, End, Found, Item, Options, Reply, Token};
#[cfg(feature = "nexus")]
pub use connection::{Connection, ConnectionError};
#[cfg(feature = "nexus")]
pub use connections::Connections;
pub use dunlin_channel::{AddressView as ServerView, Backoff, Retry, State as ServerState};
pub use error::Error;
pub use fleet::{Fleet, FleetEnd, FleetOptions, Ring, ServerError, ServerId, WhenDown, Wish};
pub use partition::Partition;
pub use service::{Host, serve, serve_singly};
pub use wire::{
    Answer, COUNTERS, Figures, FoundItem, GAUGES, HotKeys, KEYED, KeyPlace, Keys, MAP, MAX_KEYS,
    MAX_PARTITIONS, MULTI, Malformed, Map, MapError, Records, Request, Scanned, Status, Store,
    VERSION, WHOLE, Whole,
};

/// Names of the table that programs need for a server and for writes.
pub mod store {
    pub use dunlin_store::{
        Config, Delta, HUGE_PAGE, MAX_KEY, MAX_VALUE, MIN_MEMORY, Mode, Pages, Region, Seed,
        SizeError, Table, Verb, route,
    };
}
