//! The control plane of one process as state machines without input or output (design §9): links to
//! other processes, the handshake of sessions, heartbeats, and the endpoints that get an event when
//! a peer fails.
//!
//! [`Plane`] is the whole control plane. `dunlin-nexus` moves its bytes over sockets, the simulator
//! over simulated links. Both call the same few functions, with the time as an argument, and carry
//! out the [`Action`]s that these return. Descriptors are values of a type `F`, which the plane
//! passes on and never reads. The same calls with the same seed have the same results.
//!
//! Invariants:
//! - A wrong message closes only the connection over which it came (rule C9).
//! - Every table that a remote process can make grow has a limit in [`PlaneConfig`].
//! - Every session about which an endpoint got an event ends with exactly one [`Event::Closed`],
//!   unless the endpoint ended it itself.
#![forbid(unsafe_code)]

mod agenda;
mod attempt;
mod config;
mod handshake;
mod heartbeat;
mod link;
#[cfg(feature = "mutants")]
pub mod mutant;
mod places;
mod plane;
mod proofs;
mod route;
mod secrets;
mod types;

pub use config::{PlaneConfig, PlaneCounters};
pub use handshake::{
    Answer, Completion, HalvesMut, Handshake, MAX_RETRIES, Overdue, Peering, Step, Wish, WrongStage,
};
pub use heartbeat::{Detector, HeartbeatConfig, Secret, Verdict, WrongAck};
pub use places::Origin;
pub use plane::{AddError, Plane};
pub use types::{
    Action, Command, ConnectFailure, ConnectTicket, Event, FailedConnect, Identity, LinkId,
    PeerIdentity, Proving, SessionKey, Side, Target, TransportOffer, TransportOffers,
};
