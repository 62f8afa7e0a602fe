//! The meta protocol: commands of two letters.

use dunlin_store::{MAX_KEY, Seconds, Verb};

use crate::command::ask::{Ask, MetaSet};
use crate::command::{BAD_FORMAT, Command, ERROR, Skip};
use crate::meta::{KeyBytes, Meta, Wrong};
use crate::number;
use crate::words::Words;

const TOO_MANY: &str = "CLIENT_ERROR options flags too long";
const OPAQUE_TOO_LONG: &str = "CLIENT_ERROR opaque token too long";

pub(super) fn parse(letter: u8, words: Words<'_>, now: Seconds) -> Command<'_> {
    match letter {
        b'n' => return Command::Say("MN"),
        b'e' => return inspect(words),
        b'g' | b's' | b'd' | b'a' if words.len() >= 2 => {}
        _ => return Command::Say(ERROR),
    }
    if words.at(1).len() > MAX_KEY {
        return Command::Say(BAD_FORMAT);
    }
    match letter {
        b'g' => get(words, now),
        b's' => set(words, now),
        b'd' => delete(words, now),
        _ => count(words, now),
    }
}

fn get(words: Words<'_>, now: Seconds) -> Command<'_> {
    match Meta::read(words, 2, now) {
        Ok(meta) => Command::Ask(Ask::MetaGet(meta)),
        Err(Wrong::TooMany) => Command::Say("CLIENT_ERROR options flags are too long"),
        Err(Wrong::Flag(text)) => Command::Say(text),
        Err(Wrong::Opaque) => Command::Say(OPAQUE_TOO_LONG),
    }
}

/// Parses `ms`. If the command is refused after its length was read, the connection skips the
/// value's bytes.
fn set(words: Words<'_>, now: Seconds) -> Command<'_> {
    if words.len() > crate::limits::MAX_META_WORDS {
        return Command::Say(TOO_MANY);
    }
    let len: Option<i32> = number::read(words.at(2));
    let len = len.filter(|len| *len <= i32::MAX - 2);
    let Some(len) = len.and_then(|len| u32::try_from(len).ok()) else {
        return Command::Say(BAD_FORMAT);
    };
    let skip = |text| {
        Command::Skip(Skip {
            text,
            is_quiet: false,
            len,
            deletes: None,
        })
    };
    let meta = match Meta::read(words, 3, now) {
        Ok(meta) => meta,
        Err(Wrong::TooMany) => return skip(TOO_MANY),
        Err(Wrong::Flag(text)) => return skip(text),
        Err(Wrong::Opaque) => return skip(OPAQUE_TOO_LONG),
    };
    let verb = match meta.options().mode {
        0 | b'S' => Verb::Set,
        b'E' => Verb::Add,
        b'A' => Verb::Append,
        b'P' => Verb::Prepend,
        b'R' => Verb::Replace,
        _ => return skip("CLIENT_ERROR invalid mode for ms M token"),
    };
    Command::Ask(Ask::MetaSet(MetaSet {
        meta,
        verb,
        len: len as usize,
    }))
}

fn delete(words: Words<'_>, now: Seconds) -> Command<'_> {
    match Meta::read(words, 2, now) {
        Ok(meta) => Command::Ask(Ask::MetaDelete(meta)),
        Err(wrong) => Command::Say(brief(wrong)),
    }
}

fn count(words: Words<'_>, now: Seconds) -> Command<'_> {
    let meta = match Meta::read(words, 2, now) {
        Ok(meta) => meta,
        Err(wrong) => return Command::Say(brief(wrong)),
    };
    match meta.options().mode {
        0 | b'I' | b'+' | b'D' | b'-' => Command::Ask(Ask::MetaCount(meta)),
        _ => Command::Say("CLIENT_ERROR invalid mode for ma M token"),
    }
}

/// The error text of commands that do not report which flag is wrong.
fn brief(wrong: Wrong) -> &'static str {
    match wrong {
        Wrong::TooMany => TOO_MANY,
        Wrong::Flag(_) => "CLIENT_ERROR invalid or duplicate flag",
        Wrong::Opaque => OPAQUE_TOO_LONG,
    }
}

fn inspect(words: Words<'_>) -> Command<'_> {
    let text = words.at(1);
    let key = match words.at(2) {
        b"b" => KeyBytes::base64(text),
        _ => Some(KeyBytes::text(text)),
    };
    match key.filter(|_| (1..=MAX_KEY).contains(&text.len())) {
        Some(key) => Command::Ask(Ask::Inspect(key)),
        None => Command::Say(BAD_FORMAT),
    }
}
