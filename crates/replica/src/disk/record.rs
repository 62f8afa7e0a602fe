//! Entries in the form that `raft-engine` takes: messages of `protobuf`, whose bytes are ours.
//!
//! The engine makes an entry encode and decode itself. These records use fixed fields, so the
//! parser of `protobuf` 2 never sees the bytes of a client (RUSTSEC-2024-0437), and the format does
//! not depend on the codec that `raft` was built with.
//!
//! A record is index u64, term u64, length u32, then the bytes; all little endian. The engine adds
//! checksums.

use std::any::Any;
use std::sync::OnceLock;

use protobuf::reflect::MessageDescriptor;
use protobuf::{
    Clear, CodedInputStream, CodedOutputStream, Message, ProtobufResult, UnknownFields,
};
use raft::eraftpb::Entry;
use raft_engine::MessageExt;

use crate::wire::change::{bytes_of, entry_of};

/// Bytes before the entry's own.
const HEAD: u32 = 20;

/// An entry of the log, or a part of the items; parts have term 0.
#[derive(Clone, PartialEq, Default, Debug)]
pub(super) struct Record {
    pub(super) index: u64,
    pub(super) term: u64,
    pub(super) bytes: Vec<u8>,
    /// Always empty, but the trait requires it.
    unknown: UnknownFields,
}

/// The engine's view of records.
pub(super) struct Records;

impl MessageExt for Records {
    type Entry = Record;

    fn index(record: &Record) -> u64 {
        record.index
    }
}

impl Record {
    /// Makes the record of a log entry.
    pub(super) fn of(entry: &Entry) -> Self {
        Self {
            index: entry.index,
            term: entry.term,
            bytes: bytes_of(entry).to_vec(),
            unknown: UnknownFields::default(),
        }
    }

    /// Makes the record of a part of the items.
    pub(super) fn part(index: u64, bytes: &[u8]) -> Self {
        Self {
            index,
            bytes: bytes.to_vec(),
            ..Self::default()
        }
    }

    /// Converts the record to a log entry.
    pub(super) fn into_entry(self) -> Entry {
        entry_of(self.term, self.index, &self.bytes)
    }

    fn len(&self) -> u32 {
        u32::try_from(self.bytes.len()).expect("values and parts have limits far below 4 GiB")
    }
}

impl Clear for Record {
    fn clear(&mut self) {
        *self = Self::default();
    }
}

impl Message for Record {
    fn descriptor(&self) -> &'static MessageDescriptor {
        unreachable!("only messages with fields that must be set are described")
    }

    fn is_initialized(&self) -> bool {
        true
    }

    fn merge_from(&mut self, input: &mut CodedInputStream<'_>) -> ProtobufResult<()> {
        self.index = input.read_raw_little_endian64()?;
        self.term = input.read_raw_little_endian64()?;
        let len = input.read_raw_little_endian32()?;
        self.bytes = input.read_raw_bytes(len)?;
        Ok(())
    }

    fn write_to_with_cached_sizes(&self, out: &mut CodedOutputStream<'_>) -> ProtobufResult<()> {
        out.write_raw_little_endian64(self.index)?;
        out.write_raw_little_endian64(self.term)?;
        out.write_raw_little_endian32(self.len())?;
        out.write_raw_bytes(&self.bytes)
    }

    fn compute_size(&self) -> u32 {
        HEAD + self.len()
    }

    fn get_cached_size(&self) -> u32 {
        self.compute_size()
    }

    fn get_unknown_fields(&self) -> &UnknownFields {
        &self.unknown
    }

    fn mut_unknown_fields(&mut self) -> &mut UnknownFields {
        &mut self.unknown
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn new() -> Self {
        Self::default()
    }

    fn default_instance() -> &'static Self {
        static EMPTY: OnceLock<Record> = OnceLock::new();
        EMPTY.get_or_init(Self::default)
    }
}
