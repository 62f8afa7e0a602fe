//! Packets. `receive.rs` makes packets of open sessions from the bytes of a frame,
//! `packet/outbox.rs` has the packets that will leave, and `packet/held_until_done.rs` holds their
//! memory until the transport is done with it.

pub(crate) mod held_until_done;
pub(crate) mod outbox;
pub(crate) mod receive;
pub(crate) mod words;
