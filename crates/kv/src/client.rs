//! The client, as a state machine without input and output of its own: it begins operations, takes
//! the ends of its calls, and asks for sessions with endpoints. The owner of an endpoint drives it
//! ([`Client::on_done`], [`Client::on_session`], [`Client::on_time`], [`Client::wish`]);
//! `Connection` does so for a nexus, and the simulator for its hosts.
//!
//! Invariants: each operation that was begun has exactly one end; a write is sent again only if the
//! server cannot have run it; the client sends nothing else over a session before the server's map
//! has come over it, and each request carries the map's tag.
//!
//! | file | what it owns |
//! |---|---|
//! | `machine.rs` | the client's state, and the methods that its owner calls |
//! | `options.rs` | options, and the names of operations |
//! | `lanes.rs` | sessions: wishes, greetings, pauses after failures |
//! | `calls.rs` | the operations under way, in one table |
//! | `begin.rs` | from an operation to a call |
//! | `send.rs` | calls that leave, or wait for a session |
//! | `receive.rs` | ends of calls: results, repeats, further slices |
//! | `multi.rs`, `gather.rs` | gets of many keys, over several partitions |
//! | `end.rs` | results, as the program gets them |

mod begin;
mod calls;
mod end;
mod gather;
mod lanes;
mod machine;
mod multi;
mod options;
mod receive;
mod send;

#[cfg(feature = "hub")]
pub(crate) use begin::{check, room_for};
pub(crate) use calls::{MAX_CLIENTS, client_of};
pub use end::{End, Found, Item, Reply};
pub(crate) use lanes::LinkState;
pub use machine::Client;
#[cfg(feature = "mutants")]
pub use options::Mutant;
pub use options::{Options, Token};
