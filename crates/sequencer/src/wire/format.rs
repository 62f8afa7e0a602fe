//! The protocol's numbers: its version, types of requests, and limits; and the error that all
//! decoders share.

use dunlin_wire::ReqType;

/// The version of the protocol.
pub const VERSION: u8 = 1;

/// Asks for the number of a sequence.
pub const OPEN: ReqType = ReqType(0x7300);
/// Takes numbers of a sequence.
pub const TAKE: ReqType = ReqType(0x7301);
/// Asks for the state of the server.
pub const STATUS: ReqType = ReqType(0x7302);

/// The most numbers that one request takes.
pub const MAX_COUNT: u32 = 1 << 20;

/// The most sequences of a server.
pub const MAX_SEQUENCES: usize = 256;

/// The bytes are not a message of this version of the protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Malformed;

impl std::fmt::Display for Malformed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the bytes are not a message of this version of the protocol")
    }
}

impl std::error::Error for Malformed {}
