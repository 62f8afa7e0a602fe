//! The statistics that a line asks for.

use crate::command::{Ask, Command, ERROR};
use crate::words::Words;

/// A subject of `stats`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Topic {
    General,
    Settings,
    Items,
    Slabs,
    Sizes,
    Connections,
}

pub(super) fn parse(words: &Words<'_>) -> Command<'static> {
    let topic = match words.at(1) {
        b"" => Topic::General,
        b"settings" => Topic::Settings,
        b"items" => Topic::Items,
        b"slabs" => Topic::Slabs,
        b"sizes" => Topic::Sizes,
        b"conns" => Topic::Connections,
        b"reset" => return Command::Ask(Ask::Reset),
        b"detail" => return Command::Say(detail(words.at(2))),
        b"cachedump" => return Command::Say("CLIENT_ERROR stats cachedump not allowed"),
        _ => return Command::Say(ERROR),
    };
    Command::Stats(topic)
}

/// `stats detail`: figures for each prefix of keys, which this server does not count.
fn detail(what: &[u8]) -> &'static str {
    match what {
        b"off" => "OK",
        b"dump" => "END",
        _ => "CLIENT_ERROR usage: stats detail on|off|dump",
    }
}
