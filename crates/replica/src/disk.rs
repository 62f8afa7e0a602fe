//! The disk of a replica (feature `disk`): a directory with the log and the items, on TiKV's
//! `raft-engine`.
//!
//! | file | what it owns |
//! |---|---|
//! | `open.rs` | the start of a replica from its directory |
//! | `folder.rs` | a directory: its lock, its format, the replica's number and members |
//! | `newer.rs` | parts that a newer version of this library has written |
//! | `store.rs` | log and items in the engine |
//! | `reading.rs` | reading them at the start |
//! | `chores.rs` | work that no write waits for |
//! | `mark.rs` | the last write that was acknowledged |
//! | `state.rs` | the record that says which of the engine's entries count |
//! | `record.rs` | entries as opaque bytes, for the engine |
//! | `files.rs` | the engine's files, which report a full disk at once |
//! | `ahead.rs` | zeros ahead of the end of a file |
//! | `thread.rs` | the threads that write and do chores |
//! | `backup.rs` | items in one file, and new clusters that begin with them |
//!
//! Called by the owner of a replica; the node knows only `work.rs`.

mod ahead;
mod backup;
mod chores;
mod files;
mod folder;
mod mark;
mod newer;
mod open;
mod reading;
mod record;
mod state;
mod store;
mod thread;

#[cfg(feature = "check")]
pub use ahead::Ahead;
pub use backup::{Backup, BackupError};
pub use folder::DiskError;
pub use newer::NewerPart;
pub use open::{Opened, open};
pub use store::{Full, Limits, Loss, Store};

#[cfg(test)]
mod tests;
