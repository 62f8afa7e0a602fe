//! The protocol: bytes of requests and answers. All numbers are little endian, and every message
//! begins with the version of the protocol.
//!
//! Invariant: a message that decodes encodes to the same bytes again, so two programs that agree on
//! the bytes agree on the meaning. `docs/replica.md` has the tables for other languages. Called by
//! `service`, `client`, `node` and `machine`.

mod answer;
pub(crate) mod change;
mod confirmation;
pub(crate) mod copies;
pub(crate) mod cursor;
mod event;
mod format;
mod members;
mod order;
mod parcel;
mod pen;
mod piece;
mod request;
mod roster;
mod status;
mod steps;

pub use answer::{Answer, Found};
pub(crate) use answer::{MAX_ITEM, Page};
pub(crate) use confirmation::Confirmation;
pub(crate) use event::Events;
pub use event::{Event, EventKind};
pub(crate) use format::PAGE;
pub use format::{
    BOOTSTRAP, JOIN, MAX_ADDRESS, MAX_ITEMS, MAX_KEY, MAX_LIFETIME, MAX_MEMBERS, MAX_STEPS,
    MAX_VALUE, Malformed, OPERATE, ORDER, OTHER_ITEMS, PARCEL, PIECE, STATUS, STRANGER, TAKEN,
    TWIN, UNABLE, UNSAVED, VERSION, WINDOW,
};
pub(crate) use format::{MAX_INDEX, MOST_MESSAGES};
pub use members::{Member, Members, MembersError};
pub use order::Order;
pub(crate) use parcel::{Envelope, put_message};
pub use parcel::{Names, Parcel};
pub use piece::Piece;
pub use request::{Name, Operation, Request};
pub(crate) use request::{key_of_put, without_name};
pub(crate) use roster::MAX_SEATS;
pub use roster::{Part, Roster};
pub use status::{Follower, Role, Status};
pub use steps::{Compare, Steps, Write};

#[cfg(test)]
mod tests;
