//! Answers of the text protocol.

use dunlin_store::{Item, WriteError};

use crate::command::{Change, TOO_LARGE, Update};
use crate::number;
use crate::operation::{Answer, CountError};
use crate::partition::LongValue;

pub(crate) const NO_MEMORY: &str = "SERVER_ERROR out of memory storing object";
pub(super) const NOT_A_NUMBER: &str =
    "CLIENT_ERROR cannot increment or decrement non-numeric value";

/// Appends a line of text, or nothing if the text is empty.
pub(crate) fn line(text: &str, out: &mut Vec<u8>) {
    if !text.is_empty() {
        out.extend_from_slice(text.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
}

/// Appends an item, or nothing if it was not found. Returns a long value, like [`data`].
pub(super) fn item(
    key: &[u8],
    with_version: bool,
    answer: &Answer<'_>,
    out: &mut Vec<u8>,
) -> Option<LongValue> {
    let found = match answer {
        Answer::Found(found) => found,
        Answer::Written(Err(_)) => {
            line(NO_MEMORY, out);
            return None;
        }
        _ => return None,
    };
    let item = &found.item;
    out.extend_from_slice(b"VALUE ");
    out.extend_from_slice(key);
    out.push(b' ');
    number::write(out, item.flags());
    out.push(b' ');
    number::write(out, item.value().len() as u64);
    if with_version {
        out.push(b' ');
        number::write(out, item.version().0);
    }
    data(item, out)
}

/// Appends the rest of the item's line, and the value with its line end. A long value is instead
/// returned, for the caller to append it in slices.
pub(super) fn data(item: &Item<'_>, out: &mut Vec<u8>) -> Option<LongValue> {
    out.extend_from_slice(b"\r\n");
    let long = LongValue::of(item);
    if long.is_none() {
        item.value().append_to(out);
        out.extend_from_slice(b"\r\n");
    }
    long
}

pub(super) fn update(update: &Update<'_>, answer: &Answer<'_>, out: &mut Vec<u8>) {
    if update.is_quiet {
        return;
    }
    let Answer::Written(result) = answer else {
        return;
    };
    let text = match result {
        Ok(_) => "STORED",
        Err(WriteError::VersionDiffers) => "EXISTS",
        Err(WriteError::Absent) if update.if_version.is_some() => "NOT_FOUND",
        Err(WriteError::Absent | WriteError::Present) => "NOT_STORED",
        // memcached does not name the reason.
        Err(WriteError::TooLong) if update.verb.joins() => "NOT_STORED",
        Err(WriteError::TooLong) => TOO_LARGE,
        Err(WriteError::NoMemory) => NO_MEMORY,
    };
    line(text, out);
}

pub(super) fn change(change: &Change<'_>, answer: &Answer<'_>, out: &mut Vec<u8>) {
    let (is_quiet, done) = match change {
        Change::Delete { is_quiet, .. } => (*is_quiet, "DELETED"),
        Change::Touch { is_quiet, .. } => (*is_quiet, "TOUCHED"),
        Change::Count { is_quiet, .. } => (*is_quiet, ""),
    };
    if is_quiet {
        return;
    }
    let text = match answer {
        Answer::Counted(Ok(counted)) => {
            number::write(out, counted.number);
            return out.extend_from_slice(b"\r\n");
        }
        Answer::Counted(Err(CountError::NotANumber)) => NOT_A_NUMBER,
        Answer::Counted(Err(CountError::NoMemory | CountError::NoNewItem)) => {
            "SERVER_ERROR out of memory"
        }
        Answer::Written(Err(_)) => NO_MEMORY,
        Answer::Done => done,
        _ => "NOT_FOUND",
    };
    line(text, out);
}
