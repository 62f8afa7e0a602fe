//! The protocol: bytes of requests and answers. All numbers are little endian, and every request
//! begins with the version of the protocol.
//!
//! There are two types of requests: [`KEYED`] is one operation on one key, of any kind, so that a
//! burst of gets and puts is one batch; [`SCAN`] reads a range. `docs/index.md` has the tables for
//! other languages.
//!
//! Invariant: a request that decodes encodes to the same bytes again. Called by `service` and
//! `client`.

mod cursor;
mod format;
mod keyed;
mod scan;

pub use format::{KEYED, MAX_LIMIT, MAX_VALUE, Malformed, SCAN, SCAN_ROOM, Status, VERSION};
pub use keyed::{Answer, Request};
pub(crate) use scan::Page;
pub use scan::{Scan, ScanAnswer, ScanItem, What};

#[cfg(test)]
mod tests;
