//! An answer before it is encoded: its length, and how it is written into the response. A value is
//! copied only once, from the log into the response buffer.

use dunlin_store::{Item, SLICE, Seconds, Stamp, Value, copy_short};

use crate::wire::{Head, Status, short_len, write_short};

/// An answer whose value is still in the table.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Reply<'a> {
    Found(Head, Value<'a>),
    /// A slice of the value, from an offset on.
    Slice(Value<'a>, usize),
    Written(u64),
    Counted(u64, u64),
    Done,
    Refused(Status),
}

/// Makes the part of an item's answer that comes before the value, which has `len` bytes.
#[inline]
pub(super) fn head_of(item: &Item<'_>, len: usize, now: Seconds) -> Head {
    let lifetime = match item.expiry() {
        // An item that was found lives at least for the present second.
        Some(at) => at.0.saturating_sub(now.0).max(1),
        None => 0,
    };
    Head {
        flags: item.flags(),
        version: item.version().0,
        len: u32::try_from(len).expect("a value has at most 1 MiB"),
        lifetime,
        stamp: item.stamp().map(Stamp::to_number),
    }
}

impl Reply<'_> {
    /// The length of the answer in bytes.
    #[inline]
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Found(head, _) => head.size(),
            Self::Slice(value, from) => short_len(0) + (value.len() - from).min(SLICE),
            Self::Written(_) => short_len(1),
            Self::Counted(..) => short_len(2),
            Self::Done | Self::Refused(_) => short_len(0),
        }
    }

    /// Writes the answer into [`Self::size`] bytes.
    #[inline]
    pub(crate) fn write(&self, out: &mut [u8]) {
        match self {
            Self::Found(head, value) => copy(value, head.write(out)),
            Self::Slice(value, from) => {
                value.copy_from(*from, write_short(Status::Slice, &[], out));
            }
            Self::Written(version) => {
                write_short(Status::Written, &[*version], out);
            }
            Self::Counted(number, version) => {
                write_short(Status::Counted, &[*number, *version], out);
            }
            Self::Done => {
                write_short(Status::Done, &[], out);
            }
            Self::Refused(status) => {
                write_short(*status, &[], out);
            }
        }
    }
}

/// Copies a whole value into a buffer of its length.
#[inline]
pub(crate) fn copy(value: &Value<'_>, room: &mut [u8]) {
    match value.as_slice() {
        Some(bytes) if bytes.len() == room.len() => copy_short(room, bytes),
        _ => {
            value.copy_from(0, room);
        }
    }
}
