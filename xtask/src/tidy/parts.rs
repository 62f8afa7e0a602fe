//! Parts: folders and files whose state is private (convention 19). Each event of a part, and each
//! question to it, is a method with that name, so a reader finds every change of its state in its
//! own files.
//!
//! In a part, tidy refuses fields that are visible outside it, functions visible outside it that
//! return `&mut`, and, over all parts, more than a few functions of one line that only get or set a
//! field. A folder or file becomes a part by a line in [`PARTS`].

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

use super::Finding;
use super::tokens::{braces, is_punct, is_test};
use super::tree::{File, Tree};

/// A part, and its types without state: plain values, and proofs that borrow.
struct Part {
    /// A file; or a folder without a slash at its end, with the file of its name.
    path: &'static str,
    /// Types whose fields may be visible and whose methods may return `&mut`.
    values: &'static [&'static str],
}

const PARTS: &[Part] = &[
    Part {
        path: "crates/core/src/client",
        values: &["Asked", "Issued", "Wish"],
    },
    Part {
        path: "crates/core/src/congestion/pacer.rs",
        values: &[],
    },
    Part {
        path: "crates/core/src/context/agenda.rs",
        values: &[],
    },
    Part {
        path: "crates/core/src/context/notices.rs",
        values: &[],
    },
    Part {
        path: "crates/core/src/observe/stats.rs",
        values: &[],
    },
    Part {
        path: "crates/core/src/packet/held_until_done.rs",
        values: &[],
    },
    Part {
        path: "crates/core/src/packet/outbox.rs",
        values: &[],
    },
    Part {
        path: "crates/core/src/server",
        values: &["Received", "Partial"],
    },
    Part {
        path: "crates/core/src/transfer/reassembly.rs",
        values: &["Arrived", "CreditReturn"],
    },
    Part {
        path: "crates/core/src/transfer/transfers",
        values: &["Acked", "Lent"],
    },
];

/// Most functions of all parts together that only get or set a field.
const PLAIN_FUNCTIONS: usize = 10;

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    check_parts(tree, PARTS)
}

fn check_parts(tree: &Tree, parts: &[Part]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut plain = Vec::new();
    for part in parts {
        let files: Vec<&File> = tree.rust().filter(|file| part.has(file)).collect();
        if files.is_empty() {
            let what = "is a part in xtask's tidy/parts.rs, and does not exist";
            findings.push(Finding::new(part.path, 0, what));
        }
        for file in files.iter().filter(|file| !is_test(&file.path)) {
            let mut walk = Walk {
                file,
                part,
                findings: &mut findings,
                plain: &mut plain,
            };
            if let Ok(stream) = file.text.parse::<TokenStream>() {
                walk.stream(stream, false);
            }
        }
        let is_defined = |name: &&&str| {
            let marks = ["struct", "enum", "union"];
            let is_here = |mark: &&str| {
                let definition = format!("{mark} {name}");
                files.iter().any(|file| file.text.contains(&definition))
            };
            marks.iter().any(is_here)
        };
        for name in part.values.iter().filter(|name| !is_defined(name)) {
            let what = format!("`{name}` is a value of this part in tidy/parts.rs only");
            findings.push(Finding::new(part.path, 0, what));
        }
    }
    if plain.len() > PLAIN_FUNCTIONS {
        let (count, most) = (plain.len(), PLAIN_FUNCTIONS);
        findings.extend(plain.into_iter().map(|finding: Finding| Finding {
            what: format!(
                "{}; all parts have {count}, and may have {most}",
                finding.what
            ),
            ..finding
        }));
    }
    findings
}

impl Part {
    fn has(&self, file: &File) -> bool {
        let rest = file.path.strip_prefix(self.path);
        rest.is_some_and(|rest| rest.is_empty() || rest == ".rs" || rest.starts_with('/'))
    }
}

struct Walk<'a> {
    file: &'a File,
    part: &'a Part,
    findings: &'a mut Vec<Finding>,
    plain: &'a mut Vec<Finding>,
}

