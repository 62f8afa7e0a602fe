//! What a running process shows of itself (design §11): counters, histograms and sessions of its
//! endpoints in a memory file, which other programs of the same user read without asking it.
//!
//! | file | what it owns |
//! |---|---|
//! | `layout.rs` | where what lies in the file, and the text in it that says so |
//! | `page.rs` | the side that writes: the file of a nexus, one block for each endpoint |
//! | `publish.rs` | what an endpoint writes into its block, and when |
//! | `place.rs` | where the other endpoint of a session is, as words |
//! | `tap.rs`, `trace.rs` | the ring of packets in the same file: who writes, who reads |
//! | `snapshot.rs` | the side that reads: bytes of anyone's file, checked |
//! | `remote.rs` | the same from another host |
//! | `find.rs` | the files of the processes of this host |
//!
//! Nothing is on the data path but a comparison in each iteration of an endpoint. Why it is a
//! memory file is in `docs/decisions/insight.md`.

mod find;
mod layout;
pub(crate) mod page;
pub(crate) mod place;
pub(crate) mod publish;
mod remote;
mod snapshot;
mod tap;
mod trace;

pub use find::{FindError, Found, all, of_process};
pub use place::Place;
pub use remote::Remote;
pub use snapshot::{Endpoint, Group, Histogram, ReadError, SessionRow, Snapshot, Source, Values};
pub use trace::{Packet, Trace, TraceError};
