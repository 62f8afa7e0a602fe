//! Parses lines of text as commands. Detects errors in a line, and answers them in memcached's
//! words.

mod ask;
mod meta;
mod stats;
mod text;

use dunlin_store::Seconds;

use crate::words::{Words, visible};

pub(crate) use ask::{Ask, Change, MetaSet, Update};
pub(crate) use stats::Topic;

pub(crate) const ERROR: &str = "ERROR";
pub(crate) const BAD_FORMAT: &str = "CLIENT_ERROR bad command line format";
pub(crate) const TOO_LARGE: &str = "SERVER_ERROR object too large for cache";

/// The answer to `version`: the memcached version with which this server is compared, and this
/// crate's version.
pub(crate) const VERSION_LINE: &str = concat!("VERSION 1.6.18-dunlin-", env!("CARGO_PKG_VERSION"));

/// A line that was parsed.
#[derive(Clone, Copy, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "it lives on the stack of the call that reads the line"
)]
pub(crate) enum Command<'a> {
    /// Reads any number of keys.
    Keys(Keys),
    /// Runs one operation.
    Ask(Ask<'a>),
    /// Sends this answer, without an operation.
    Say(&'static str),
    /// Does nothing.
    Quiet,
    /// Answers, and discards the value that follows the line.
    Skip(Skip<'a>),
    /// Shows figures of all partitions.
    Stats(Topic),
    /// Lists all items.
    Dump,
    /// Ends the connection.
    Close,
}

/// A command that reads keys: all words of the line from `at` on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Keys {
    pub(crate) at: usize,
    pub(crate) with_version: bool,
    pub(crate) touch: Option<crate::operation::Expiry>,
}

/// A write that is refused before its value has arrived.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Skip<'a> {
    pub(crate) text: &'static str,
    pub(crate) is_quiet: bool,
    /// Bytes of the value, without its line end.
    pub(crate) len: u32,
    /// The key of an item to delete, because the client wanted to replace that item.
    pub(crate) deletes: Option<crate::meta::KeyBytes<'a>>,
}

/// Parses a line, without its line end.
pub(crate) fn parse(line: &[u8], now: Seconds) -> Command<'_> {
    let line = visible(line);
    let words = Words::new(line);
    let name = words.at(0);
    if name.len() < 2 {
        return Command::Say(ERROR);
    }
    if let [b'm', letter] = *name {
        return meta::parse(letter, words, now);
    }
    text::parse(name, line, words, now)
}

impl<'a> Command<'a> {
    /// The same command, or its refusal if it writes a value of more than `most` bytes.
    pub(crate) fn within(self, most: usize) -> Self {
        match self {
            Self::Ask(ask) if ask.value_len().is_some_and(|len| len > most) => {
                Self::Skip(ask.refusal())
            }
            command => command,
        }
    }
}

/// A command that sends this answer, unless the line asks for none.
pub(super) fn say(words: &Words<'_>, text: &'static str) -> Command<'static> {
    if words.is_quiet() {
        return Command::Quiet;
    }
    Command::Say(text)
}

#[cfg(test)]
mod tests;
