//! Answers of the meta protocol: a code of two letters, then the values that the flags ask for, in
//! the client's order.

use dunlin_store::{Item, Seconds, WriteError};

use crate::command::{MetaSet, TOO_LARGE};
use crate::meta::{KeyBytes, Meta};
use crate::operation::{Answer, CountError, Counted, Expiry, Found, Step};
use crate::partition::{LongValue, item_size};
use crate::render::text::{NO_MEMORY, NOT_A_NUMBER, data, line};
use crate::{base64, number};

/// Appends the answer to `mg`. Returns a long value, as [`data`] does.
pub(super) fn get(
    meta: &Meta<'_>,
    answer: &Answer<'_>,
    now: Seconds,
    out: &mut Vec<u8>,
) -> Option<LongValue> {
    match answer {
        Answer::Found(found) => return item(meta, found, now, out),
        Answer::Written(Err(_)) => line(NO_MEMORY, out),
        _ => missing(meta, out),
    }
    None
}

fn item(meta: &Meta<'_>, found: &Found<'_>, now: Seconds, out: &mut Vec<u8>) -> Option<LongValue> {
    let item = &found.item;
    if meta.options().with_value {
        out.extend_from_slice(b"VA ");
        number::write(out, item.value().len() as u64);
    } else {
        out.extend_from_slice(b"HD");
    }
    let mut steps = meta.options().steps.iter();
    let mut expiry = item.expiry();
    for flag in meta.flags() {
        match flag[0] {
            b'T' | b'N' | b'R' => expiry = after(steps.next(), expiry, found.is_new),
            b't' => time_left(expiry, now, out),
            b'k' | b'O' => echo_flag(meta, flag, out),
            _ => part(flag[0], item, now, out),
        }
    }
    marks(found, out);
    if meta.options().with_value {
        return data(item, out);
    }
    out.extend_from_slice(b"\r\n");
    None
}

fn missing(meta: &Meta<'_>, out: &mut Vec<u8>) {
    if !meta.options().is_quiet {
        out.extend_from_slice(b"EN");
        echo(meta, out);
        out.extend_from_slice(b"\r\n");
    }
}

/// Appends the part of an item that the flag asks for, if any.
fn part(flag: u8, item: &Item<'_>, now: Seconds, out: &mut Vec<u8>) {
    let part = match flag {
        b's' => item.value().len() as u64,
        b'c' => item.version().0,
        b'f' => item.flags().into(),
        b'l' => now.0.saturating_sub(item.last_access().0).into(),
        b'h' => item.was_read().into(),
        _ => return,
    };
    out.extend_from_slice(&[b' ', flag]);
    number::write(out, part);
}

/// Appends whether the item is out of date, and whether this client must rewrite it.
fn marks(found: &Found<'_>, out: &mut Vec<u8>) {
    let item = &found.item;
    for (is_marked, mark) in [
        (item.is_claimed(), b" Z"),
        (item.is_stale(), b" X"),
        (found.is_won, b" W"),
    ] {
        if is_marked {
            out.extend_from_slice(mark);
        }
    }
}

pub(super) fn set(set: &MetaSet<'_>, answer: &Answer<'_>, out: &mut Vec<u8>) {
    let Answer::Written(result) = answer else {
        return;
    };
    let code = match result {
        Ok(_) if set.meta.options().is_quiet => return,
        Ok(_) => "HD",
        Err(WriteError::VersionDiffers) => "EX",
        Err(WriteError::Absent) if set.compares() => "NF",
        Err(WriteError::Absent | WriteError::Present) => "NS",
        Err(WriteError::TooLong) if set.verb.joins() => "NS",
        Err(WriteError::TooLong) => return line(TOO_LARGE, out),
        Err(WriteError::NoMemory) => return line(NO_MEMORY, out),
    };
    out.extend_from_slice(code.as_bytes());
    for flag in set.meta.flags() {
        match flag[0] {
            b'c' => {
                out.extend_from_slice(b" c");
                number::write(out, result.map_or(0, |written| written.version.0));
            }
            b's' => {
                out.extend_from_slice(b" s");
                number::write(out, result.map_or(set.len, |written| written.len) as u64);
            }
            _ => echo_flag(&set.meta, flag, out),
        }
    }
    out.extend_from_slice(b"\r\n");
}

pub(super) fn delete(meta: &Meta<'_>, answer: &Answer<'_>, out: &mut Vec<u8>) {
    let code = match answer {
        Answer::Written(Err(_)) => return line(NO_MEMORY, out),
        Answer::Done if meta.options().is_quiet => return,
        Answer::Done => b"HD",
        Answer::Differs => b"EX",
        _ => b"NF",
    };
    out.extend_from_slice(code);
    echo(meta, out);
    out.extend_from_slice(b"\r\n");
}

