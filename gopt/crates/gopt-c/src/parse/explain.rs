//! Explains a fault that the parser found, where possible. The place that the parser names often
//! comes after the word that caused the fault. Called by `parse.rs` alone.

use std::ops::Range;

use crate::source::{REMEDY, Source};

/// Words that can begin a type and nothing else.
const TYPES: [&str; 14] = [
    "struct", "union", "enum", "void", "char", "short", "int", "long", "float", "double", "signed",
    "unsigned", "const", "volatile",
];

/// Words of C that may stand before a place where the parser finds a fault.
const WORDS: [&str; 12] = [
    "if", "while", "for", "switch", "return", "sizeof", "else", "do", "case", "goto", "break",
    "continue",
];

/// The best place and reason to show for a fault that the parser has found in `range`.
pub(super) fn fault(source: &Source<'_>, range: Range<usize>, reason: String) -> (usize, String) {
    let statement = statement(source, &range);
    if let Some(at) = computed_goto(source, &statement) {
        let reason = "a computed `goto` in a function with a `foreach`: gopt cannot follow it; \
                      use a `switch` whose cases `goto` their labels";
        return (at, reason.to_owned());
    }
    if let Some((at, name)) = type_argument(source, &statement) {
        let reason = format!(
            "`{name}` has a type as an argument, so it is a macro that must be expanded before \
             this is C; {REMEDY}"
        );
        return (at, reason);
    }
    if let Some((at, name)) = misplaced_macro(source, &statement, range.start) {
        let reason = format!("the macro `{name}` stands where C allows no name; {REMEDY}");
        return (at, reason);
    }
    (range.start, reason)
}

/// The text from the end of the previous statement or block to the end of the one at `range`.
fn statement(source: &Source<'_>, range: &Range<usize>) -> Range<usize> {
    let is_border = |c: char| matches!(c, ';' | '{' | '}');
    let begin = source.masked[..range.start].rfind(is_border);
    let begin = begin.map_or(0, |at| at + 1);
    let end = source.masked[range.start..].find(is_border);
    let end = end.map_or(source.masked.len(), |length| range.start + length);
    begin..end
}

fn computed_goto(source: &Source<'_>, statement: &Range<usize>) -> Option<usize> {
    let bytes = source.masked.as_bytes();
    let word = |place: &&Range<usize>| &source.text[(*place).clone()] == "goto";
    let places = source.identifiers_in(statement);
    let jump = places
        .iter()
        .find(|place| word(place) && source.masked[place.end..].trim_start().starts_with('*'));
    let address = places.iter().find(|place| {
        let before = bytes[..place.start].trim_ascii_end();
        let operand = before.strip_suffix(b"&&").map(<[u8]>::trim_ascii_end);
        operand.is_some_and(|before| matches!(before.last(), Some(b'=' | b',' | b'(' | b'{')))
    });
    Some(jump.or(address)?.start)
}

/// A name whose parentheses contain only a type.
fn type_argument<'a>(source: &Source<'a>, statement: &Range<usize>) -> Option<(usize, &'a str)> {
    let bytes = source.masked.as_bytes();
    for place in source.identifiers_in(statement) {
        let name = &source.text[place.clone()];
        if TYPES.contains(&name) || WORDS.contains(&name) || name.starts_with("__") {
            continue;
        }
        let rest = source.masked[place.end..].trim_start();
        if !rest.starts_with('(') {
            continue;
        }
        let open = source.masked.len() - rest.len();
        for word in source.identifiers_in(&(open..statement.end)) {
            let is_type = TYPES.contains(&&source.text[word.clone()]);
            let before = bytes[..word.start].trim_ascii_end();
            let begins = before.len() == open + 1 || before.last() == Some(&b',');
            if is_type && begins && depth(&bytes[open..word.start]) == 1 {
                return Some((place.start, name));
            }
        }
    }
    None
}

/// The number of parentheses that are still open at the end of `bytes`.
fn depth(bytes: &[u8]) -> usize {
    let count = |wanted: u8| bytes.iter().filter(|byte| **byte == wanted).count();
    count(b'(').saturating_sub(count(b')'))
}

/// The macro of this statement that is nearest to the fault and has no operator before it.
fn misplaced_macro<'a>(
    source: &Source<'a>,
    statement: &Range<usize>,
    fault: usize,
) -> Option<(usize, &'a str)> {
    let looks_like = |name: &str| {
        let has_upper = name.chars().any(|c| c.is_ascii_uppercase());
        source.macros.contains_key(name) || has_upper && name == name.to_ascii_uppercase()
    };
    let bytes = source.masked.as_bytes();
    let places = source.identifiers_in(statement).iter();
    let candidates = places.filter(|place| {
        let before = bytes[..place.start].trim_ascii_end().last();
        let follows_word = before.is_some_and(|byte| {
            byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b')' | b']' | b'*')
        });
        let begins = place.start == statement.start
            || source.masked[statement.start..place.start]
                .trim()
                .is_empty();
        looks_like(&source.text[(*place).clone()]) && (follows_word || begins)
    });
    let nearest = candidates.min_by_key(|place| place.start.abs_diff(fault))?;
    Some((nearest.start, &source.text[nearest.clone()]))
}
