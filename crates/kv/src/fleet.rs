//! A client of several servers, as a state machine without input and output of its own. Each key
//! belongs to one of the listed servers, by a consistent hash of the servers' names, and there to a
//! partition, by the server's own map.
//!
//! The machine of `dunlin_channel` decides which addresses are listed, when names are looked up,
//! and when a server that failed is tried again. Each server has a [`Client`](crate::Client) with
//! its sessions and operations. Compared with a single server, an operation costs only the search
//! for the owner of its key. The owner of an endpoint drives the fleet ([`Fleet::on_done`],
//! [`Fleet::on_session`], [`Fleet::on_time`], [`Fleet::wish`]) like a client.
//!
//! Invariants: each operation that was begun has exactly one end; the owner of a key depends only
//! on the list, not on which servers run, so no key is ever at two servers of one list; an
//! operation for a server that is down ends at once, unless the program wants it to wait.
//!
//! | file | what it owns |
//! |---|---|
//! | `machine.rs` | the fleet's state, and the methods that its owner calls |
//! | `begin.rs` | from an operation to the client of a server |
//! | `ends.rs` | from the ends of clients to the ends of operations |
//! | `server.rs` | one server: its client, and the link that the channel wants |
//! | `servers.rs` | the servers, each at a place that stays while it is used |
//! | `ring.rs` | the owner of a key |
//! | `jobs.rs` | the operations under way, in one table |
//! | `types.rs` | options, wishes, ends and errors |

mod begin;
mod ends;
mod jobs;
mod machine;
mod ring;
mod server;
mod servers;
mod types;

pub use machine::Fleet;
pub use ring::Ring;
pub use types::{FleetEnd, FleetOptions, ServerError, ServerId, WhenDown, Wish};
