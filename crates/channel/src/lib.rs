//! A client that survives failures, as a state machine without input or output: addresses that come
//! and go, picking, repeats within a budget, hedges, deadlines, drain.
//!
//! [`Machine`] is that state machine. Its driver sends requests over sessions, reports events with
//! their times, and carries out the [`Action`]s that the machine returns. The machine never sees a
//! message. With the same calls and the same seed, it takes the same actions.
//!
//! [`Trunks`] is a second one, for the sessions that several channels share: a link of a machine is
//! a member of a trunk, and the trunk decides which member's request goes next, and when a session
//! opens and ends.
//!
//! Invariants:
//! - A call ends exactly once, unless it is cancelled; then the driver gets no end.
//! - A call that is not idempotent is repeated only if it provably has not run (`repeat.rs`).
//! - An attempt counts as outstanding at its server from its [`Action::Send`] until the driver has
//!   reported its end, even if its call has ended before.
//! - Once the numbers of calls, links and addresses have stopped growing, a call allocates nothing.
#![forbid(unsafe_code)]

mod address;
mod addresses;
mod backoff;
mod budget;
mod call;
mod config;
mod counters;
mod fault;
mod handle;
mod key;
mod lookups;
mod machine;
#[cfg(feature = "mutants")]
pub mod mutant;
mod pace;
mod pick;
mod queue;
mod repeat;
mod repeats;
mod slab;
mod timers;
mod trunk;
mod trunks;
mod types;

pub use backoff::Backoff;
pub use config::{Config, MAX_ATTEMPTS, Retry};
pub use counters::Counters;
pub use fault::Fault;
pub use handle::{AddressId, AttemptId, CallId, LinkId};
pub use key::key_of;
pub use machine::Machine;
pub use pick::{Pick, seed_of, weight};
pub use repeats::{Failures, Repeats};
pub use trunk::{Destination, Facts, Member, Said};
pub use trunks::{Loss, Sessions, TrunkId, Trunks};
pub use types::{
    Action, AddressView, CallEnd, Failure, Full, Opened, Outcome, Reason, State, Terms, Why,
};