impl Walk<'_> {
    fn found(&mut self, at: &TokenTree, what: String) {
        let line = at.span().start().line;
        self.findings
            .push(Finding::new(&self.file.path, line, what));
    }

    /// Checks all items; `is_value`: they are methods of a type without state.
    fn stream(&mut self, stream: TokenStream, is_value: bool) {
        let tokens: Vec<TokenTree> = stream.into_iter().collect();
        let mut at = 0;
        while at < tokens.len() {
            let rest = &tokens[at..];
            if is_word(&rest[0], "struct") {
                self.fields(rest);
            } else if is_word(&rest[0], "pub") {
                self.function(rest, is_value);
            } else if is_word(&rest[0], "impl")
                && let Some(body) = rest.iter().position(|token| braces(token).is_some())
            {
                let is_value = rest[..body].iter().any(|token| self.is_value(token));
                if let Some(group) = braces(&rest[body]) {
                    self.stream(group.stream(), is_value);
                }
                at += body;
            } else if let Some(group) = braces(&rest[0]) {
                self.stream(group.stream(), is_value);
            }
            at += 1;
        }
    }

    fn is_value(&self, token: &TokenTree) -> bool {
        self.part.values.iter().any(|name| is_word(token, name))
    }

    /// `struct Name { … }` or `struct Name( … );`
    fn fields(&mut self, tokens: &[TokenTree]) {
        let [_, name, rest @ ..] = tokens else {
            return;
        };
        let is_body = |group: &&Group| group.delimiter() != Delimiter::Bracket;
        let before_end = rest.iter().take_while(|token| !is_punct(token, ';'));
        let mut groups = before_end.filter_map(|token| match token {
            TokenTree::Group(group) => Some(group),
            _ => None,
        });
        let Some(body) = groups.find(is_body).filter(|_| !self.is_value(name)) else {
            return;
        };
        for token in body.stream() {
            if is_word(&token, "pub") {
                let what = format!("a field of `{name}` can be seen outside; its part owns it");
                self.found(&token, what);
            }
        }
    }

    /// `pub … fn name(…) -> … { … }`
    fn function(&mut self, tokens: &[TokenTree], is_value: bool) {
        let is_head = |token: &TokenTree| {
            let words = ["pub", "const", "unsafe", "async", "fn"];
            let is_visibility = matches!(token, TokenTree::Group(group)
                if group.delimiter() == Delimiter::Parenthesis);
            is_visibility || words.iter().any(|word| is_word(token, word))
        };
        let head = tokens.iter().take_while(|token| is_head(token)).count();
        let [TokenTree::Ident(name), rest @ ..] = &tokens[head..] else {
            return;
        };
        if !is_word(&tokens[head - 1], "fn") {
            return;
        }
        let Some(body) = rest.iter().position(|token| braces(token).is_some()) else {
            return;
        };
        let signature = &rest[..body];
        let is_arrow = |pair: &[TokenTree]| is_punct(&pair[0], '-') && is_punct(&pair[1], '>');
        // Arguments are in a group of their own, so an arrow outside groups belongs to the result.
        let result = signature.windows(2).rposition(is_arrow);
        let result = result.map_or(&[][..], |at| &signature[at..]);
        if !is_value && has_mutable(result) {
            let what = format!("`{name}` gives away its part's state with `&mut`");
            self.found(&tokens[head], what);
        }
        if !is_value && let Some(kind) = braces(&rest[body]).and_then(plain) {
            let line = name.span().start().line;
            let what = format!("`{name}` only {kind} a field");
            self.plain.push(Finding::new(&self.file.path, line, what));
        }
    }
}

/// Whether `&mut` or `&'a mut` stands somewhere in a type.
fn has_mutable(tokens: &[TokenTree]) -> bool {
    let is_here = (0..tokens.len()).any(|at| {
        let mut rest = tokens[at..].iter();
        let is_reference = rest.next().is_some_and(|token| is_punct(token, '&'));
        let mut next = rest.next();
        if next.is_some_and(|token| is_punct(token, '\'')) {
            rest.next();
            next = rest.next();
        }
        is_reference && next.is_some_and(|token| is_word(token, "mut"))
    });
    let is_inside = |token: &TokenTree| match token {
        TokenTree::Group(group) => has_mutable(&group.stream().into_iter().collect::<Vec<_>>()),
        _ => false,
    };
    is_here || tokens.iter().any(is_inside)
}

/// Whether a body is only `self.a.b`, perhaps after `&`, `&mut` or `*`, or `self.a.b = c;`.
fn plain(body: &Group) -> Option<&'static str> {
    let tokens: Vec<TokenTree> = body.stream().into_iter().collect();
    let is_mark =
        |token: &&TokenTree| is_punct(token, '&') || is_punct(token, '*') || is_word(token, "mut");
    let rest = &tokens[tokens.iter().take_while(is_mark).count()..];
    let [this, rest @ ..] = rest else {
        return None;
    };
    let is_path = |token: &&TokenTree| match token {
        TokenTree::Group(_) => false,
        TokenTree::Punct(punct) => punct.as_char() == '.',
        TokenTree::Ident(_) | TokenTree::Literal(_) => true,
    };
    let path = rest.iter().take_while(is_path).count();
    if !is_word(this, "self") || path == 0 {
        return None;
    }
    match &rest[path..] {
        [] => Some("gets"),
        [equals, TokenTree::Ident(_)] | [equals, TokenTree::Ident(_), _]
            if is_punct(equals, '=') =>
        {
            Some("sets")
        }
        _ => None,
    }
}

fn is_word(token: &TokenTree, word: &str) -> bool {
    matches!(token, TokenTree::Ident(found) if found == word)
}

#[cfg(test)]
mod tests;
