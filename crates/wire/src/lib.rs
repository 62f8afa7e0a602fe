//! The bytes between Dunlin endpoints and between their nexus processes: the 24-byte packet
//! header (`docs/protocol.md`, rules W1 to W12) and the control messages (rules C1 to C16).
//!
//! Everything here is a pure function of bytes. No function allocates, panics on any input, or
//! knows about sessions: `dunlin-core` decides whether a number is valid in its session.
//!
//! The golden vectors in `vectors/` specify these functions for implementations in other languages.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

pub mod control;

#[cfg(any(test, fuzzing, feature = "check"))]
pub mod check;

mod error_code;
mod extension;
mod header;
mod health;
mod numbers;
mod reflect;
mod residence;

pub use error_code::{ErrorCode, Ran};
pub use extension::{
    ACK_VECTOR_LEN, AckVector, Bitmap, CHALLENGE_LEN, MAX_AHEAD, MAX_BITMAP_BITS, MAX_BITMAP_WORDS,
    MAX_EXTENSION,
};
pub use header::{
    Flags, HEADER_LEN, Header, HeaderError, PLAIN_REQUEST, PLAIN_RESPONSE, PacketType,
    TIMED_RESPONSE, VERSION, peek_request, peek_session,
};
pub use health::{HEALTH, HealthAnswer, HealthStatus, MAX_HEALTH_ANSWER, MAX_HEALTH_QUESTION};
pub use numbers::{PktNum, ReqNum, ReqType, SessionNum, Token};
pub use reflect::{
    DESCRIBE, JsonAnswer, JsonQuestion, MAX_METHOD_NAME, MessageAnswer, MessageQuestion, TO_JSON,
    TO_MESSAGE,
};
pub use residence::Residence;
