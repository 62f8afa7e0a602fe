//! Refused words in string literals and in names of functions. Doc comments are attributes with a
//! string, and `prose.rs` reads them.

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use super::{Finding, Word, refused};
use crate::tidy::tree::File;

/// The list of the words themselves, and its tests.
const LISTS: &str = "xtask/src/tidy/phrases";

pub(super) fn check(file: &File) -> Vec<Finding> {
    let mut words = Vec::new();
    if !file.path.starts_with(LISTS)
        && let Ok(stream) = file.text.parse()
    {
        collect(stream, &mut words);
    }
    refused(file, &words, |_| true)
}

/// Adds the words of each literal and name, and a word without text after it.
fn collect(stream: TokenStream, words: &mut Vec<Word>) {
    let tokens: Vec<TokenTree> = stream.into_iter().collect();
    for (at, token) in tokens.iter().enumerate() {
        let text = match token {
            TokenTree::Group(group) => {
                let is_doc = group.delimiter() == Delimiter::Bracket
                    && matches!(group.stream().into_iter().next(),
                        Some(TokenTree::Ident(name)) if name == "doc");
                if !is_doc {
                    collect(group.stream(), words);
                }
                continue;
            }
            TokenTree::Literal(literal) => words_of_literal(&literal.to_string()),
            TokenTree::Ident(name) if at > 0 && is_fn(&tokens[at - 1]) => {
                name.to_string().replace('_', " ")
            }
            TokenTree::Ident(_) | TokenTree::Punct(_) => continue,
        };
        let line = token.span().start().line;
        let parts = text.split(|c: char| !c.is_alphanumeric());
        let parts = parts.filter(|part| !part.is_empty()).chain([""]);
        words.extend(parts.map(|part| Word {
            text: part.to_lowercase(),
            line,
        }));
    }
}

/// A literal without escapes, so that the word in `\\nwho` begins after the line break, and without
/// the names of variables between braces; empty if it is not a string.
fn words_of_literal(literal: &str) -> String {
    let Some((_, text)) = literal.split_once('"') else {
        return String::new();
    };
    let text = text.replace("\\n", " ").replace("\\t", " ");
    let mut is_outside = true;
    let outside = |c: &char| {
        is_outside = (is_outside || *c == '}') && *c != '{';
        is_outside
    };
    text.chars().filter(outside).collect()
}

fn is_fn(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Ident(word) if word == "fn")
}

#[cfg(test)]
mod tests;
