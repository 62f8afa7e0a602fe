//! A key-value store on several replicas, over any transport: TiKV's `raft`, unmodified, with
//! Dunlin's calls as its network (eRPC §7.1).
//!
//! A server's endpoint has a [`Replica`] as its state; [`serve`] registers its handlers. A
//! bootstrap gives three, five or seven replicas their seats in one cluster. A [`Client`] finds the
//! leader, and every write carries the client's name and a number, so that it is applied once.
//! Reads are linearizable and write no log entry. With the log in memory, a write is kept while a
//! majority of the processes is alive. With the log on a disk as well (feature `disk`), an answered
//! write survives the end of all processes.
//!
//! | file | what it owns |
//! |---|---|
//! | `wire.rs` | the bytes of requests, answers, and messages between replicas |
//! | `machine.rs` | the items, and the records by which a repeated write is recognised |
//! | `log.rs` | entries and promises |
//! | `work.rs` | work of a node for its disk, and the disk as a trait |
//! | `disk.rs` | the disk (feature `disk`) |
//! | `node.rs` | Raft, its log and its items, without input and output |
//! | `replica.rs` | a node's seat in a cluster, and its sessions with the others |
//! | `service.rs` | handlers of an endpoint |
//! | `options.rs` | the options of a replica |
//! | `client.rs` | the client as a machine, driven by the owner of an endpoint |
//! | `lanes.rs` | sessions by address, for replicas and clients |
//! | `connection.rs` | a client that blocks, over an endpoint of a nexus (feature `nexus`) |
//! | `driver.rs` | a replica over an endpoint of a nexus (feature `nexus`) |
//!
//! Only the last two know a transport, and only they and the disk's thread read a clock. The
//! simulator runs all the others, with the disk's engine on a simulated disk.

#![forbid(unsafe_code)]

#[cfg(any(test, fuzzing, feature = "check"))]
pub mod check;
mod client;
#[cfg(feature = "nexus")]
mod connection;
#[cfg(feature = "disk")]
mod disk;
#[cfg(feature = "nexus")]
mod driver;
mod lanes;
mod log;
mod machine;
mod node;
mod options;
mod replica;
mod service;
mod wire;
mod work;

pub use client::{Change, Client, ClientOptions, End, Error, Token};
#[cfg(feature = "nexus")]
pub use connection::Connection;
#[cfg(all(feature = "check", feature = "disk"))]
#[doc(hidden)]
pub use disk::Ahead;
#[cfg(feature = "disk")]
pub use disk::{
    Backup, BackupError, DiskError, Full, Limits, Loss, NewerPart, Opened, Store, open,
};
#[cfg(feature = "nexus")]
pub use driver::{AskError, Driver, Inquirer};
pub use log::Log;
pub use node::{Image, Node, Output, Restored};
#[cfg(feature = "mutants")]
pub use options::Mutant;
pub use options::Options;
pub use replica::{Replica, SeatError};
pub use service::{Host, serve};

pub use wire::{
    Answer, BOOTSTRAP, Compare, Event, EventKind, Follower, Found, JOIN, MAX_ADDRESS, MAX_ITEMS,
    MAX_KEY, MAX_LIFETIME, MAX_MEMBERS, MAX_STEPS, MAX_VALUE, Malformed, Member, Members,
    MembersError, Name, Names, OPERATE, ORDER, OTHER_ITEMS, Operation, Order, PARCEL, PIECE,
    Parcel, Part, Piece, Request, Role, Roster, STATUS, STRANGER, Status, Steps, TAKEN, TWIN,
    UNABLE, UNSAVED, VERSION, WINDOW, Write,
};
pub use work::{Disk, DiskFigures, Items, LogWrite, Remains, Saved, Work};