pub(super) fn count(meta: &Meta<'_>, answer: &Answer<'_>, now: Seconds, out: &mut Vec<u8>) {
    let Answer::Counted(result) = answer else {
        return;
    };
    let code = match result {
        Ok(counted) => return counted_as(meta, counted, now, out),
        Err(CountError::NotANumber) => return line(NOT_A_NUMBER, out),
        Err(CountError::NoMemory) => return line("SERVER_ERROR out of memory", out),
        Err(CountError::NoNewItem) => {
            return line("SERVER_ERROR Out of memory allocating new item", out);
        }
        Err(CountError::Missing) => b"NF",
        Err(CountError::Differs) => b"EX",
    };
    out.extend_from_slice(code);
    echo(meta, out);
    out.extend_from_slice(b"\r\n");
}

/// Appends a counter that has changed. A quiet client sees only the counters that it has created.
fn counted_as(meta: &Meta<'_>, counted: &Counted, now: Seconds, out: &mut Vec<u8>) {
    if meta.options().is_quiet && !counted.is_new {
        return;
    }
    let mut digits = Vec::new();
    number::write(&mut digits, counted.number);
    if meta.options().with_value {
        out.extend_from_slice(b"VA ");
        number::write(out, digits.len() as u64);
    } else {
        out.extend_from_slice(b"HD");
    }
    let mut steps = meta.options().steps.iter();
    let mut expiry = counted.expiry;
    for flag in meta.flags() {
        match flag[0] {
            b'T' | b'N' | b'R' => expiry = after(steps.next(), expiry, counted.is_new),
            b't' => time_left(expiry, now, out),
            b'c' => {
                out.extend_from_slice(b" c");
                number::write(out, counted.version.0);
            }
            _ => echo_flag(meta, flag, out),
        }
    }
    out.extend_from_slice(b"\r\n");
    if meta.options().with_value {
        out.extend_from_slice(&digits);
        out.extend_from_slice(b"\r\n");
    }
}

pub(super) fn inspect(key: &KeyBytes<'_>, answer: &Answer<'_>, now: Seconds, out: &mut Vec<u8>) {
    let Answer::Found(Found { item, .. }) = answer else {
        return line("EN", out);
    };
    out.extend_from_slice(b"ME ");
    match key.is_base64() {
        true => base64::encode(out, key.bytes()),
        false => out.extend_from_slice(key.bytes()),
    }
    // memcached shows the time left as a negative number, and -1 for items that never expire.
    out.extend_from_slice(b" exp=-");
    let left = item.expiry().map_or(1, |at| at.0.saturating_sub(now.0));
    number::write(out, left);
    out.extend_from_slice(b" la=");
    number::write(out, now.0.saturating_sub(item.last_access().0));
    out.extend_from_slice(b" cas=");
    number::write(out, item.version().0);
    out.extend_from_slice(if item.was_read() {
        b" fetch=yes"
    } else {
        b" fetch=no"
    });
    out.extend_from_slice(b" cls=1 size=");
    number::write(out, item_size(item));
    out.extend_from_slice(b"\r\n");
}

/// The item's expiry after the client's next step.
fn after(step: Option<Step>, before: Expiry, is_new: bool) -> Expiry {
    step.map_or(before, |step| step.expiry(before, is_new))
}

fn time_left(expiry: Expiry, now: Seconds, out: &mut Vec<u8>) {
    out.extend_from_slice(b" t");
    match expiry {
        Some(at) => number::write(out, at.0.saturating_sub(now.0)),
        None => out.extend_from_slice(b"-1"),
    }
}

/// Appends key and opaque token, if the client wants them back.
fn echo(meta: &Meta<'_>, out: &mut Vec<u8>) {
    for flag in meta.flags() {
        echo_flag(meta, flag, out);
    }
}

fn echo_flag(meta: &Meta<'_>, flag: &[u8], out: &mut Vec<u8>) {
    match flag[0] {
        b'O' => {
            out.push(b' ');
            out.extend_from_slice(flag);
        }
        b'k' => {
            out.extend_from_slice(b" k");
            let key = meta.key();
            if key.is_base64() {
                base64::encode(out, key.bytes());
                out.extend_from_slice(b" b");
            } else {
                out.extend_from_slice(key.bytes());
            }
        }
        _ => {}
    }
}
