//! The table: the calls of its users, one file for each kind. `body.rs` has the steps that they
//! share.
//!
//! The modes differ only in how an item gets its memory (`room.rs`) and gives it back; no other
//! file checks the mode.

#[cfg(test)]
mod audit;
mod batch;
mod body;
mod counter;
mod departure;
mod hot;
mod joining;
mod key;
mod pending;
mod read;
mod rewrite;
mod room;
mod scan;
mod stats;
mod sweep;
mod write;
mod writing;

pub use batch::ones;
pub use body::{SizeError, Table};
pub use counter::{CounterError, Delta};
pub use departure::{Departure, Reason};
pub use hot::HOT_KEYS;
pub use key::Key;
pub use pending::Writing;
pub use read::Item;
pub use scan::Cursor;
pub use stats::Stats;
pub use sweep::Swept;
pub use write::{DeleteError, Verb, Write, WriteError};

#[cfg(test)]
mod tests;
