//! The reading side: reads the state of a process, on this host or another one, or its packets.
//! Code here trusts no content of a file.

mod find;
mod histogram;
mod remote;
mod snapshot;
mod source;
mod text;
mod trace;

pub use find::{FindError, Found, all, of_process};
pub use histogram::Histogram;
pub use remote::Remote;
pub use snapshot::{Endpoint, Group, SessionRow, Snapshot, Values};
pub use source::{ReadError, Source};
pub use trace::{Packet, Trace, TraceError};
