//! The text protocol: commands with names of more than two letters.

use dunlin_store::{MAX_KEY, Seconds, Verb, Version};

use crate::command::ask::{Ask, Change, Update};
use crate::command::{BAD_FORMAT, Command, ERROR, Keys, VERSION_LINE, say, stats};
use crate::limits::MAX_LINE;
use crate::words::{Words, each};
use crate::{expiry, number};

const BAD_TIME: &str = "CLIENT_ERROR invalid exptime argument";

pub(super) fn parse<'a>(
    name: &'a [u8],
    line: &'a [u8],
    words: Words<'a>,
    now: Seconds,
) -> Command<'a> {
    let count = words.len();
    let has = |least: usize, most: usize| (least..=most).contains(&count);
    match name {
        b"get" | b"gets" | b"bget" if count >= 2 => keys(name, line, now),
        b"gat" | b"gats" if count >= 2 => keys(name, line, now),
        b"set" if has(5, 6) => update(Verb::Set, words, now),
        b"add" if has(5, 6) => update(Verb::Add, words, now),
        b"replace" if has(5, 6) => update(Verb::Replace, words, now),
        b"append" if has(5, 6) => update(Verb::Append, words, now),
        b"prepend" if has(5, 6) => update(Verb::Prepend, words, now),
        b"cas" if has(6, 7) => update_if_same(words, now),
        b"incr" if has(3, 4) => arithmetic(words, false),
        b"decr" if has(3, 4) => arithmetic(words, true),
        b"delete" if has(2, 4) => delete(words),
        b"touch" if has(3, 4) => touch(words, now),
        b"flush_all" if has(1, 3) => flush(words, now),
        b"verbosity" if has(2, 3) => verbosity(&words),
        b"version" => Command::Say(VERSION_LINE),
        b"quit" => Command::Close,
        b"stats" => stats::parse(&words),
        b"lru_crawler" => crawler(&words),
        b"shutdown" => Command::Say("ERROR: shutdown not enabled"),
        b"watch" => say(&words, "CLIENT_ERROR watch commands not allowed"),
        b"slabs" if count == 4 && words.at(1) == b"reassign" => {
            Command::Say("CLIENT_ERROR slab reassignment disabled")
        }
        b"cache_memlimit" if has(2, 3) => say(
            &words,
            "MEMLIMIT_ADJUST_FAILED out of bounds or unable to adjust",
        ),
        _ => unknown(name, &words),
    }
}

/// Answers an unknown command. A browser gets no answer, because it would display the answer as a
/// page.
fn unknown(name: &[u8], words: &Words<'_>) -> Command<'static> {
    let may_be_http = !b"gsacidt".contains(&name[0]);
    if may_be_http && words.last().starts_with(b"HTTP/") {
        return Command::Close;
    }
    Command::Say(ERROR)
}

fn keys<'a>(name: &[u8], line: &'a [u8], now: Seconds) -> Command<'a> {
    let mut words = each(line).skip(1);
    let mut at = end_of_word(line, 0);
    let mut touch = None;
    if name.starts_with(b"gat") {
        let time = words.next().unwrap_or_default();
        // The time also goes into errands for other threads, whose lines must be short. With many
        // zeros at its beginning, even a small number is too long for them.
        let expiry = expiry::read(time, now).filter(|_| time.len() <= MAX_LINE);
        let Some(expiry) = expiry else {
            return Command::Say(BAD_TIME);
        };
        touch = Some(expiry);
        at = end_of_word(line, at);
    }
    if words.any(|key| key.len() > MAX_KEY) {
        return Command::Say(BAD_FORMAT);
    }
    Command::Keys(Keys {
        at,
        with_version: name.ends_with(b"s"),
        touch,
    })
}

/// The end of the next word of a line, beginning at `at`.
fn end_of_word(line: &[u8], at: usize) -> usize {
    let rest = &line[at..];
    let indent = rest.iter().take_while(|byte| **byte == b' ').count();
    let word = rest[indent..].iter().take_while(|byte| **byte != b' ');
    at + indent + word.count()
}

