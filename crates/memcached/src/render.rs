//! Answers as text.

mod meta;
mod stats;
mod text;

use dunlin_store::Seconds;

use crate::command::Ask;
use crate::operation::Answer;
use crate::partition::LongValue;

/// Appends the answer to a command of one operation. For `get` and its variants, this is one item;
/// the connection appends the end of the list.
pub(crate) fn render(ask: &Ask<'_>, answer: &Answer<'_>, now: Seconds, out: &mut Vec<u8>) {
    if let (Some(_), Answer::Found(found)) = (render_part(ask, answer, now, out), answer) {
        found.item.value().append_to(out);
        out.extend_from_slice(b"\r\n");
    }
}

/// Like [`render`], but returns a value that is longer than a slice instead of appending it: the
/// caller appends the value in slices, and its line end.
pub(crate) fn render_part(
    ask: &Ask<'_>,
    answer: &Answer<'_>,
    now: Seconds,
    out: &mut Vec<u8>,
) -> Option<LongValue> {
    match ask {
        Ask::Get {
            key, with_version, ..
        } => return text::item(key, *with_version, answer, out),
        Ask::MetaGet(command) => return meta::get(command, answer, now, out),
        Ask::Update(update) => text::update(update, answer, out),
        Ask::Change(change) => text::change(change, answer, out),
        Ask::MetaSet(set) => meta::set(set, answer, out),
        Ask::MetaDelete(command) => meta::delete(command, answer, out),
        Ask::MetaCount(command) => meta::count(command, answer, now, out),
        Ask::Inspect(key) => meta::inspect(key, answer, now, out),
        Ask::Flush { is_quiet, .. } => text::line(if *is_quiet { "" } else { "OK" }, out),
        Ask::Reset => text::line("RESET", out),
    }
    None
}

pub(crate) use stats::write as report;
pub(crate) use text::{NO_MEMORY, line};
