//! A key-value store on several replicas.

#![forbid(unsafe_code)]

mod client;
mod lanes;
mod log;
mod machine;
mod node;
mod options;
mod replica;
mod service;
mod wire;

pub use client::{Change, Client, ClientOptions, End, Error, Token};
pub use log::Log;
pub use node::{Node, Output};
#[cfg(feature = "mutants")]
pub use options::Mutant;
pub use options::Options;
pub use replica::{Replica, SeatError};
pub use service::{Host, STRANGER, TAKEN, serve};

pub use wire::{
    Answer, BOOTSTRAP, MAX_ADDRESS, MAX_KEY, MAX_MEMBERS, MAX_VALUE, Malformed, Member, Members,
    MembersError, Name, OPERATE, Operation, PARCEL, Parcel, Request, Role, STATUS, Status, VERSION,
    WINDOW,
};