fn update(verb: Verb, words: Words<'_>, now: Seconds) -> Command<'_> {
    update_with(verb, None, words, now)
}

fn update_if_same(words: Words<'_>, now: Seconds) -> Command<'_> {
    let Some(version) = number::read(words.at(5)) else {
        return say(&words, BAD_FORMAT);
    };
    update_with(Verb::Set, Some(Version(version)), words, now)
}

fn update_with(
    verb: Verb,
    if_version: Option<Version>,
    words: Words<'_>,
    now: Seconds,
) -> Command<'_> {
    let is_quiet = words.is_quiet();
    let key = words.at(1);
    let flags = number::read(words.at(2));
    let expiry = expiry::read(words.at(3), now);
    let len: Option<i32> = number::read(words.at(4));
    let (Some(flags), Some(expiry), Some(len)) = (flags, expiry, len) else {
        return say(&words, BAD_FORMAT);
    };
    let (Ok(len), true) = (
        u32::try_from(len),
        key.len() <= MAX_KEY && len <= i32::MAX - 2,
    ) else {
        return say(&words, BAD_FORMAT);
    };
    Command::Ask(Ask::Update(Update {
        key,
        verb,
        flags,
        expiry,
        len: len as usize,
        if_version,
        is_quiet,
    }))
}

fn arithmetic(words: Words<'_>, is_down: bool) -> Command<'_> {
    let key = words.at(1);
    if key.len() > MAX_KEY {
        return say(&words, BAD_FORMAT);
    }
    let Some(by) = number::read(words.at(2)) else {
        return say(&words, "CLIENT_ERROR invalid numeric delta argument");
    };
    Command::Ask(Ask::Change(Change::Count {
        key,
        by,
        is_down,
        is_quiet: words.is_quiet(),
    }))
}

fn touch(words: Words<'_>, now: Seconds) -> Command<'_> {
    let key = words.at(1);
    if key.len() > MAX_KEY {
        return say(&words, BAD_FORMAT);
    }
    let Some(expiry) = expiry::read(words.at(2), now) else {
        return say(&words, BAD_TIME);
    };
    Command::Ask(Ask::Change(Change::Touch {
        key,
        expiry,
        is_quiet: words.is_quiet(),
    }))
}

/// Parses `delete`. Old clients append the time for which the key stays locked; only 0 is still
/// allowed.
fn delete(words: Words<'_>) -> Command<'_> {
    let is_quiet = words.len() > 2 && words.is_quiet();
    let is_zero = words.at(2) == b"0";
    let is_valid = match words.len() {
        2 => true,
        3 => is_zero || is_quiet,
        _ => is_zero && is_quiet,
    };
    let text = match words.at(1).len() {
        _ if !is_valid => "CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]",
        0..=MAX_KEY => {
            return Command::Ask(Ask::Change(Change::Delete {
                key: words.at(1),
                is_quiet,
            }));
        }
        _ => BAD_FORMAT,
    };
    if is_quiet {
        return Command::Quiet;
    }
    Command::Say(text)
}

fn flush(words: Words<'_>, now: Seconds) -> Command<'_> {
    let is_quiet = words.is_quiet();
    let has_time = words.len() != if is_quiet { 2 } else { 1 };
    let at = if has_time {
        expiry::flush(words.at(1), now)
    } else {
        Some(now)
    };
    match at {
        Some(at) => Command::Ask(Ask::Flush { at, is_quiet }),
        None => say(&words, BAD_TIME),
    }
}

fn verbosity(words: &Words<'_>) -> Command<'static> {
    let level: Option<u32> = number::read(words.at(1));
    say(words, if level.is_some() { "OK" } else { BAD_FORMAT })
}

/// The table sweeps on its own, so the crawler's only remaining command lists the items.
fn crawler(words: &Words<'_>) -> Command<'static> {
    match (words.at(1), words.len()) {
        (b"metadump", 3) if matches!(words.at(2), b"all" | b"hash") => Command::Dump,
        (b"metadump" | b"crawl", 3) => Command::Say("BADCLASS invalid class id"),
        (b"enable", 2) => Command::Say("OK"),
        _ => Command::Say(ERROR),
    }
}
