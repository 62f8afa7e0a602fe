//! The protocol's numbers: its version, types of requests, and limits; and the error that all
//! decoders share.

use dunlin_wire::ReqType;

/// The version of the protocol.
pub const VERSION: u8 = 1;

/// Asks for the map of partitions. The request is empty.
pub const MAP: ReqType = ReqType(0x6b00);
/// One operation on one key.
pub const KEYED: ReqType = ReqType(0x6b01);
/// Gets many keys of one partition.
pub const MULTI: ReqType = ReqType(0x6b02);
/// A request for a whole partition, such as its figures or a flush.
pub const WHOLE: ReqType = ReqType(0x6b03);

/// The most keys of a [`MULTI`] request.
pub const MAX_KEYS: usize = 1024;

/// The most partitions of a server.
pub const MAX_PARTITIONS: usize = 1024;

/// The bytes are not a message of this version of the protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Malformed;

impl std::fmt::Display for Malformed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the bytes are not a message of this version of the protocol")
    }
}

impl std::error::Error for Malformed {}
