//! The protocol: bytes of requests and answers. All numbers are little endian, and every request
//! begins with the version of the protocol.
//!
//! There are three types of requests: [`OPEN`] asks for the number of a sequence, by its name;
//! [`TAKE`] takes numbers of it; [`STATUS`] asks for the state of the server. `docs/sequencer.md`
//! has the tables for other languages.
//!
//! Invariant: a request that decodes encodes to the same bytes again. Called by `service` and the
//! clients.

pub(crate) mod cursor;
mod figures;
mod format;
mod name;
mod open;
mod status;
mod take;

pub use figures::{Figures, Phase, Progress};
pub use format::{MAX_COUNT, MAX_SEQUENCES, Malformed, OPEN, STATUS, TAKE, VERSION};
pub use name::{BadName, MAX_NAME, Name};
pub use open::{Open, Opened};
pub use status::Status;
pub use take::{Answer, Take};
pub(crate) use take::{Head, Words, halves, numbers_from};

#[cfg(test)]
mod tests;
