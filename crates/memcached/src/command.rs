//! Lines of text as commands. Faults of a line are found here, and answered in memcached's words.

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

/// The answer to `version`: the memcached that this server is compared with, and this crate.
pub(crate) const VERSION_LINE: &str = concat!("VERSION 1.6.18-dunlin-", env!("CARGO_PKG_VERSION"));

/// A line, understood.
#[derive(Clone, Copy, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "it lives on the stack of the call that reads the line"
)]
pub(crate) enum Command<'a> {
    /// Reads any number of keys.
    Keys(Keys),
    /// One operation.
    Ask(Ask<'a>),
    /// An answer that needs no operation.
    Say(&'static str),
    /// Nothing at all.
    Quiet,
    /// An answer; the value that follows the line is thrown away.
    Skip(Skip<'a>),
    /// Lists all items.
    Dump,
    /// Ends the connection.
    Close,
}

/// A command that reads keys, which are the words of the line from `at` on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Keys {
    pub(crate) at: usize,
    pub(crate) with_version: bool,
    pub(crate) touch: Option<crate::operation::Expiry>,
}

/// A write that is refused before its value has come.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Skip<'a> {
    pub(crate) text: &'static str,
    pub(crate) is_quiet: bool,
    /// Bytes of the value, without the end of its line.
    pub(crate) len: u32,
    /// The item of this key is deleted, because the client wanted to replace it.
    pub(crate) deletes: Option<crate::meta::KeyBytes<'a>>,
}

/// Reads a line, which has no line end any more.
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

/// An answer unless the line asks for none.
pub(super) fn say(words: &Words<'_>, text: &'static str) -> Command<'static> {
    if words.is_quiet() {
        return Command::Quiet;
    }
    Command::Say(text)
}

#[cfg(test)]
mod tests;
