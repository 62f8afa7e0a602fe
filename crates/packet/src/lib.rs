//! Parses, checks and builds Ethernet frames that carry one UDP datagram (RFC 768, 791, 894, 1624,
//! 8200, IEEE 802.1Q), or a message that hosts use to find each other's Ethernet addresses.
//!
//! The kernel's network stack does not see these frames, so this crate makes all checks of the
//! stack itself. It does no I/O. `dunlin-xdp` and `dunlin-dpdk` read and write frames with it.
#![forbid(unsafe_code)]

mod build;
#[cfg(any(test, fuzzing, feature = "check"))]
pub mod check;
mod layout;
pub mod neighbours;
mod parse;
mod seen;
mod sum;

pub use build::{Header, MAX_HEADER, Stamp};
pub use layout::{
    ETHERNET, Home, IPV4, IPV6, Mac, PROTOCOL_UDP, TAG, TYPE_IPV4, TYPE_IPV6, TYPE_TAG, UDP,
};
pub use parse::{Datagram, REFUSALS, Refused, Written, parse, port_of};
pub use seen::{Payload, Seen};
pub use sum::Sum;
