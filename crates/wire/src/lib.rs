//! What travels between Dunlin endpoints and between their nexus processes: the 24-byte packet
//! header (`docs/protocol.md`, rules W1 to W12) and the control messages (rules C1 to C9).
//!
//! Everything here is a pure function of bytes. Nothing allocates on the packet path, nothing
//! panics on any input, and nothing knows about sessions: whether a number makes sense for a
//! session is decided by `dunlin-core`.
#![no_std]
#![forbid(unsafe_code)]

mod header;
mod numbers;
mod residence;

pub use header::{
    ACK_VECTOR_LEN, AckVector, Flags, HEADER_LEN, Header, HeaderError, MAX_EXTENSION, PacketType, VERSION,
    peek_session,
};
pub use numbers::{PktNum, ReqNum, ReqType, SessionNum, Token};
pub use residence::Residence;
