//! memcached's text and meta protocols over the table of the key-value service, without sockets,
//! threads or a clock (design §15).
//!
//! A [`Connection`] takes the client's bytes, in pieces of any size, and produces the bytes to send
//! back. It turns each command into an [`Operation`], and runs the operation at once on the
//! [`Partition`] of its [`Server`]. If another partition has the key, the command is an [`Errand`],
//! which the connection's owner takes there; the connection keeps answers in order. The memory of a
//! connection is bounded: [`Connection::room`] returns how many bytes it still takes.
//!
//! ```
//! use dunlin_memcached::{Alone, Connection, Process, Wants};
//! use dunlin_store::{Config, Mode, Region, Seconds, Seed, Table};
//!
//! let config = Config { mode: Mode::Cache, seed: Seed::new([17, 4]), first_version: 1 };
//! let table = Table::new(Region::new(1 << 20)?, config)?;
//! let mut server = Alone::new(table, Process::default());
//! let mut connection = Connection::new(None);
//! connection.receive(b"set name 0 0 6\r\ndunlin\r\nget name\r\n");
//! assert_eq!(connection.run(&mut server, Seconds(1_000_000)), Wants::Input);
//! assert_eq!(connection.output(), b"STORED\r\nVALUE name 0 6\r\ndunlin\r\nEND\r\n");
//! connection.sent(connection.output().len());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! `docs/memcached.md` lists the answers that differ from memcached 1.6.18.

#![forbid(unsafe_code)]

mod base64;
mod binary;
#[cfg(any(test, fuzzing, feature = "check"))]
pub mod check;
mod command;
mod connection;
mod errand;
mod expiry;
mod figures;
mod limits;
mod meta;
mod number;
mod operation;
mod partition;
mod render;
mod report;
mod server;
mod users;
mod words;

pub use base64::encode as encode_base64;
pub use connection::{Connection, Wants};
pub use errand::{BurstRun, Errand, Malformed, answers};
pub use figures::Figures;
pub use limits::{INPUT_MARK, MAX_KEYS_LINE, MAX_LINE, MAX_TURN, MAX_WAITING, OUTPUT_MARK};
pub use operation::{
    Answer, Count, CountError, Counted, Emptying, Expiry, Found, Look, Operation, OperationTicket,
    Step, Steps, Store, Written,
};
pub use partition::{Ledger, Partition};
pub use report::{ConnectionFacts, Process, Report};
pub use server::{Alone, Server, Standing};
pub use users::{Users, UsersError};
