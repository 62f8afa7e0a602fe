//! The memcached front end of the key-value service: sockets on the thread of a partition
//! (design §15).
//!
//! A [`Door`] is a listener at a [`DoorAddress`]. A [`Front`] has the doors and clients of one
//! thread, and [`Front::drive`] runs them together with the endpoint that serves the native
//! clients. Both use one table, which the endpoint's state, a [`Desk`], owns. A [`Hall`] has the
//! facts of the process. With several threads, each has a front. A client belongs to one of them,
//! and its commands on keys of other partitions go to those in bursts, over sessions within the
//! process.
//!
//! The endpoint has priority: a thread polls sockets after 32 iterations of the endpoint, or after
//! eight without packets, and gives one client one turn between two iterations. If both are idle,
//! the thread waits in one `epoll` that has the sockets and the endpoint's descriptor. So a native
//! request costs no system call for sockets, and no client waits for another one's values.
//!
//! [`Connection`](dunlin_memcached::Connection) bounds the memory of a client; each thread has one
//! buffer into which it reads sockets.
//!
//! | file | what it owns |
//! |---|---|
//! | `door.rs` | places and their listeners |
//! | `stream.rs` | a socket of either kind |
//! | `client.rs` | a client: its socket and its connection |
//! | `front.rs` | clients of one thread: readiness, turns, limits |
//! | `drive.rs` | the loop of the thread |
//! | `ticker.rs` | a tick that ends a wait for sockets |
//! | `hall.rs` | limits and facts of all threads |
//! | `floor.rs` | the memory for incomplete commands, and the line of clients that wait for it |
//! | `share.rs` | a client's part of that memory, and its stand in the line |
//! | `lanes.rs` | errands to the partitions of other threads, and their answers |
//! | `desk.rs` | the endpoint's state: the table and memcached's figures |

#![forbid(unsafe_code)]

mod client;
mod desk;
mod door;
mod drive;
mod floor;
mod front;
mod hall;
mod lanes;
mod share;
mod stream;
mod ticker;

pub use desk::{Desk, serve};
pub use door::{Door, DoorAddress, DoorError};
pub use dunlin_store::Seconds;
pub use front::Front;
pub use hall::{Hall, Options};
pub use lanes::LEAST_MESSAGE;
