//! Channels over endpoints: the run of a seed in which clients drive `dunlin_channel`. Their
//! servers crash, stop, drain, restart as another process, refuse, answer slowly and leave the list
//! of addresses; the network loses, duplicates and delays frames.
//!
//! | file | what it owns |
//! |---|---|
//! | `plan.rs` | the decisions of a seed |
//! | `ledger.rs` | every call with its runs and its end, and the laws for them |
//! | `shares.rs` | the laws of shares; `calm.rs` plans the runs that judge them |
//! | `desk.rs` | requests of the clients to the stage: sessions, look-ups |
//! | `client.rs`, `server.rs` | the processes |
//! | `stage.rs`, `faults.rs` | the control plane and the faults, in place of a nexus |
//! | `run.rs` | the run of a seed |
//! | `bug.rs` | the planted bugs |
//! | `drill.rs` | repeated drains under load |
//! | `script.rs` | a run whose servers, calls and faults a program names |
//!
//! The stage decides when sessions begin and end; `cluster` tests the handshake. The endpoint
//! itself handles requests, answers, deadlines and cancellations.

mod bug;
mod calm;
mod client;
mod desk;
mod drill;
mod faults;
mod ledger;
mod plan;
mod run;
mod script;
mod server;
mod shares;
mod stage;

#[cfg(feature = "mutants")]
pub use bug::Mutant;
pub use drill::{Drains, Drill, run_drains};
pub use dunlin_channel::{Config, Counters, Pick};
pub use ledger::Tally;
pub use run::{Failure, Options, Report, run_seed};
pub use script::{Answers, Played, Script, Strike, What, play};
pub use shares::Judged;
