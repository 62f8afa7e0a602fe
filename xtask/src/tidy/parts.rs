//! Parts: folders and files whose state is private (convention 19). Each event of a part, and each
//! question to it, is a method with that name, so a reader finds every change of the part's state
//! in the part's own files.
//!
//! In a part, tidy refuses fields that are visible outside it, and functions visible outside it
//! that return `&mut`. Over all parts, tidy refuses more than a few functions of one line that only
//! get or set a field. An owner, a type that another part holds or borrows, may answer any
//! question, but tidy refuses a function `set_…` of it, because that names no event, and bounds the
//! events that only set a field. A folder or file becomes a part by a line in [`PARTS`], and has
//! tests that build it alone (`parts/alone.rs`).

mod alone;

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

use super::Finding;
use super::tokens::{braces, is_punct, is_test};
use super::tree::{File, Tree};

/// A part, with its types that have no state (plain values, and proofs that borrow) and its owners.
struct Part {
    /// A file or a folder, without a slash at its end, together with the folder or the file of its
    /// name.
    path: &'static str,
    /// Types whose fields may be visible and whose methods may return `&mut`.
    values: &'static [&'static str],
    /// Types that another part holds, or that the part lends as `&mut`, because an event of another
    /// part changes them too. Their own fields are private, none of their methods returns `&mut`,
    /// and none is a setter.
    owners: &'static [&'static str],
}

const PARTS: &[Part] = &[
    Part {
        path: "crates/core/src/client",
        values: &["Asked", "Issued", "Wish"],
        owners: &[],
    },
    Part {
        path: "crates/core/src/congestion/dcqcn.rs",
        values: &[],
        owners: &["Dcqcn"],
    },
    Part {
        path: "crates/core/src/congestion/egress.rs",
        values: &[],
        owners: &[],
    },
    Part {
        path: "crates/core/src/congestion/flow.rs",
        values: &[],
        owners: &["Flow"],
    },
    Part {
        path: "crates/core/src/congestion/pacer.rs",
        values: &[],
        owners: &[],
    },
    Part {
        path: "crates/core/src/congestion/swift.rs",
        values: &[],
        owners: &["Swift"],
    },
    Part {
        path: "crates/core/src/congestion/timely.rs",
        values: &[],
        owners: &["Timely"],
    },
    Part {
        path: "crates/core/src/congestion/wheel.rs",
        values: &["Paced"],
        owners: &[],
    },
    Part {
        path: "crates/core/src/context/agenda.rs",
        values: &[],
        owners: &[],
    },
    Part {
        path: "crates/core/src/context/notices.rs",
        values: &[],
        owners: &[],
    },
    Part {
        path: "crates/core/src/context/peers.rs",
        values: &["Peer"],
        owners: &[],
    },
    Part {
        path: "crates/core/src/context/user_timers.rs",
        values: &[],
        owners: &[],
    },
    Part {
        path: "crates/core/src/observe/stats.rs",
        values: &[],
        owners: &[],
    },
    Part {
        path: "crates/core/src/packet/held_until_done.rs",
        values: &[],
        owners: &[],
    },
    Part {
        path: "crates/core/src/packet/outbox.rs",
        values: &[],
        owners: &[],
    },
    Part {
        path: "crates/core/src/protocol/laws.rs",
        values: &[],
        owners: &[],
    },
    Part {
        path: "crates/core/src/server",
        values: &["Received", "Partial"],
        owners: &[],
    },
    Part {
        path: "crates/core/src/session",
        values: &[
            "Terms",
            "Template",
            "Known",
            "Ready",
            "Left",
            "PathTraits",
            "SlotRange",
            "SessionOffer",
            "SessionInfo",
            "Closed",
            "Challenged",
            "Question",
            "Remote",
        ],
        owners: &["Line"],
    },
    Part {
        path: "crates/core/src/transfer/arrivals.rs",
        values: &[],
        owners: &["Arrivals"],
    },
    Part {
        path: "crates/core/src/transfer/probes.rs",
        values: &[],
        owners: &["Probe", "Probes"],
    },
    Part {
        path: "crates/core/src/transfer/progress.rs",
        values: &[],
        owners: &["Progress"],
    },
    Part {
        path: "crates/core/src/transfer/reassembly.rs",
        values: &["Arrived", "CreditReturn", "Run"],
        owners: &[],
    },
    Part {
        path: "crates/core/src/transfer/scoreboard.rs",
        values: &["Answered"],
        owners: &["Transfer"],
    },
    Part {
        path: "crates/core/src/transfer/transfers",
        values: &["Acked", "Lent"],
        owners: &[],
    },
    Part {
        path: "crates/core/src/transfer/word.rs",
        values: &[],
        owners: &["Word"],
    },
];

/// The most functions, in all parts together, that only get or set a field.
const PLAIN_FUNCTIONS: usize = 10;

/// The most functions of owners, in all parts together, that only set a field.
const PLAIN_EVENTS: usize = 8;

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = check_parts(tree, PARTS);
    findings.extend(alone::check(tree, PARTS));
    findings
}

