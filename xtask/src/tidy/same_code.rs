//! Compares the Rust code, without comments, with the code of another revision: for commits that
//! claim to change only comments. It compares the tokens of every Rust file; doc comments count as
//! comments.

use std::path::Path;

use anyhow::Context;
use proc_macro2::{Delimiter, TokenStream, TokenTree};

use super::Finding;
use super::changes::git;
use super::tree::{File, Tree};

/// Finds the differences between the working tree and the revision.
pub(super) fn check(root: &Path, tree: &Tree, revision: &str) -> anyhow::Result<Vec<Finding>> {
    // Only files whose text differs can differ in tokens.
    let args = [
        "diff",
        "--name-only",
        "--no-renames",
        "-z",
        revision,
        "--",
        "*.rs",
    ];
    let changed = git(root, &args).with_context(|| format!("cannot compare with {revision}"))?;
    let mut findings = Vec::new();
    for path in changed.split_terminator('\0') {
        let object = format!("{revision}:{path}");
        let before = match git(root, &["ls-tree", "--name-only", revision, "--", path])?.is_empty()
        {
            true => None,
            false => Some(git(root, &["show", &object])?),
        };
        findings.extend(compare(path, before.as_deref(), tree.get(path)));
    }
    let untracked = git(
        root,
        &["ls-files", "--others", "--exclude-standard", "--", "*.rs"],
    )?;
    for path in untracked.lines() {
        findings.extend(compare(path, None, tree.get(path)));
    }
    Ok(findings)
}

fn compare(path: &str, before: Option<&str>, after: Option<&File>) -> Option<Finding> {
    let (before, after) = match (before, after) {
        (Some(before), Some(after)) => (tokens(before), tokens(&after.text)),
        (None, Some(_)) => return Some(Finding::new(path, 0, "is a new file")),
        (Some(_), None) => return Some(Finding::new(path, 0, "is gone")),
        (None, None) => return None,
    };
    let (Some(before), Some(after)) = (before, after) else {
        return Some(Finding::new(path, 0, "is not Rust, before or now"));
    };
    let nothing = ("the end of the file".to_owned(), 0);
    let most = before.len().max(after.len());
    (0..most).find_map(|at| {
        let old = before.get(at).unwrap_or(&nothing);
        let new = after.get(at).unwrap_or(&nothing);
        let what = format!("code changed: `{}` was `{}`, line {}", new.0, old.0, old.1);
        (old.0 != new.0).then(|| Finding::new(path, new.1, what))
    })
}

/// Every token outside of doc comments, with its line.
fn tokens(text: &str) -> Option<Vec<(String, usize)>> {
    let mut tokens = Vec::new();
    flatten(text.parse().ok()?, &mut tokens);
    Some(tokens)
}

fn flatten(stream: TokenStream, into: &mut Vec<(String, usize)>) {
    let tokens: Vec<TokenTree> = stream.into_iter().collect();
    let mut at = 0;
    while at < tokens.len() {
        let doc = doc_comment(&tokens[at..]);
        if doc > 0 {
            at += doc;
            continue;
        }
        let line = tokens[at].span().start().line;
        match &tokens[at] {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::None => ("", ""),
                };
                into.push((open.to_owned(), line));
                flatten(group.stream(), into);
                into.push((close.to_owned(), group.span_close().start().line));
            }
            token => into.push((token.to_string(), line)),
        }
        at += 1;
    }
}

/// The number of leading tokens that form a doc comment: `#[doc = "…"]` or `#![doc = "…"]`.
fn doc_comment(tokens: &[TokenTree]) -> usize {
    let is = |token: &TokenTree, punct: char| super::tokens::is_punct(token, punct);
    let (group, length) = match tokens {
        [hash, TokenTree::Group(group), ..] if is(hash, '#') => (group, 2),
        [hash, bang, TokenTree::Group(group), ..] if is(hash, '#') && is(bang, '!') => (group, 3),
        _ => return 0,
    };
    let inner: Vec<TokenTree> = group.stream().into_iter().collect();
    match &inner[..] {
        [TokenTree::Ident(doc), equals, TokenTree::Literal(_)]
            if doc == "doc" && is(equals, '=') =>
        {
            length
        }
        _ => 0,
    }
}

#[cfg(test)]
mod tests;
