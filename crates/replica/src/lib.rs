//! A key-value store on several replicas.

#![forbid(unsafe_code)]

mod wire;

pub use wire::{
    Answer, BOOTSTRAP, MAX_ADDRESS, MAX_KEY, MAX_MEMBERS, MAX_VALUE, Malformed, Member, Members,
    MembersError, Name, OPERATE, Operation, PARCEL, Parcel, Request, Role, STATUS, Status, VERSION,
    WINDOW,
};