fn check_parts(tree: &Tree, parts: &[Part]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let (mut plain, mut events) = (Vec::new(), Vec::new());
    for part in parts {
        let files: Vec<&File> = tree.rust().filter(|file| part.has(file)).collect();
        if files.is_empty() {
            let what = "is a part in xtask's tidy/parts.rs, but does not exist";
            findings.push(Finding::new(part.path, 0, what));
        }
        for file in files.iter().filter(|file| !is_test(&file.path)) {
            let mut walk = Walk {
                file,
                part,
                findings: &mut findings,
                plain: &mut plain,
                events: &mut events,
            };
            if let Ok(stream) = file.text.parse::<TokenStream>() {
                walk.stream(stream, Kind::State);
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
        let listed = part.values.iter().chain(part.owners);
        for name in listed.filter(|name| !is_defined(name)) {
            let what = format!("`{name}` is a type of this part in tidy/parts.rs only");
            findings.push(Finding::new(part.path, 0, what));
        }
    }
    findings.extend(beyond(PLAIN_FUNCTIONS, plain, "parts"));
    findings.extend(beyond(PLAIN_EVENTS, events, "owners"));
    findings
}

/// These findings, if they are more than `most`.
fn beyond(most: usize, found: Vec<Finding>, whose: &str) -> impl Iterator<Item = Finding> {
    let count = found.len();
    let found = found.into_iter().filter(move |_| count > most);
    found.map(move |finding| Finding {
        what: format!(
            "{}; all {whose} have {count}, but may have {most}",
            finding.what
        ),
        ..finding
    })
}

impl Part {
    fn has(&self, file: &File) -> bool {
        let folder = self.path.strip_suffix(".rs").unwrap_or(self.path);
        let rest = file.path.strip_prefix(folder);
        rest.is_some_and(|rest| rest.is_empty() || rest == ".rs" || rest.starts_with('/'))
    }
}

/// The kind of a type in a part.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    State,
    Value,
    Owner,
}

struct Walk<'a> {
    file: &'a File,
    part: &'a Part,
    findings: &'a mut Vec<Finding>,
    /// Functions of state that only get or set a field.
    plain: &'a mut Vec<Finding>,
    /// Functions of owners that only set a field.
    events: &'a mut Vec<Finding>,
}

impl Walk<'_> {
    fn found(&mut self, at: &TokenTree, what: String) {
        let line = at.span().start().line;
        self.findings
            .push(Finding::new(&self.file.path, line, what));
    }

    /// Checks all items. `of`: the kind of the type whose methods they are.
    fn stream(&mut self, stream: TokenStream, of: Kind) {
        let tokens: Vec<TokenTree> = stream.into_iter().collect();
        let mut at = 0;
        while at < tokens.len() {
            let rest = &tokens[at..];
            if is_word(&rest[0], "struct") {
                self.fields(rest);
            } else if is_word(&rest[0], "pub") {
                self.function(rest, of);
            } else if is_word(&rest[0], "impl")
                && let Some(body) = rest.iter().position(|token| braces(token).is_some())
            {
                let of = self.kind(&rest[..body]);
                if let Some(group) = braces(&rest[body]) {
                    self.stream(group.stream(), of);
                }
                at += body;
            } else if let Some(group) = braces(&rest[0]) {
                self.stream(group.stream(), of);
            }
            at += 1;
        }
    }

    /// The kind of the type that the head of an `impl` names.
    fn kind(&self, head: &[TokenTree]) -> Kind {
        let names_one_of = |names: &[&str]| head.iter().any(|token| is_one_of(token, names));
        if names_one_of(self.part.values) {
            Kind::Value
        } else if names_one_of(self.part.owners) {
            Kind::Owner
        } else {
            Kind::State
        }
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
        let Some(body) = groups
            .find(is_body)
            .filter(|_| !is_one_of(name, self.part.values))
        else {
            return;
        };
        for token in body.stream() {
            if is_word(&token, "pub") {
                let what = format!("a field of `{name}` is visible outside its part");
                self.found(&token, what);
            }
        }
    }

    /// `pub … fn name(…) -> … { … }`
    fn function(&mut self, tokens: &[TokenTree], of: Kind) {
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
        // Arguments form their own group, so an arrow outside groups belongs to the result.
        let result = signature.windows(2).rposition(is_arrow);
        let result = result.map_or(&[][..], |at| &signature[at..]);
        let is_checked = of != Kind::Value;
        if is_checked && has_mutable(result, self.part.owners) {
            let what = format!("`{name}` gives away its part's state with `&mut`");
            self.found(&tokens[head], what);
        }
        if of == Kind::Owner && name.to_string().starts_with("set_") {
            let what = format!("`{name}` sets state of an owner; name the event that changes it");
            self.found(&tokens[head], what);
        }
        let found = braces(&rest[body]).and_then(plain);
        let list = match (of, found) {
            (Kind::State, Some(_)) => &mut *self.plain,
            (Kind::Owner, Some("sets")) => &mut *self.events,
            _ => return,
        };
        let (line, kind) = (name.span().start().line, found.unwrap_or_default());
        let what = format!("`{name}` only {kind} a field");
        list.push(Finding::new(&self.file.path, line, what));
    }
}

/// Whether a type contains `&mut` or `&'a mut` before any name other than these.
fn has_mutable(tokens: &[TokenTree], owners: &[&str]) -> bool {
    let is_here = (0..tokens.len()).any(|at| {
        let mut rest = tokens[at..].iter();
        let is_reference = rest.next().is_some_and(|token| is_punct(token, '&'));
        let mut next = rest.next();
        if next.is_some_and(|token| is_punct(token, '\'')) {
            rest.next();
            next = rest.next();
        }
        let is_mutable = is_reference && next.is_some_and(|token| is_word(token, "mut"));
        is_mutable && !rest.next().is_some_and(|token| is_one_of(token, owners))
    });
    let is_inside = |token: &TokenTree| match token {
        TokenTree::Group(group) => {
            has_mutable(&group.stream().into_iter().collect::<Vec<_>>(), owners)
        }
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

fn is_one_of(token: &TokenTree, words: &[&str]) -> bool {
    words.iter().any(|word| is_word(token, word))
}

fn is_word(token: &TokenTree, word: &str) -> bool {
    matches!(token, TokenTree::Ident(found) if found == word)
}

#[cfg(test)]
mod tests;
