//! The protocol's numbers: its version, types of requests, and limits; and the error that all
//! decoders share.

use dunlin_wire::{ErrorCode, ReqType};

/// The version of the protocol, the first byte of every message except requests and parcels.
pub const VERSION: u8 = 1;

/// The version of [requests](super::Request), their first byte, and so also of entries in logs.
/// Version 1 had fixed-length fields.
pub(crate) const REQUEST_VERSION: u8 = 2;

/// The version of [parcels](super::Parcel), their first byte. Version 1 had fixed-length fields,
/// and version 2 always had names.
pub(crate) const PARCEL_VERSION: u8 = 3;

/// An operation of a client ([`Request`](super::Request)).
pub const OPERATE: ReqType = ReqType(0x7200);
/// Asks a replica for its state. The request has only the version.
pub const STATUS: ReqType = ReqType(0x7201);
/// Makes a cluster of replicas that belong to none ([`Members`](super::Members)).
pub const BOOTSTRAP: ReqType = ReqType(0x7202);
/// Messages of Raft from one replica to another ([`Parcel`](super::Parcel)).
pub const PARCEL: ReqType = ReqType(0x7203);
/// A part of a snapshot, from the leader to a replica ([`Piece`](super::Piece)).
pub const PIECE: ReqType = ReqType(0x7204);
/// Gives a process that joins a cluster its seat there ([`Roster`](super::Roster)).
pub const JOIN: ReqType = ReqType(0x7211);
/// An order of an administrator ([`Order`](super::Order)).
pub const ORDER: ReqType = ReqType(0x7210);

/// The error for a bootstrap, or for messages, to a replica that does not have the named number;
/// and for a part of a snapshot that is not the next one.
pub const STRANGER: ErrorCode = ErrorCode::application(2);
/// The error for messages of a replica whose number another process has, too.
pub const TWIN: ErrorCode = ErrorCode::application(6);
/// The error for a bootstrap of a replica that belongs to another cluster.
pub const TAKEN: ErrorCode = ErrorCode::application(1);
/// The error for a bootstrap that the replica's disk could not save.
pub const UNSAVED: ErrorCode = ErrorCode::application(3);
/// The error for an order that the replica cannot carry out: it does not lead, or the order names
/// this replica itself, or names a stranger as the next leader or as the member to remove.
pub const UNABLE: ErrorCode = ErrorCode::application(4);
/// The error for a bootstrap of a replica whose restored items are not those with which the cluster
/// begins, and for a join of a replica with restored items.
pub const OTHER_ITEMS: ErrorCode = ErrorCode::application(5);

/// The most bytes of a key. The shortest key has one byte.
pub const MAX_KEY: usize = 1024;
/// The most bytes of a value.
pub const MAX_VALUE: usize = 1 << 20;
/// The most bytes of a replica's address.
pub const MAX_ADDRESS: usize = 255;
/// The most replicas of a cluster.
pub const MAX_MEMBERS: usize = 7;
/// The most items that a read of a range returns.
pub const MAX_ITEMS: u32 = 10_000;
/// The most bytes of items in an answer to a read of a range, unless the first item is longer.
pub(crate) const PAGE: usize = 64 << 10;
/// The most compares of a transaction, and the most writes.
pub const MAX_STEPS: usize = 128;
/// The longest lifetime of an item, in milliseconds: 100 years.
pub const MAX_LIFETIME: u64 = 100 * 365 * 24 * 3600 * 1000;
/// The most messages in a parcel.
pub(crate) const MOST_MESSAGES: usize = 256;
/// The largest term or index. No log reaches it, and two numbers up to it can be added without
/// overflow.
pub(crate) const MAX_INDEX: u64 = 1 << 62;
/// Numbers of one client's operations that may be outstanding at a time.
pub const WINDOW: u64 = 32;

/// The bytes are not a message of this version of the protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Malformed;

impl std::fmt::Display for Malformed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the bytes are not a message of this version of the protocol")
    }
}

impl std::error::Error for Malformed {}
