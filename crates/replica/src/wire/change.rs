//! Changes of the members, as entries of the log (Raft dissertation §4.3).
//!
//! Replicas send and store a change in the codec of this crate. Raft wants the same change in its
//! own codec. Each replica makes that encoding itself, so Raft parses only bytes that its own
//! process has made. The byte after the version is never that of a client's operation, so the bytes
//! of an entry show which of the two it is.

use bytes::Bytes;
use protobuf::Message as _;
use raft::eraftpb::{
    ConfChangeSingle, ConfChangeTransition, ConfChangeType, ConfChangeV2, Entry, EntryType,
};

use super::cursor::{Cursor, put_count, put_counted, put_words};
use super::format::{Malformed, VERSION};
use super::members::Member;
use super::roster::MAX_SEATS;

/// Marks an entry as a change of members, not an operation.
const MARK: u8 = 0x80;

/// A change of the members.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Change {
    /// A process joins, and gets the log.
    Join(Member),
    /// These learners become voters, and these members leave. Until the change is complete,
    /// decisions need the old voters as well as the new ones.
    Begin { promote: Vec<u64>, remove: Vec<u64> },
    /// The change is complete: the new voters decide alone.
    Complete,
}

impl Change {
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let kind = match self {
            Self::Join(_) => 1,
            Self::Begin { .. } => 2,
            Self::Complete => 3,
        };
        let mut bytes = vec![VERSION, MARK, kind, 0, 0, 0, 0, 0];
        match self {
            Self::Join(member) => {
                put_words(&mut bytes, &[member.id]);
                put_counted(&mut bytes, member.address.as_bytes());
            }
            Self::Begin { promote, remove } => {
                for ids in [promote, remove] {
                    put_count(&mut bytes, ids.len());
                    put_words(&mut bytes, ids);
                }
            }
            Self::Complete => {}
        }
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut cursor = Cursor(bytes);
        if (cursor.u8()?, cursor.u8()?) != (VERSION, MARK) {
            return Err(Malformed);
        }
        let kind = cursor.u8()?;
        cursor.zeros::<5>()?;
        let change = match kind {
            1 => {
                let id = cursor.u64()?;
                Self::Join(Member::take(id, &mut cursor)?)
            }
            2 => Self::Begin {
                promote: take_ids(&mut cursor)?,
                remove: take_ids(&mut cursor)?,
            },
            3 => Self::Complete,
            _ => return Err(Malformed),
        };
        cursor.end()?;
        Ok(change)
    }

    /// Converts the change for Raft.
    pub(crate) fn to_raft(&self) -> ConfChangeV2 {
        let single = |id: u64, kind| ConfChangeSingle {
            node_id: id,
            change_type: kind,
            ..ConfChangeSingle::default()
        };
        let (transition, changes) = match self {
            Self::Join(member) => {
                let change = single(member.id, ConfChangeType::AddLearnerNode);
                (ConfChangeTransition::Auto, vec![change])
            }
            Self::Begin { promote, remove } => {
                let added = promote
                    .iter()
                    .map(|id| single(*id, ConfChangeType::AddNode));
                let gone = remove
                    .iter()
                    .map(|id| single(*id, ConfChangeType::RemoveNode));
                (ConfChangeTransition::Explicit, added.chain(gone).collect())
            }
            Self::Complete => (ConfChangeTransition::Auto, Vec::new()),
        };
        ConfChangeV2 {
            transition,
            changes: changes.into(),
            ..ConfChangeV2::default()
        }
    }
}

fn take_ids(cursor: &mut Cursor<'_>) -> Result<Vec<u64>, Malformed> {
    let count = cursor.count(8)?;
    if count > MAX_SEATS {
        return Err(Malformed);
    }
    (0..count).map(|_| cursor.u64()).collect()
}

/// Whether the bytes of an entry are a change of members.
pub(super) fn is_change(bytes: &[u8]) -> bool {
    bytes.get(1) == Some(&MARK)
}

/// Makes an entry with the bytes of a write. It has no index yet.
pub(crate) fn entry_with(bytes: &[u8]) -> Entry {
    Entry {
        data: Bytes::copy_from_slice(bytes),
        ..Entry::default()
    }
}

/// Makes an entry from the bytes of an operation or of a change of members.
pub(crate) fn entry_of(term: u64, index: u64, bytes: &[u8]) -> Entry {
    let mut entry = Entry {
        term,
        index,
        ..Entry::default()
    };
    match Change::decode(bytes) {
        Ok(change) => {
            let written = change.to_raft().write_to_bytes();
            let written = written.expect("a change has no field that must be set");
            entry.entry_type = EntryType::EntryConfChangeV2;
            entry.data = written.into();
            entry.context = bytes.to_vec().into();
        }
        Err(Malformed) => entry.data = bytes.to_vec().into(),
    }
    entry
}

/// The bytes of an entry, as replicas send and store them.
pub(crate) fn bytes_of(entry: &Entry) -> &[u8] {
    match entry.entry_type {
        EntryType::EntryConfChangeV2 => &entry.context,
        _ => &entry.data,
    }
}
